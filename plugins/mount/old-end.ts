import { join } from 'node:path';
import { isAtRest, nanoseconds } from './at-rest.ts';
import { dataFile, readMeta } from './cache-meta.ts';
import type { CacheTrees, FileMeta } from './cache-meta.ts';
import { covers, remoteBytes } from './cache-ranges.ts';
import type { SoleCut } from './sole-cut.ts';

/** A file that has its old end again, as it was before anybody opened it. */
export interface Finding {
  /** As long as it is to be, and as long as it is. */
  readonly bytes: number;
  readonly foundBytes: number;
  /** When it was written to last, by its record. */
  readonly modified: string;
}

export interface OldEnd {
  readonly finding: Finding | undefined;
  readonly next: SoleCut | 'wait' | 'nothing' | 'changed';
}

const NOTHING: OldEnd = { finding: undefined, next: 'nothing' };

interface Cached {
  readonly record: string;
  readonly file: string;
  readonly meta: FileMeta;
  readonly bytes: number;
}

/** Whether a cached file is longer than it was when it was closed, and what is to be done; `former` is what was found about it before. */
export async function findOldEnd(trees: CacheTrees, path: string, former: Finding | undefined): Promise<OldEnd> {
  const [record, file] = [join(trees.meta, path), join(trees.data, path)];
  const meta = await readMeta(record);
  const content = await dataFile(file);
  if (meta === 'torn') return { finding: former, next: 'wait' };
  if (meta === undefined || content === undefined) return NOTHING;
  const now: Cached = { record, file, meta, bytes: content.bytes };
  return meta.Size < content.bytes ? unopened(now, former) : opened(now, former);
}

/** The record still says how long it was. */
async function unopened(now: Cached, former: Finding | undefined): Promise<OldEnd> {
  const { meta, bytes, file } = now;
  if (meta.Dirty && !(await isAtRest(meta, file))) return { finding: former, next: 'wait' };
  const finding: Finding = { bytes: meta.Size, foundBytes: bytes, modified: meta.ModTime };
  return { finding, next: meta.Dirty ? inCache(finding, now) : onNas(finding, now) };
}

/** Somebody opened it since, or all is well. */
function opened(now: Cached, finding: Finding | undefined): OldEnd {
  const { meta, bytes } = now;
  if (finding === undefined || bytes === finding.bytes) return NOTHING;
  if (bytes !== finding.foundBytes || meta.ModTime !== finding.modified) return { finding: undefined, next: 'changed' };
  return { finding, next: meta.Dirty ? 'wait' : onNas(finding, now) };
}

/** Whoever opens the file has rclone save how long it is then. */
function inCache(finding: Finding, { record, file }: Cached): SoleCut {
  const time = String(nanoseconds(finding.modified) ?? 0n);
  const modified = `${time.slice(0, -9)}.${time.slice(-9)}`;
  return { ...finding, record, has: [`\n\t"Size": ${finding.bytes},\n`, timeIn(finding), '"Dirty": true'], inCache: { file, modified } };
}

/** All of it has to be in the cache: else what is cut would be fetched anew. */
function onNas(finding: Finding, { meta, bytes, record }: Cached): SoleCut | 'nothing' {
  const isUp = bytes === remoteBytes(meta) && covers(meta.Rs, bytes);
  return isUp ? { ...finding, record, has: [timeIn(finding), '"Dirty": false'] } : 'nothing';
}

/** Whoever writes to a file that is up has rclone save when. */
function timeIn({ modified }: Finding): string {
  return `"ModTime": ${JSON.stringify(modified)}`;
}
