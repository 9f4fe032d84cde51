/**
 * One lasting connection to an NFS 4.0 server: calls may be under way beside each other, answers are read by
 * their numbers.
 */
import { createConnection } from 'node:net';
import type { Socket } from 'node:net';
import { compoundCall, opaque, operation, uint } from '../../../plugins/nfs/xdr.ts';

const LAST_FRAGMENT = 0x8000_0000;
const ANSWER_MS = 60_000;

/** An error of the server; `status` is its number (nfsstat4). */
export class NfsFault extends Error {
  readonly status: number;

  constructor(status: number) {
    super(`NFS answers ${status}`);
    this.status = status;
  }
}

/** Reads results in their order. */
export class Results {
  private at = 0;
  private readonly bytes: Buffer;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** The next unsigned 32-bit number. */
  uint(): number {
    this.at += 4;
    return this.bytes.readUInt32BE(this.at - 4);
  }

  /** The next `length` bytes, without padding. */
  raw(length: number): Buffer {
    const from = this.at;
    this.at += Math.ceil(length / 4) * 4;
    return this.bytes.subarray(from, from + length);
  }

  /** The next bytes that carry their own length. */
  opaque(): Buffer {
    return this.raw(this.uint());
  }

  /** Passes over a bitmap. */
  words(): void {
    this.raw(4 * this.uint());
  }

  /** Steps over the number and status of operations that give nothing else. */
  done(operations = 1): this {
    this.raw(8 * operations);
    return this;
  }
}

/** A TCP connection that carries compound calls. Calls reject when it ends or after 60 s. */
export class NfsWire {
  private readonly socket: Socket;
  private readonly waiting = new Map<
    number,
    { resolve: (record: Buffer) => void; reject: (error: Error) => void }
  >();
  private pieces: Buffer[] = [];
  private length = 0;
  private record: Buffer[] = [];
  private xid = 1;

  /** `from`: the address on loopback that the client has. */
  constructor(port: number, from = '127.0.0.1') {
    this.socket = createConnection({ host: '127.0.0.1', port, localAddress: from, noDelay: true });
    this.socket.on('data', (piece: Buffer) => this.take(piece));
    this.socket.on('error', (error) => this.fail(error));
    this.socket.on('close', () => this.fail(new Error('the NFS server closes the connection')));
  }

  /** Ends the connection; calls that wait are rejected. */
  close(): void {
    this.socket.destroy();
  }

  /** Rejects with the status when one of the operations fails. */
  async call(...operations: Buffer[]): Promise<Results> {
    this.xid += 1;
    const { xid } = this;
    const answer = new Promise<Buffer>((resolve, reject) => this.waiting.set(xid, { resolve, reject }));
    const timer = setTimeout(
      () => this.fail(new Error(`no answer of the NFS server within ${ANSWER_MS} ms`)),
      ANSWER_MS,
    );
    if (this.socket.destroyed) this.fail(new Error('the connection to the NFS server is closed'));
    else this.socket.write(compoundCall(xid, operations));
    try {
      return resultsOf(await answer);
    } finally {
      clearTimeout(timer);
    }
  }

  private take(piece: Buffer): void {
    this.pieces.push(piece);
    this.length += piece.length;
    for (;;) {
      const fragment = this.fragment();
      if (!fragment) return;
      this.record.push(fragment.bytes);
      if (!fragment.isLast) continue;
      const record = Buffer.concat(this.record);
      this.record = [];
      this.waiting.get(record.readUInt32BE())?.resolve(record);
      this.waiting.delete(record.readUInt32BE());
    }
  }

  private fragment(): { readonly bytes: Buffer; readonly isLast: boolean } | undefined {
    if (this.length < 4) return undefined;
    if ((this.pieces[0]?.length ?? 0) < 4) this.pieces = [Buffer.concat(this.pieces)];
    const head = this.pieces[0]?.readUInt32BE() ?? 0;
    const size = 4 + ((head & ~LAST_FRAGMENT) >>> 0);
    if (this.length < size) return undefined;
    const all = Buffer.concat(this.pieces);
    this.pieces = [all.subarray(size)];
    this.length -= size;
    return { bytes: all.subarray(4, size), isLast: head >= LAST_FRAGMENT };
  }

  private fail(error: Error): void {
    this.waiting.forEach(({ reject }) => reject(error));
    this.waiting.clear();
    this.socket.destroy();
  }
}

function resultsOf(record: Buffer): Results {
  const reply = new Results(record);
  reply.raw(12);
  reply.uint();
  reply.opaque();
  if (reply.uint() !== 0) throw new Error('the NFS server does not take the call');
  const status = reply.uint();
  if (status !== 0) throw new NfsFault(status);
  reply.opaque();
  reply.uint();
  return reply;
}

