/**
 * What people have open when a change comes: sessions over SMB, files over NFS, transfers over WebDAV that are half
 * done. Afterwards each is tried, and must do what its holder may do now, no more and, for others, no less.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, rm } from 'node:fs/promises';
import type { Access, Protocol } from '../clients/protocols.ts';
import { NfsClient } from '../clients/nfs-session.ts';
import { NfsFault, say } from '../clients/nfs-wire.ts';
import type { OpenFile } from '../clients/nfs-wire.ts';
import { SmbSession } from '../exports/client-programs.ts';
import { davUrl } from '../exports/visits.ts';
import { until, within } from '../platform/wait.ts';
import { identityOf, rightAs, rightOf } from './model.ts';
import type { Identity, Office, Right } from './model.ts';

/** More than the kernel and the server keep between them: what is cut does not arrive. */
export const LARGE_BYTES = 24_000_000;
/** rclone begins a file when it has more than 100 KiB of it. */
const HALF = Buffer.alloc(200_000, 'x');
const PATIENCE = { timeoutMs: 20_000 };
/** Who sends and reads nothing at all is disconnected after a while. */
const DRIP_MS = 1_000;
const SEED = /the seed of/;

/** What is open, and of whom. */
interface Held {
  readonly protocol: Protocol;
  readonly person: string;
  readonly share: string;
  /** What its holder could do when it was opened. */
  readonly before: Right;
  /** Resolves with what is wrong. `isSame`: the change was none for the holder in this share. */
  tried(after: Right, isSame: boolean): Promise<string | undefined>;
  /** Kept for the next change, too. */
  readonly stays?: () => boolean;
  close(): void;
}

export interface HeldParts {
  readonly access: Access;
  /** Where the daemon mounts a share: what is taken back is not there. */
  readonly mountPoint: (share: string) => string;
}

interface Place {
  readonly office: Office;
  readonly person: string;
  readonly share: string;
}

/** A session of smbclient, with how the server took its user. */
interface Entered {
  readonly session: SmbSession;
  readonly identity: Identity;
}

export class HeldOpen {
  readonly #parts: HeldParts;
  readonly #smb = new Map<string, Entered>();
  #turn = 0;
  #held: Held[] = [];

  constructor(parts: HeldParts) {
    this.#parts = parts;
  }

