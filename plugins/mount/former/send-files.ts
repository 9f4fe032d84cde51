/**
 * Sends the dirty files of a former version's write cache, each only over the version that it was made on. What others
 * saved since keeps its name: what waited goes up beside it, by the name of a conflict.
 */
import { link, mkdir, open, rm, utimes } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { hostname } from 'node:os';
import { conflictPath } from 'mountkeeper';
import type { Clock, Logger, RemoteEntry } from 'mountkeeper';
import { dataFile, eachOf, filesBelow, readMeta, treesOf, writeMeta } from '../cache/metadata.ts';
import type { FileMeta } from '../cache/metadata.ts';
import { covers, missingRanges } from '../cache/ranges.ts';
import type { ByteRange } from '../cache/ranges.ts';
import { rclonePath } from '../rclone/kept-names.ts';
import type { RcloneFiles } from '../rclone/remote-files.ts';
import { recoveredPath } from '../recovery/recovered.ts';
import { hasContent, isSeenVersion } from './seen-version.ts';

const FILES_AT_ONCE = 4;
const PIECE_BYTES = 1_048_576;
/** What a file is completed with, in the cache folder. */
const REST = 'rest-of-former';
/** No version on the remote has it: rclone drops such a clean file as outdated. */
const NO_VERSION = '-1';