/** A number as 64 bits. */
export function long(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes;
}

const OP = {
  close: 4,
  commit: 5,
  create: 6,
  lock: 12,
  open: 18,
  openConfirm: 20,
  readdir: 26,
  setAttributes: 34,
  setClientId: 35,
  confirmClientId: 36,
  remove: 28,
  rename: 29,
  renew: 30,
  saveHandle: 32,
  write: 38,
  read: 25,
} as const;
const NO_ATTRIBUTES = Buffer.concat([uint(0), uint(0)]);
const EMPTY_FILE = Buffer.concat([uint(1), uint(1 << 4), opaque(Buffer.alloc(8))]);
const [READ_ONLY, WRITE_ONLY, WRITE_LOCK] = [1, 2, 2];

export interface OpenFile {
  readonly handle: Buffer;
  readonly state: Buffer;
}

/** What the opener wants to do, and what nobody else may do meanwhile: 1 is reading, 2 writing, 3 both. */
export interface Sharing {
  readonly access: number;
  readonly deny: number;
}

export interface FileRange {
  readonly offset: number;
  readonly bytes: number;
}

/** What a client of NFS 4.0 says, with the state that the protocol asks for. */
export const say = {
  ...operation,
  begin: (verifier: Buffer, name: string) =>
    Buffer.concat([
      uint(OP.setClientId),
      verifier,
      opaque(name),
      uint(0x4000_0000),
      opaque('tcp'),
      opaque('127.0.0.1.0.0'),
      uint(1),
    ]),
  confirmBegin: (client: Buffer, verifier: Buffer) =>
    Buffer.concat([uint(OP.confirmClientId), client, verifier]),
  renew: (client: Buffer) => Buffer.concat([uint(OP.renew), client]),
  open: (
    client: Buffer,
    owner: string,
    name: string,
    { access, deny }: Sharing = { access: READ_ONLY, deny: 0 },
  ) =>
    Buffer.concat([
      uint(OP.open),
      uint(0),
      uint(access),
      uint(deny),
      client,
      opaque(owner),
      uint(0),
      uint(0),
      opaque(name),
    ]),
  /** Makes the file, or empties it. */
  make: (client: Buffer, owner: string, name: string) =>
    Buffer.concat([
      uint(OP.open),
      uint(0),
      uint(WRITE_ONLY),
      uint(0),
      client,
      opaque(owner),
      uint(1),
      uint(0),
      EMPTY_FILE,
      uint(0),
      opaque(name),
    ]),
  confirmOpen: (state: Buffer, sequence: number) =>
    Buffer.concat([uint(OP.openConfirm), state, uint(sequence)]),
  close: (state: Buffer, sequence: number) => Buffer.concat([uint(OP.close), uint(sequence), state]),
  /** Of an open file's range, for writing, at once or not at all. */
  lock: (client: Buffer, owner: string, state: Buffer, { offset, bytes }: FileRange) =>
    Buffer.concat([
      uint(OP.lock),
      uint(WRITE_LOCK),
      uint(0),
      long(offset),
      long(bytes),
      uint(1),
      uint(2),
      state,
      uint(0),
      client,
      opaque(owner),
    ]),
  setLength: (state: Buffer, bytes: number) =>
    Buffer.concat([uint(OP.setAttributes), state, uint(1), uint(1 << 4), opaque(long(bytes))]),
  remove: (name: string) => Buffer.concat([uint(OP.remove), opaque(name)]),
  saveHandle: () => uint(OP.saveHandle),
  /** From the folder whose handle was saved to the one whose handle was put. */
  rename: (from: string, to: string) => Buffer.concat([uint(OP.rename), opaque(from), opaque(to)]),
  makeFolder: (name: string) => Buffer.concat([uint(OP.create), uint(2), opaque(name), NO_ATTRIBUTES]),
  readAt: (state: Buffer, offset: number, count: number) =>
    Buffer.concat([uint(OP.read), state, long(offset), uint(count)]),
  writeAt: (state: Buffer, offset: number, data: Buffer) =>
    Buffer.concat([uint(OP.write), state, long(offset), uint(0), opaque(data)]),
  commit: () => Buffer.concat([uint(OP.commit), long(0), uint(0)]),
  list: (cookie: Buffer, verifier: Buffer) =>
    Buffer.concat([uint(OP.readdir), cookie, verifier, uint(32_768), uint(65_536), uint(1), uint(1 << 1)]),
};