  /** Opens all that the people may open. `next`: the office to come, which says whose reading is worth a file. */
  async open(office: Office, next: Office): Promise<void> {
    this.#turn += 1;
    const places = Object.keys(office.shares).flatMap((share) =>
      Object.keys(office.addresses).map((person) => ({ office, person, share })),
    );
    const held = await Promise.all([
      ...places.map((place) => this.#smbSession(place)),
      ...places.map((place) => this.#nfsFile(place)),
      ...places.map((place) => this.#upload(place)),
      ...places.filter((place, index) => isTold(place, next, index)).map((place) => this.#download(place)),
    ]);
    this.#held = held.filter((one) => one !== undefined);
  }

  get count(): number {
    return this.#held.length;
  }

  /** Tries all of it; what is wrong, in sentences. */
  async tried(now: Office, next: Office): Promise<readonly string[]> {
    const wrong = await Promise.all(
      this.#held.map(async (held) => {
        const { before, person, protocol, share } = held;
        const after = this.#rightNow(held, next);
        const isSame = before === after && rightOf(now, protocol, person, share) === before;
        const said = await held.tried(after, isSame).catch((error: unknown) => String(error));
        held.close();
        return said && `${person} in ${share} over ${protocol}, ${before} before and ${after} now: ${said}`;
      }),
    );
    this.#held = [];
    return wrong.filter((said) => said !== undefined);
  }

  close(): void {
    for (const held of this.#held) held.close();
    for (const { session } of this.#smb.values()) session.close();
  }

  #rightNow({ person, protocol, share }: Held, next: Office): Right {
    if (protocol === 'nfs') return rightOf(next, protocol, person, share);
    const identity = protocol === 'smb' ? this.#smb.get(`${person} ${share}`)?.identity : 'user';
    return rightAs(next, { protocol, person, identity: identity ?? 'stranger' }, share);
  }

  /** Sessions stay over many changes, as those of people do; who has been put out comes again. */
  async #smbSession({ office, person, share }: Place): Promise<Held | undefined> {
    const key = `${person} ${share}`;
    const identity = identityOf(office, 'smb', person);
    let entered = this.#smb.get(key);
    const before = rightAs(
      office,
      { protocol: 'smb', person, identity: entered?.identity ?? identity },
      share,
    );
    if (before === 'none' || (entered && !entered.session.isOpen)) {
      entered?.session.close();
      this.#smb.delete(key);
      entered = undefined;
    }
    if (rightAs(office, { protocol: 'smb', person, identity }, share) === 'none' && !entered)
      return undefined;
    if (!entered) {
      const { access } = this.#parts;
      const user = `${person}%${office.typed[person]}`;
      const session = new SmbSession(share, { port: access.ports.smb, user }, access.scratch);
      entered = { session, identity };
      this.#smb.set(key, entered);
    }
    const { session } = entered;
    await until(
      `${key} has entered`,
      async () => {
        if (SEED.test(await session.run('get seed.txt -'))) return true;
        await session.run(`tcon ${share}`);
        return false;
      },
      PATIENCE,
    );
    const tried = (after: Right, isSame: boolean): Promise<string | undefined> =>
      smbFault(session, { share, own: `session-${person}`, after, isSame });
    const right = rightAs(office, { protocol: 'smb', person, identity: entered.identity }, share);
    return { protocol: 'smb', person, share, before: right, tried, close: () => undefined };
  }

  async #nfsFile({ office, person, share }: Place): Promise<Held | undefined> {
    const before = rightOf(office, 'nfs', person, share);
    if (before === 'none') return undefined;
    const client = await NfsClient.connect(this.#parts.access.ports.nfs, office.addresses[person]);
    const own = before === 'write' ? await client.open(`${share}/open-${person}`, 'make') : undefined;
    const seed = await client.open(`${share}/seed.txt`, 'open');
    const tried = async (after: Right): Promise<string | undefined> => {
      const [reads, writes] = [
        await status(client, readOf(seed)),
        own && (await status(client, writeOf(own))),
      ];
      if (after === 'none' ? reads === 0 : reads !== 0) return `reading by its handle: ${reads}`;
      if (writes === undefined || (after === 'write') === (writes === 0)) return undefined;
      return `writing by its handle: ${writes}`;
    };
    return { protocol: 'nfs', person, share, before, tried, close: () => client.close() };
  }

  async #upload({ office, person, share }: Place): Promise<Held | undefined> {
    if (rightOf(office, 'webdav', person, share) !== 'write') return undefined;
    const { mountPoint } = this.#parts;
    const name = `held-${person}-${this.#turn}`;
    const file = `${mountPoint(share)}/${name}`;
    const child = this.#curl({ office, person, share: `${share}/${name}` }, '--upload-file', '-');
    const said = textOf(child);
    child.stdin?.write(HALF);
    const drip = setInterval(() => child.stdin?.write('x'), DRIP_MS);
    child.once('close', () => clearInterval(drip));
    const refused = said.then((status) => assert.fail(`${name} is answered ${status} before its end`));
    await Promise.race([
      until(`${name} is on its way to ${share}`, () => existsSync(file), PATIENCE),
      refused,
    ]);
    const tried = async (after: Right): Promise<string | undefined> => {
      clearInterval(drip);
      child.stdin?.end(HALF);
      const status = Number(await within('the end of the upload', PATIENCE.timeoutMs, said));
      const isTaken = status >= 200 && status < 300;
      if (isTaken !== (after === 'write')) return `its upload is answered ${status}`;
      // What was broken off is taken back once its backend has closed it and shows what others have put there.
      // The listing tells: a name that just leaves the write layer answers ESTALE for a moment.
      const isThere = async (): Promise<boolean> => (await readdir(mountPoint(share))).includes(name);
      const isRight = until('what its upload left', async () => (await isThere()) === isTaken, PATIENCE);
      if (!(await isRight.then(() => true).catch(() => false)))
        return `its upload is ${isTaken ? 'not there' : 'not taken back'}`;
      if (isTaken) await until(`${name} is removed`, () => rm(file).then(() => true), PATIENCE);
      return undefined;
    };
    return { protocol: 'webdav', person, share, before: 'write', tried, close: () => child.kill('SIGKILL') };
  }

  async #download({ office, person, share }: Place): Promise<Held | undefined> {
    const before = rightOf(office, 'webdav', person, share);
    if (before === 'none') return undefined;
    // It goes on only when its reader does.
    const child = this.#curl({ office, person, share: `${share}/large.bin` });
    const { stdout } = child;
    if (!stdout) throw new Error('curl has no output');
    await within('the first bytes', PATIENCE.timeoutMs, once(stdout, 'readable'));
    let received = 0;
    const drip = setInterval(() => {
      received += (stdout.read(1) as Buffer | null)?.length ?? 0;
    }, DRIP_MS);
    child.once('close', () => clearInterval(drip));
    const tried = async (after: Right): Promise<string | undefined> => {
      clearInterval(drip);
      const bytes =
        received + (await within('the end of the download', PATIENCE.timeoutMs, lengthOf(stdout)));
      const isWhole = bytes >= LARGE_BYTES;
      return isWhole === (after !== 'none') ? undefined : `its download ends after ${bytes} bytes`;
    };
    return { protocol: 'webdav', person, share, before, tried, close: () => child.kill('SIGKILL') };
  }

