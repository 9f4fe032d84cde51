/** What somebody can do in a share, tried by a real client of each protocol. */
import type { Access } from '../clients/protocols.ts';
import { NfsClient } from '../clients/nfs-session.ts';
import { runClient, smb } from './client-programs.ts';

/** What came of four attempts: `list` is whether the share stands among the others. */
export interface Visit {
  readonly list: boolean;
  readonly read: boolean;
  readonly write: boolean;
  readonly rename: boolean;
}

/** A person: a user over SMB and WebDAV, a machine over NFS. */
export interface Visitor {
  readonly name: string;
  readonly password: string;
  readonly address: string;
}

/** There is `seed.txt` in each share. */
export type Visiting = (access: Access, visitor: Visitor, share: string) => Promise<Visit>;

export const SEED = /the seed of (\w+)/;
/** What a visit may leave when it is cut off. */
export const STRAY = /^(?:smb|moved-(?:dav|nfs))-/;

export function davUrl({ ports }: Access, path: string): string {
  return `http://127.0.0.1:${ports.webdav}/${path}`;
}

/** The status of one request by curl, and what came with it. */
export async function dav(
  access: Access,
  { name, password }: Pick<Visitor, 'name' | 'password'>,
  [method, path, ...options]: readonly [method: string, path: string, ...options: readonly string[]],
): Promise<{ readonly status: number; readonly text: string }> {
  const { output } = await runClient('curl', [
    '--disable',
    '--silent',
    '--path-as-is',
    ...(name === '' ? [] : ['--user', `${name}:${password}`]),
    '--request',
    method,
    '--write-out',
    '\n%{http_code}',
    ...options,
    davUrl(access, path),
  ]);
  const at = output.lastIndexOf('\n');
  return { status: Number(output.slice(at + 1)), text: output.slice(0, at) };
}

const overWebdav: Visiting = async (access, visitor, share) => {
  const ask = (...request: readonly [string, string, ...string[]]) => dav(access, visitor, request);
  const own = `${share}/dav-${visitor.name}`;
  const root = await ask('PROPFIND', '', '--header', 'Depth: 1');
  const read = await ask('GET', `${share}/seed.txt`);
  const write = await ask('PUT', own, '--data', 'mine');
  const isWritten = write.status < 300;
  const from = isWritten ? own : `${share}/seed.txt`;
  const to = `Destination: ${davUrl(access, `${share}/moved-dav-${visitor.name}`)}`;
  const rename = await ask('MOVE', from, '--header', to);
  const moved = `${share}/moved-dav-${visitor.name}`;
  // The seed goes back to its place: a share may be opened between two of these requests.
  if (rename.status < 300 && !isWritten)
    await ask('MOVE', moved, '--header', `Destination: ${davUrl(access, `${share}/seed.txt`)}`);
  else if (rename.status < 300) await ask('DELETE', moved);
  return {
    list: root.text.includes(`/${share}/`),
    read: SEED.exec(read.text)?.[1] === share,
    write: isWritten,
    rename: rename.status < 300,
  };
};

const overSmb: Visiting = async (access, visitor, share) => {
  const login = { port: access.ports.smb, user: `${visitor.name}%${visitor.password}` };
  const own = `smb-${visitor.name}`;
  const renamed = (output: string): boolean => !/NT_STATUS_\w+ renaming/.test(output);
  // One session does all: what is refused is named, and the next is tried.
  const { output } = await smb(
    share,
    `get seed.txt -; put /etc/hostname ${own}; rename ${own} moved-${own}; del moved-${own}`,
    login,
  );
  const isIn = SEED.exec(output)?.[1] === share;
  const isWritten = /^putting file/m.test(output);
  // The seed goes back to its place, as over WebDAV. Who can write renames a file of their own: one of the NAS that is
  // renamed to and fro may be leaving the write layer just then (docs/write-layer.md).
  const isRenamed = isWritten
    ? renamed(output)
    : isIn && renamed((await smb(share, `rename seed.txt ${own}; rename ${own} seed.txt`, login)).output);
  return {
    list: (await smbNames(login)).includes(`Disk|${share}|`),
    read: isIn,
    write: isWritten,
    rename: isRenamed,
  };
};

async function smbNames({ port, user }: { readonly port: number; readonly user: string }): Promise<string> {
  const args = ['-g', '-L', '127.0.0.1', '-p', String(port), '-U', user];
  return (await runClient('smbclient', args)).output;
}

const overNfs: Visiting = async (access, visitor, share) => {
  const client = await NfsClient.connect(access.ports.nfs, visitor.address);
  const tried = (work: Promise<unknown>): Promise<boolean> =>
    work.then(
      () => true,
      () => false,
    );
  const own = `nfs-${visitor.name}`;
  const source = {
    read: async (buffer: Buffer) => ({ bytesRead: buffer.write('mine') }),
  };
  try {
    const names = await client.list('').catch((): string[] => []);
    let text = '';
    const read = async (): Promise<void> => {
      for await (const piece of client.read(`${share}/seed.txt`)) text += piece.toString();
    };
    await tried(read());
    const write = await tried(client.write(`${share}/${own}`, source, 4));
    const rename = await tried(client.rename(share, write ? own : 'seed.txt', `moved-${own}`));
    // A share that is shown anew meanwhile is away for a moment. The seed goes back to its place.
    if (rename && write) await tried(client.remove(`${share}/moved-${own}`));
    else if (rename) await tried(client.rename(share, `moved-${own}`, 'seed.txt'));
    return {
      list: names.includes(share),
      read: SEED.exec(text)?.[1] === share,
      write,
      rename,
    };
  } finally {
    client.close();
  }
};

/** One for each protocol. */
export const VISITING = {
  smb: overSmb,
  webdav: overWebdav,
  nfs: overNfs,
} as const;
