import { randomBytes } from 'node:crypto';
import { askOnce } from 'mountkeeper';
import type { ServerAddress } from 'mountkeeper';

/** SMB 2.1, 3.0, 3.0.2: enough to check that current clients are served. */
const DIALECTS = [0x0210, 0x0300, 0x0302] as const;
const HEADER_BYTES = 64;
const SIGNING_ENABLED = 1;

/** A negotiate request, which every client sends first, with its length prefix. */
export function negotiateRequest(guid: Buffer = randomBytes(16)): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.write('\xfeSMB', 0, 'latin1');
  header.writeUInt16LE(HEADER_BYTES, 4);
  header.writeUInt16LE(1, 14);
  const body = Buffer.alloc(36 + 2 * DIALECTS.length);
  body.writeUInt16LE(36, 0);
  body.writeUInt16LE(DIALECTS.length, 2);
  body.writeUInt16LE(SIGNING_ENABLED, 4);
  guid.copy(body, 12, 0, 16);
  DIALECTS.forEach((dialect, index) => body.writeUInt16LE(dialect, 36 + 2 * index));
  const length = Buffer.alloc(4);
  length.writeUInt32BE(header.length + body.length);
  return Buffer.concat([length, header, body]);
}

/**
 * The dialect that the server chose; undefined while the answer is incomplete. Throws when it is not a
 * valid one.
 */
export function readNegotiateAnswer(bytes: Buffer): number | undefined {
  if (bytes.length < 4) return undefined;
  const length = bytes.readUIntBE(1, 3);
  if (bytes[0] !== 0 || length < HEADER_BYTES + 8 || length > 65_536)
    throw new Error('what listens there is no SMB server');
  if (bytes.length < 4 + length) return undefined;
  const message = bytes.subarray(4, 4 + length);
  if (message.toString('latin1', 0, 4) !== '\xfeSMB' || message.readUInt16LE(12) !== 0)
    throw new Error('what listens there is no SMB2 server');
  const status = message.readUInt32LE(8);
  if (status !== 0) throw new Error(`the server refuses to negotiate (status 0x${status.toString(16)})`);
  return message.readUInt16LE(HEADER_BYTES + 4);
}

/** Resolves with the dialect when a server answers at the address before the signal aborts. */
export function negotiate(address: ServerAddress, signal: AbortSignal): Promise<number> {
  return askOnce(address, { request: negotiateRequest(), read: readNegotiateAnswer }, signal);
}