export interface FormerSending {
  readonly cacheDir: string;
  /** The share's path on the remote. */
  readonly remotePath: string;
  readonly remote: RcloneFiles;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

interface Waiting {
  /** In the share, as rclone names it. */
  readonly path: string;
  /** In the cache's trees. */
  readonly cached: string;
  readonly data: string;
  readonly metaFile: string;
  readonly meta: FileMeta;
  readonly bytes: number;
  readonly modifiedMs: number;
}

/**
 * Call it after `mendFormer`, while no rclone uses the cache. Tries every file; rejects with the first failure. Called
 * again, it goes on with what is left.
 */
export async function sendFormer(sending: FormerSending): Promise<void> {
  const { cacheDir, signal } = sending;
  await rm(join(cacheDir, REST), { recursive: true, force: true });
  let failure: unknown;
  await eachOf(filesBelow(treesOf(cacheDir).meta), FILES_AT_ONCE, async (cached) => {
    signal.throwIfAborted();
    try {
      const waiting = await waitingAt(cached, sending);
      if (waiting) await send(waiting, sending);
    } catch (error) {
      failure ??= error;
    }
  });
  await rm(join(cacheDir, REST), { recursive: true, force: true });
  if (failure !== undefined) throw failure;
}

async function waitingAt(
  cached: string,
  { cacheDir, remotePath }: FormerSending,
): Promise<Waiting | undefined> {
  const trees = treesOf(cacheDir);
  const [data, metaFile] = [join(trees.data, cached), join(trees.meta, cached)];
  const meta = await readMeta(metaFile);
  if (meta === undefined || meta === 'torn' || !meta.Dirty) return undefined;
  const content = await dataFile(data);
  const share = remotePath.split('/').filter((name) => name !== '');
  const names = cached.split('/');
  // What belongs to another place waits until the share leads there again.
  if (content === undefined || share.some((name, index) => names[index] !== name)) return undefined;
  const path = rclonePath(names.slice(share.length).join('/'));
  return { path, cached, data, metaFile, meta, bytes: content.bytes, modifiedMs: content.modifiedMs };
}

async function send(waiting: Waiting, sending: FormerSending): Promise<void> {
  const { remote, signal } = sending;
  const { path, data, meta, bytes } = waiting;
  const now = await remote.stat(path, { signal, hash: true });
  const isWhole = covers(meta.Rs, bytes);
  // Of a file that is not wholly here, the rest went with the version that it was made on.
  if (!isSeenVersion(meta.Fingerprint, now) || (!isWhole && now === undefined))
    return isWhole ? sendBeside(waiting, now, sending) : keep(waiting, sending);
  const checkSame = async (): Promise<void> => {
    if (!isSame(now, await remote.stat(path, { signal, hash: true })))
      throw new Error(`others are saving ${waiting.path} at this moment`);
  };
  if (!isWhole) await complete(waiting, sending, checkSame);
  // Where the remote has no second name to bring it to, nothing asks in between.
  await checkSame();
  await remote.upload(data, path, { signal, isReplacing: now !== undefined, beforeNaming: checkSame });
  await arrived(path, waiting, sending);
}

function isSame(one: RemoteEntry | undefined, other: RemoteEntry | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

async function sendBeside(
  waiting: Waiting,
  theirs: RemoteEntry | undefined,
  sending: FormerSending,
): Promise<void> {
  const { remote, signal, clock, log } = sending;
  if (await hasContent(theirs, waiting.data)) return done(waiting);
  const naming = { now: clock.now(), host: hostname() };
  let again = 0;
  let copy = conflictPath(waiting.path, naming, again);
  for (
    ;
    (await remote.stat(copy, { signal })) !== undefined;
    copy = conflictPath(waiting.path, naming, again)
  )
    again += 1;
  await remote.upload(waiting.data, copy, { signal });
  log.warn(
    { path: waiting.path, copy },
    'others saved a file that waited from a former version, or it cannot be told: both versions are on the NAS',
  );
  await arrived(copy, waiting, sending);
}

/** Rejects where the remote does not have it; then it still waits. */
async function arrived(path: string, waiting: Waiting, { remote, signal }: FormerSending): Promise<void> {
  const now = await remote.stat(path, { signal });
  if (now?.kind !== 'file' || now.version.bytes !== waiting.bytes)
    throw new Error(`the remote does not have ${path} as it was sent`);
  await done(waiting);
}

/** Clean first: content without metadata would be taken for something to recover. */
async function done({ metaFile, data, meta }: Waiting): Promise<void> {
  await writeMeta(metaFile, { ...meta, Dirty: false, Fingerprint: NO_VERSION });
  await rm(data, { force: true });
  await rm(metaFile, { force: true });
}

async function keep(waiting: Waiting, sending: FormerSending): Promise<void> {
  const kept = await recoveredPath(waiting.cached, sending);
  await link(waiting.data, kept);
  sending.log.warn(
    { path: waiting.path, kept },
    'others saved a file of which a former version had only changed parts: the NAS keeps theirs, the parts are kept',
  );
  await done(waiting);
}

/** Adds what is not here, from the version that the change was made on; its time stays that of the change. */
async function complete(
  waiting: Waiting,
  { cacheDir, remote, signal }: FormerSending,
  checkSame: () => Promise<void>,
): Promise<void> {
  const { path, cached, data, meta, bytes, modifiedMs, metaFile } = waiting;
  const rest = join(cacheDir, REST, cached);
  await mkdir(dirname(rest), { recursive: true, mode: 0o700 });
  await remote.download(path, rest, { signal });
  await checkSame();
  const [from, to] = [await open(rest, 'r'), await open(data, 'r+')];
  try {
    for (const gap of missingRanges([{ Pos: 0, Size: bytes }], meta.Rs ?? [])) await copyRange(from, to, gap);
    await to.sync();
  } finally {
    await from.close();
    await to.close();
  }
  await utimes(data, modifiedMs / 1_000, modifiedMs / 1_000);
  await writeMeta(metaFile, { ...meta, Size: bytes, Rs: [{ Pos: 0, Size: bytes }] });
  await rm(rest, { force: true });
}

/** What lies behind the end of the shorter one stays zeros. */
async function copyRange(from: FileHandle, to: FileHandle, { Pos, Size }: ByteRange): Promise<void> {
  const piece = Buffer.alloc(Math.min(PIECE_BYTES, Size));
  for (let position = Pos; position < Pos + Size;) {
    const length = Math.min(piece.length, Pos + Size - position);
    const { bytesRead } = await from.read(piece, 0, length, position);
    if (bytesRead === 0) return;
    await to.write(piece, 0, bytesRead, position);
    position += bytesRead;
  }
}
