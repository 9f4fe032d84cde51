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

/** Of visits that belong together: what each person was listed, who is asked for it once. */
export type Lists = Map<string, Promise<string>>;

/** There is `seed.txt` in each share. */
export type Visiting = (access: Access, visitor: Visitor, share: string, lists?: Lists) => Promise<Visit>;

/** Asks at the first call with a key: a protocol and a login. */
function listedOnce(lists: Lists | undefined, key: string, ask: () => Promise<string>): Promise<string> {
  const asked = lists?.get(key) ?? ask();
  lists?.set(key, asked);
  return asked;
}

export const SEED = /the seed of (\w+)/;
/** What a visit may leave when it is cut off. */
export const STRAY = /^(?:smb|moved-(?:dav|nfs))-/;

export function davUrl({ ports }: Access, path: string): string {
  return `http://127.0.0.1:${ports.webdav}/${path}`;
}

type DavRequest = readonly [method: string, path: string, ...options: readonly string[]];

interface DavAnswer {
  readonly status: number;
  readonly text: string;
}

/** Behind each answer, with its status. */
const DAV_END = '\n--answered-';

/** The answers to requests by one curl, which sends one after the other, whatever the answers are. */
async function davAll(
  access: Access,
  { name, password }: Pick<Visitor, 'name' | 'password'>,
  requests: readonly DavRequest[],
): Promise<readonly DavAnswer[]> {
  const one = ([method, path, ...options]: DavRequest): readonly string[] => [
    '--silent',
    '--path-as-is',
    ...(name === '' ? [] : ['--user', `${name}:${password}`]),
    '--request',
    method,
    '--write-out',
    `${DAV_END}%{http_code}\n`,
    ...options,
    davUrl(access, path),
  ];
  const args = requests.flatMap((request, index) => [...(index === 0 ? [] : ['--next']), ...one(request)]);
  const { output } = await runClient('curl', ['--disable', ...args]);
  let rest = output;
  return requests.map(() => {
    const at = rest.indexOf(DAV_END);
    const text = rest.slice(0, at);
    const status = /^\d+\n/.exec(rest.slice(at + DAV_END.length))?.[0] ?? '0';
    rest = rest.slice(at + DAV_END.length + status.length);
    return { status: Number(status), text };
  });
}

/** The status of one request by curl, and what came with it. */
export async function dav(
  access: Access,
  visitor: Pick<Visitor, 'name' | 'password'>,
  request: DavRequest,
): Promise<DavAnswer> {
  const [answer] = await davAll(access, visitor, [request]);
  return answer!;
}

const overWebdav: Visiting = async (access, visitor, share, lists) => {
  const own = `${share}/dav-${visitor.name}`;
  const seed = `${share}/seed.txt`;
  const moved = `${share}/moved-dav-${visitor.name}`;
  const move = (from: string, to: string): DavRequest => [
    'MOVE',
    from,
    '--header',
    `Destination: ${davUrl(access, to)}`,
  ];
  const root = await listedOnce(
    lists,
    `webdav ${visitor.name} ${visitor.password}`,
    async () => (await dav(access, visitor, ['PROPFIND', '', '--header', 'Depth: 1'])).text,
  );
  const [read, write] = (await davAll(access, visitor, [
    ['GET', seed],
    ['PUT', own, '--data', 'mine'],
  ])) as [DavAnswer, DavAnswer];
  const isWritten = write.status < 300;
  const [rename] = (await davAll(
    access,
    visitor,
    isWritten ? [move(own, moved), ['DELETE', moved]] : [move(seed, moved)],
  )) as [DavAnswer];
  // The seed goes back to its place: a share may be opened between two of these requests.
  if (rename.status < 300 && !isWritten) await dav(access, visitor, move(moved, seed));
  return {
    list: root.includes(`/${share}/`),
    read: SEED.exec(read.text)?.[1] === share,
    write: isWritten,
    rename: rename.status < 300,
  };
};

const overSmb: Visiting = async (access, visitor, share, lists) => {
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
    list: (await listedOnce(lists, `smb ${login.user}`, () => smbNames(login))).includes(`Disk|${share}|`),
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
