/** The parts of XDR and ONC RPC that a request to an NFS 4 server needs. */
const CALL = 0;
const RPC_VERSION = 2;
const NFS_PROGRAM = 100_003;
const NFS_VERSION = 4;
const COMPOUND = 1;
const LAST_FRAGMENT = 0x8000_0000;

export const OP = { getattr: 9, getfh: 10, lookup: 15, putfh: 22, putrootfh: 24, read: 25 } as const;

export function uint(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

/** Length, bytes, and zeros up to the next multiple of four. */
export function opaque(bytes: Buffer | string): Buffer {
  const content = typeof bytes === 'string' ? Buffer.from(bytes, 'utf8') : bytes;
  return Buffer.concat([uint(content.length), content, Buffer.alloc((4 - (content.length % 4)) % 4)]);
}

export const operation = {
  putRoot: (): Buffer => uint(OP.putrootfh),
  lookup: (name: string): Buffer => Buffer.concat([uint(OP.lookup), opaque(name)]),
  /** Asks only for the type. */
  getType: (): Buffer => Buffer.concat([uint(OP.getattr), uint(1), uint(1 << 1)]),
  getHandle: (): Buffer => uint(OP.getfh),
  putHandle: (handle: Buffer): Buffer => Buffer.concat([uint(OP.putfh), opaque(handle)]),
  /** With the anonymous state id, which needs no open file. */
  read: (count: number): Buffer =>
    Buffer.concat([uint(OP.read), Buffer.alloc(16), Buffer.alloc(8), uint(count)]),
};

/** A record in the form for TCP. */
export function compoundCall(xid: number, operations: readonly Buffer[]): Buffer {
  const credentials = Buffer.concat([uint(0), opaque('mountkeeper'), uint(0), uint(0), uint(0)]);
  const body = Buffer.concat([
    uint(xid),
    uint(CALL),
    uint(RPC_VERSION),
    uint(NFS_PROGRAM),
    uint(NFS_VERSION),
    uint(COMPOUND),
    uint(1),
    opaque(credentials),
    uint(0),
    uint(0),
    opaque('look'),
    uint(0),
    uint(operations.length),
    ...operations,
  ]);
  return Buffer.concat([uint((LAST_FRAGMENT | body.length) >>> 0), body]);
}

export interface CompoundAnswer {
  /** 0 when every operation succeeded, else the NFS error number. */
  readonly status: number;
  readonly count: number;
  /** The results, beginning with the first operation's number. */
  readonly results: Buffer;
}

/** Undefined while the answer is incomplete. Throws when it is not a valid one. */
export function readCompoundAnswer(bytes: Buffer, xid: number): CompoundAnswer | undefined {
  if (bytes.length < 4) return undefined;
  const length = (bytes.readUInt32BE() & 0x7fff_ffff) >>> 0;
  if (length < 24 || length > 1_048_576) throw new Error('what listens there is no NFS server');
  if (bytes.length < 4 + length) return undefined;
  const record = bytes.subarray(4, 4 + length);
  if (record.readUInt32BE(0) !== xid || record.readUInt32BE(4) !== 1)
    throw new Error('what listens there is no NFS server');
  if (record.readUInt32BE(8) !== 0) throw new Error('the NFS server refuses the call');
  const afterVerifier = 20 + padded(record.readUInt32BE(16));
  const accepted = record.readUInt32BE(afterVerifier);
  if (accepted !== 0) throw new Error(`the NFS server does not take the call (${accepted})`);
  const status = record.readUInt32BE(afterVerifier + 4);
  const afterTag = afterVerifier + 12 + padded(record.readUInt32BE(afterVerifier + 8));
  return { status, count: record.readUInt32BE(afterTag), results: record.subarray(afterTag + 4) };
}

function padded(length: number): number {
  return Math.ceil(length / 4) * 4;
}
