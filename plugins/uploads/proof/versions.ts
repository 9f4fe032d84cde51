/** Whether two versions are the same, as far as size, time and hashes can tell. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { RemoteVersion } from 'mountkeeper';
import type { Identity, Thing } from '../compare/records.ts';

/**
 * A time that the remote reported is reported again with this precision, even where the remote does not
 * store files' times.
 */
const REMOTE_TIME_MS = 1_000;
const HASHES: ReadonlySet<string> = new Set(['md5', 'sha1', 'sha256']);

/** The size and time that a local file would have on the remote. */
export interface Look {
  readonly bytes: number;
  readonly modifiedMs: number;
}

export function lookOf({ bytes, modifiedNs }: Pick<Identity, 'bytes' | 'modifiedNs'>): Look {
  return { bytes, modifiedMs: Number(BigInt(modifiedNs) / 1_000n) / 1_000 };
}

/** True when the remote still has the same version. */
export function isSameVersion(a: RemoteVersion, b: RemoteVersion, precisionMs: number): boolean {
  if (
    a.hash !== undefined &&
    b.hash !== undefined &&
    a.hash.kind === b.hash.kind &&
    a.hash.value !== b.hash.value
  )
    return false;
  return (
    a.bytes === b.bytes &&
    isNear(a.modifiedMs, b.modifiedMs, Number.isFinite(precisionMs) ? precisionMs : REMOTE_TIME_MS)
  );
}

export function isSameThing(a: Thing, b: Thing, precisionMs: number): boolean {
  if (a.kind === 'file' && b.kind === 'file') return isSameVersion(a.version, b.version, precisionMs);
  return a.kind === b.kind;
}

/**
 * Whether the remote's version may be this local file. On a remote without modification times, the size
 * alone proves nothing.
 */
export function looksLike(version: RemoteVersion, local: Look, precisionMs: number): boolean {
  return (
    version.bytes === local.bytes &&
    (Number.isFinite(precisionMs) ? isNear(version.modifiedMs, local.modifiedMs, precisionMs) : false)
  );
}

/**
 * Whether the remote may have received a file of this size and time just now; the time counts only where
 * the remote stores it.
 */
export function couldBe(version: RemoteVersion, local: Look, precisionMs: number): boolean {
  return version.bytes === local.bytes && isNear(version.modifiedMs, local.modifiedMs, precisionMs);
}

/**
 * True or false where the remote has a hash that can be computed here, too; undefined otherwise. A path must be one
 * that no user can put anything at: it is opened as it is.
 */
export async function hasSameContent(
  file: string | FileHandle,
  version: RemoteVersion,
  signal: AbortSignal,
): Promise<boolean | undefined> {
  if (version.hash === undefined || !HASHES.has(version.hash.kind)) return undefined;
  const hash = createHash(version.hash.kind);
  const content =
    typeof file === 'string' ? createReadStream(file) : file.createReadStream({ autoClose: false, start: 0 });
  await pipeline(content, hash, { signal });
  return hash.digest('hex') === version.hash.value.toLowerCase();
}

function isNear(a: number, b: number, precisionMs: number): boolean {
  return Math.abs(a - b) < Math.max(precisionMs, 1);
}
