/** The files beside fstab that hold accounts. Nothing of them is ever shown. */
import { stat } from 'node:fs/promises';
import { homedir } from 'node:os';
import { isAbsolute } from 'node:path';
import { readSmallFile } from '../terminal/small-file.ts';
import type { CredentialFiles } from './fstab.ts';

const DAVFS_SECRETS = '/etc/davfs2/secrets';

export function credentialFiles(davfsSecrets = DAVFS_SECRETS, home = homedir()): CredentialFiles {
  return {
    knownHosts: async (named) => {
      const usual = ['~/.ssh/known_hosts', '/etc/ssh/ssh_known_hosts'];
      for (const path of named.some((one) => one !== '') ? named : usual) {
        const place = path.replace(/^~(?=\/)|^%d(?=\/)/, home);
        // One that cannot be seen is none: the import says what that means.
        const found = await stat(place).catch(() => undefined);
        if (isAbsolute(place) && found?.isFile() === true) return place;
      }
      return undefined;
    },
    cifs: async (path) => readCifs(await readSmallFile({ path, what: `the credentials file ${path}` })),
    davfs: async (url, mountPoint) => {
      // Without the file, or the right to read it, the account has to be given by hand; the import says so.
      const text = await readSmallFile({ path: davfsSecrets, what: 'the secrets of davfs2' }).catch(() => '');
      return accountIn(text, url, mountPoint);
    },
  };
}

/** `name=value` on each line; a password keeps its spaces. */
export function readCifs(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const line of text.split(/\r?\n/)) {
    const at = line.indexOf('=');
    const name = line.slice(0, at).trim().toLowerCase();
    if (at > 0 && !name.startsWith('#')) found.set(name, line.slice(at + 1));
  }
  return found;
}

/** Lines of `URL USER PASSWORD`; words may stand in double quotes, and a backslash keeps the next character. */
export function accountIn(
  text: string,
  url: string,
  mountPoint: string,
): { readonly user: string; readonly pass: string } | undefined {
  const plain = (place: string): string => place.replace(/\/$/, '');
  for (const line of text.split(/\r?\n/)) {
    const [place = '', user, pass] = wordsOf(line);
    if (place !== '' && [url, mountPoint].map(plain).includes(plain(place)) && user !== undefined)
      return { user, pass: pass ?? '' };
  }
  return undefined;
}

function wordsOf(line: string): readonly string[] {
  if (line.trimStart().startsWith('#')) return [];
  return [...line.matchAll(/"((?:\\.|[^"\\])*)"|((?:\\.|[^\s"\\])+)/g)].map(([, quoted, plain = '']) =>
    (quoted ?? plain).replaceAll(/\\(.)/g, '$1'),
  );
}
