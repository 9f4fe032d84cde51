/** Four writers, one for each way to the share: real clients, and a program in a process of its own. */
import { writeFile } from 'node:fs/promises';
import type { Access } from '../clients/protocols.ts';
import { NfsClient } from '../clients/nfs-session.ts';
import { NfsFault } from '../clients/nfs-wire.ts';
import { runClient, smb } from '../exports/client-programs.ts';
import { within } from '../platform/wait.ts';
import { ShareWorker } from '../write-layer/share-worker.ts';
import { contentOf, sourceOf } from './deeds.ts';
import { folderOf } from './plan.ts';
import type { Action, Way } from './plan.ts';

/** `refused`: it is certain that nothing was done. `unknown`: there was no answer, or none that says so. */
export interface Answer {
  readonly outcome: 'done' | 'refused' | 'unknown';
  /** The protocol's own words. */
  readonly words: string;
  /** Refused since what it is about is not there. */
  readonly isMissing?: boolean;
}

export interface Writer {
  act(action: Action): Promise<Answer>;
}

export interface WriterParts {
  readonly access: Access;
  readonly share: string;
  readonly mountPoint: string;
}

const DEADLINE_MS = 30_000;
const DONE: Answer = { outcome: 'done', words: '' };
const refused = (words: string, isMissing = false): Answer => ({ outcome: 'refused', words, isMissing });
const unknown = (words: string): Answer => ({ outcome: 'unknown', words });

/** One for each way. */
export function writersOf(parts: WriterParts): Readonly<Record<Way, Writer>> {
  return {
    local: localWriter(parts),
    smb: smbWriter(parts),
    webdav: webdavWriter(parts),
    nfs: nfsWriter(parts),
  };
}

function localWriter({ access, mountPoint }: WriterParts): Writer {
  const REFUSED = /^(ENOENT|EEXIST|ENOTEMPTY|ENOTDIR|EISDIR|ENOSPC|EROFS)$/;
  let hands = new ShareWorker(access.scratch);
  return {
    act: async (action) => {
      try {
        const code = await hands.act(`${mountPoint}/local`, action, DEADLINE_MS);
        if (code === null) return DONE;
        // A write that was refused may have made an empty file before.
        return REFUSED.test(code) && code !== 'ENOSPC' ? refused(code, code === 'ENOENT') : unknown(code);
      } catch (error) {
        // It may hang in the kernel: what it was asked may still be done.
        hands = new ShareWorker(access.scratch);
        return unknown((error as Error).message);
      }
    },
  };
}

function smbWriter({ access, share }: WriterParts): Writer {
  const MISSING = ['OBJECT_NAME_NOT_FOUND', 'OBJECT_PATH_NOT_FOUND', 'NO_SUCH_FILE'];
  const IN_THE_WAY = [
    'OBJECT_NAME_COLLISION',
    'DIRECTORY_NOT_EMPTY',
    'FILE_IS_A_DIRECTORY',
    'NOT_A_DIRECTORY',
  ];
  const REFUSED = [...MISSING, ...IN_THE_WAY, 'ACCESS_DENIED', 'CONNECTION_REFUSED', 'BAD_NETWORK_NAME'];
  const file = access.scratch.path('smb-content');
  const commandOf = async (action: Action): Promise<string> => {
    const path = `smb/${action.path}`;
    if (action.deed === 'write') {
      await writeFile(file, contentOf(action));
      return `put "${file}" "${path}"`;
    }
    if (action.deed === 'rename') return `rename "${path}" "smb/${action.to}" -f`;
    return `${{ make: 'mkdir', remove: 'rmdir', delete: 'del' }[action.deed as 'make']} "${path}"`;
  };
  return {
    act: async (action) => {
      const command = await commandOf(action);
      const { code, output } = await smb(share, command, {
        port: access.ports.smb,
        user: access.user,
      }).catch((error: unknown) => ({ code: 1, output: (error as Error).message }));
      const words = /NT_STATUS_(\w+)/.exec(output)?.[1];
      if (words === undefined) return code === 0 ? DONE : unknown(output.trim());
      // smbd cuts a file that is replaced when it opens it: what goes wrong right behind that is answered so, too.
      if (action.deed === 'write' && words === 'ACCESS_DENIED') return unknown(words);
      return REFUSED.includes(words) ? refused(words, MISSING.includes(words)) : unknown(words);
    },
  };
}

function webdavWriter({ access, share }: WriterParts): Writer {
  const file = access.scratch.path('webdav-content');
  const url = (path: string): string =>
    `http://127.0.0.1:${access.ports.webdav}/` +
    [share, 'webdav', ...path.split('/')].map(encodeURIComponent).join('/');
  const METHODS = { make: 'MKCOL', remove: 'DELETE', delete: 'DELETE', rename: 'MOVE' } as const;
  const partsOf = async (action: Action): Promise<string[]> => {
    if (action.deed === 'write') {
      await writeFile(file, contentOf(action));
      return ['-T', file];
    }
    const method = ['-X', METHODS[action.deed as keyof typeof METHODS]];
    if (action.deed !== 'rename') return method;
    return [...method, '-H', `Destination: ${url(action.to ?? '')}`, '-H', 'Overwrite: T'];
  };
  return {
    act: async (action) => {
      const asked = [
        '-sS',
        '-o/dev/null',
        '-w%{http_code}',
        `-u${access.user.replace('%', ':')}`,
        ...(await partsOf(action)),
        url(action.path),
      ];
      const { code, output } = await runClient('curl', asked, DEADLINE_MS).catch((error: unknown) => ({
        code: 1,
        output: (error as Error).message,
      }));
      // curl's 7: nobody took the connection.
      if (code === 7) return refused('no connection');
      if (code !== 0) return unknown(output);
      const status = output.slice(-3);
      if (/^20\d$/.test(status)) return DONE;
      return /^(404|405|409|412|423|401|403)$/.test(status)
        ? refused(status, status === '404')
        : unknown(status);
    },
  };
}

function nfsWriter({ access, share }: WriterParts): Writer {
  // Not there, there already, no folder, a folder, not empty, the server waits for former clients.
  const REFUSED = [2, 17, 20, 21, 66, 10_013];
  const carryOut = async (client: NfsClient, action: Action): Promise<void> => {
    const path = `${share}/nfs/${action.path}`;
    if (action.deed === 'write') return client.write(path, sourceOf(contentOf(action)), action.bytes);
    if (action.deed === 'make') return client.makeFolder(path);
    if (action.deed !== 'rename') return client.remove(path);
    const folder = folderOf(path);
    await client.rename(
      folder,
      path.slice(folder.length + 1),
      `${share}/nfs/${action.to}`.slice(folder.length + 1),
    );
  };
  return {
    act: async (action) => {
      let client: NfsClient;
      try {
        client = await within('an NFS server', DEADLINE_MS, NfsClient.connect(access.ports.nfs));
      } catch (error) {
        return refused((error as Error).message);
      }
      try {
        await within(`NFS ${action.deed}`, DEADLINE_MS, carryOut(client, action));
        return DONE;
      } catch (error) {
        const status = error instanceof NfsFault ? error.status : 0;
        const words = (error as Error).message;
        // What was written before a call in the midst of a file was refused is there.
        return REFUSED.includes(status) ? refused(words, status === 2) : unknown(words);
      } finally {
        client.close();
      }
    },
  };
}