  #curl({ office, person, share: path }: Place, ...options: string[]): ChildProcess {
    const login = ['--user', `${person}:${office.typed[person]}`];
    const output = options.length === 0 ? [] : ['--output', '/dev/null', '--write-out', '%{http_code}'];
    const { access } = this.#parts;
    const args = ['--disable', '--silent', ...login, ...output, ...options, davUrl(access, path)];
    const child = spawn('curl', args, { stdio: ['pipe', 'pipe', 'ignore'] });
    child.stdin.on('error', () => undefined);
    access.scratch.defer(() => void child.kill('SIGKILL'));
    return child;
  }
}

/** Whose right changes in the share, and one in seven of the others. */
function isTold({ office, person, share }: Place, next: Office, index: number): boolean {
  return (
    index % 7 === 0 || rightOf(office, 'webdav', person, share) !== rightOf(next, 'webdav', person, share)
  );
}

interface SmbTry {
  readonly share: string;
  readonly own: string;
  readonly after: Right;
  readonly isSame: boolean;
}

async function smbFault(
  session: SmbSession,
  { after, isSame, own, share }: SmbTry,
): Promise<string | undefined> {
  const run = async (command: string): Promise<string> =>
    session.isOpen ? session.run(command) : 'NT_STATUS_CONNECTION_DISCONNECTED';
  // Whose right is another one has been sent out of the share, and may come in again; some clients end by that.
  if (!isSame && !SEED.test(await run('get seed.txt -'))) await run(`tcon ${share}`);
  if (!isSame && !session.isOpen) return undefined;
  const read = await run('get seed.txt -');
  if (SEED.test(read) !== (after !== 'none')) return `reading says ${read.trim()}`;
  if (after === 'none') return undefined;
  // smbclient tells of the two in different streams, of which one may be late.
  const write = `${await run(`put /etc/hostname ${own}`)}${await run(`ls ${own}`)}`;
  const isWritten = new RegExp(`^ +${own} `, 'm').test(write);
  if (isWritten) await run(`rm ${own}`);
  return isWritten === (after === 'write') ? undefined : `writing says ${write.trim()}`;
}

const readOf = ({ handle, state }: OpenFile): Buffer[] => [say.putHandle(handle), say.readAt(state, 0, 100)];
const writeOf = ({ handle, state }: OpenFile): Buffer[] => [
  say.putHandle(handle),
  say.writeAt(state, 0, Buffer.from('more')),
];

/** 0, or the server's error; -1 when there was no answer. */
async function status(client: NfsClient, call: readonly Buffer[]): Promise<number> {
  try {
    await client.wire.call(...call);
    return 0;
  } catch (error) {
    return error instanceof NfsFault ? error.status : -1;
  }
}

async function textOf({ stdout }: ChildProcess): Promise<string> {
  let text = '';
  for await (const piece of stdout ?? []) text += String(piece);
  return text;
}

async function lengthOf(stream: AsyncIterable<Buffer>): Promise<number> {
  let bytes = 0;
  for await (const piece of stream) bytes += piece.length;
  return bytes;
}
