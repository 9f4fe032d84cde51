/**
 * A client of NFS 4.0 that comes by path and opens, reads, writes and closes as a kernel's does; libnfs's
 * tools cannot write more than 3,000 bytes.
 */
import { randomBytes } from 'node:crypto';
import { NfsFault, NfsWire, Results, say } from './nfs-wire.ts';
import type { OpenFile, Sharing } from './nfs-wire.ts';

const BLOCK_BYTES = 256 * 1024;
const AT_ONCE = 4;
const RENEW_MS = 5_000;
const EXISTS = 17;
const CONFIRM = 2;

/** Something to read from at a place, as a file handle of the local disk. */
export interface Source {
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
}

/** One NFS 4.0 client with its lease, which it renews. Calls reject with an `NfsFault`. */
export class NfsClient {
  readonly wire: NfsWire;
  /** The number that the server gave it. */
  readonly client: Buffer;
  private readonly timer: NodeJS.Timeout;
  private owners = 0;

  private constructor(wire: NfsWire, client: Buffer) {
    this.wire = wire;
    this.client = client;
    this.timer = setInterval(() => void wire.call(say.renew(client)).catch(() => undefined), RENEW_MS);
    this.timer.unref();
  }

  /** Connects to a server on loopback, from an address there, and makes itself known to it. */
  static async connect(port: number, from?: string): Promise<NfsClient> {
    const wire = new NfsWire(port, from);
    const answer = (
      await wire.call(say.begin(randomBytes(8), `mountkeeper ${randomBytes(6).toString('hex')}`))
    ).done();
    const client = answer.raw(8);
    await wire.call(say.confirmBegin(client, answer.raw(8)));
    return new NfsClient(wire, client);
  }

  /** Ends the connection without giving anything back, as a client that was switched off. */
  close(): void {
    clearInterval(this.timer);
    this.wire.close();
  }

  /** Names in a folder, in the order of the server. */
  async list(path: string): Promise<string[]> {
    const folder = await this.handle(path);
    const names: string[] = [];
    let cookie: Buffer = Buffer.alloc(8);
    let verifier: Buffer = Buffer.alloc(8);
    for (;;) {
      const answer = (await this.wire.call(say.putHandle(folder), say.list(cookie, verifier))).done(2);
      verifier = answer.raw(8);
      const page = entries(answer);
      names.push(...page.names);
      if (page.isLast) return names;
      cookie = page.cookie;
    }
  }

  /** Makes the folder and those above it. */
  async makeFolder(path: string): Promise<void> {
    const names = path.split('/');
    for (let depth = 2; depth <= names.length; depth += 1) {
      await this.wire
        .call(...way(names.slice(0, depth - 1)), say.makeFolder(names[depth - 1] ?? ''))
        .catch((error: unknown) => {
          if (!(error instanceof NfsFault && error.status === EXISTS)) throw error;
        });
    }
  }

  /**
   * Creates or opens a file and writes `bytes` of the source, four blocks at a time, committed at the end.
   */
  async write(path: string, source: Source, bytes: number): Promise<void> {
    const file = await this.open(path, 'make');
    let offset = 0;
    const writeOn = async (): Promise<void> => {
      while (offset < bytes) {
        const [at, data] = [offset, Buffer.alloc(Math.min(BLOCK_BYTES, bytes - offset))];
        offset += data.length;
        await source.read(data, 0, data.length, at);
        const written = (await this.wire.call(say.putHandle(file.handle), say.writeAt(file.state, at, data)))
          .done(2)
          .uint();
        if (written !== data.length) throw new Error(`NFS took ${written} of ${data.length} bytes`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, writeOn));
    await this.wire.call(say.putHandle(file.handle), say.commit());
    await this.wire.call(say.putHandle(file.handle), say.close(file.state, 2));
  }

  /** The content of a file, one block ahead of the reader. */
  async *read(path: string): AsyncGenerator<Buffer> {
    const file = await this.open(path, 'open');
    const ask = (offset: number) =>
      this.wire
        .call(say.putHandle(file.handle), say.readAt(file.state, offset, BLOCK_BYTES))
        .then((answer) => {
          answer.done(2);
          const isLast = answer.uint() === 1;
          return { isLast, data: answer.opaque() };
        });
    // One block ahead, as every client reads.
    let next = ask(0);
    for (let offset = 0; ;) {
      const { isLast, data } = await next;
      offset += data.length;
      if (!isLast) next = ask(offset);
      yield data;
      if (isLast) break;
    }
    await this.wire.call(say.putHandle(file.handle), say.close(file.state, 2));
  }

  /** So many bytes at each of the places, one after the other. */
  async readPlaces(path: string, places: readonly number[], bytes: number): Promise<void> {
    const file = await this.open(path, 'open');
    for (const place of places) {
      const answer = (
        await this.wire.call(say.putHandle(file.handle), say.readAt(file.state, place, bytes))
      ).done(2);
      answer.uint();
      const { length } = answer.opaque();
      if (length !== bytes) throw new Error(`NFS gave ${length} of ${bytes} bytes at ${place}`);
    }
    await this.wire.call(say.putHandle(file.handle), say.close(file.state, 2));
  }

  /** Deletes a file or an empty folder. */
  async remove(path: string): Promise<void> {
    const names = path.split('/');
    await this.wire.call(...way(names.slice(0, -1)), say.remove(names.at(-1) ?? ''));
  }

  /** Within one folder. */
  async rename(folder: string, from: string, to: string): Promise<void> {
    const handle = say.putHandle(await this.handle(folder));
    await this.wire.call(handle, say.saveHandle(), handle, say.rename(from, to));
  }

  private async handle(path: string): Promise<Buffer> {
    const names = path === '' ? [] : path.split('/');
    return (await this.wire.call(...way(names), say.getHandle())).done(2 + names.length).opaque();
  }

  /** With `sharing`, an existing file. */
  async open(path: string, how: 'open' | 'make', sharing?: Sharing): Promise<OpenFile> {
    const names = path.split('/');
    this.owners += 1;
    const opening = say[how](this.client, `owner ${this.owners}`, names.at(-1) ?? '', sharing);
    const answer = (await this.wire.call(...way(names.slice(0, -1)), opening, say.getHandle())).done(
      names.length + 1,
    );
    const state = answer.raw(16);
    answer.raw(20);
    const flags = answer.uint();
    answer.words();
    if (answer.uint() !== 0) throw new Error('NFS delegated a file though it is told not to');
    const handle = answer.done().opaque();
    if ((flags & CONFIRM) === 0) return { handle, state };
    return {
      handle,
      state: (await this.wire.call(say.putHandle(handle), say.confirmOpen(state, 1))).done(2).raw(16),
    };
  }
}

function way(names: readonly string[]): Buffer[] {
  return [say.putRoot(), ...names.map((name) => say.lookup(name))];
}

function entries(answer: Results): {
  readonly names: string[];
  readonly cookie: Buffer;
  readonly isLast: boolean;
} {
  const names: string[] = [];
  let cookie: Buffer = Buffer.alloc(8);
  while (answer.uint() === 1) {
    cookie = answer.raw(8);
    names.push(answer.opaque().toString('utf8'));
    answer.words();
    answer.opaque();
  }
  return { names, cookie, isLast: answer.uint() === 1 };
}
