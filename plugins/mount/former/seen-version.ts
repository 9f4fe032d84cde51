/** Whether the remote still has the version of a file that a change in rclone's write cache was made on. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import type { RemoteEntry, RemoteVersion } from 'mountkeeper';
import { timeOf } from '../cache/completeness.ts';

/**
 * By rclone's fingerprint of what it last saw there: `SIZE[,TIME][,HASH]`, empty for nothing
 * (https://github.com/rclone/rclone/blob/master/fs/fingerprint.go). Where it tells a size alone (plain WebDAV, a bucket
 * without hashes), nobody knows whether it is the same: false.
 */
export function isSeenVersion(fingerprint: string, now: RemoteEntry | undefined): boolean {
  if (now === undefined) return true;
  if (fingerprint === '' || now.kind !== 'file') return false;
  const [size, ...marks] = fingerprint.split(',');
  const said = marks.filter((mark) => mark !== '').map((mark) => isOf(mark, now.version));
  return Number(size) === now.version.bytes && said.includes(true) && !said.includes(false);
}

/** Undefined: a hash of a kind that is not asked for here, as OneDrive and Dropbox have their own. */
function isOf(mark: string, { modifiedMs, hash }: RemoteVersion): boolean | undefined {
  const time = timeOf(mark);
  if (time !== undefined) return Math.trunc(time) === Math.trunc(modifiedMs);
  return hash === undefined ? undefined : hash.value === mark;
}

/**
 * Whether the remote has this very content already, which an upload brought there that nobody heard the end of. By hash
 * alone: others' version may have its size, and nearly its time.
 */
export async function hasContent(now: RemoteEntry | undefined, file: string): Promise<boolean> {
  if (now?.kind !== 'file' || now.version.hash === undefined) return false;
  const hash = createHash(now.version.hash.kind);
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex') === now.version.hash.value;
}
