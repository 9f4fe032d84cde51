import { link, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Clock, Logger, Processes } from 'mountkeeper';
import { blocksOf, writtenZeros } from '../cache/disk-blocks.ts';
import { dataFile, eachOf, readMeta, treesOf, writeMeta } from '../cache/metadata.ts';
import type { CacheTrees, FileMeta } from '../cache/metadata.ts';
import { clearRescued } from './failed-write-back.ts';
import { covers, presentRanges } from '../cache/ranges.ts';
import type { FindZeros } from '../cache/ranges.ts';
import { hasQuarantined, restoreQuarantined } from './restore.ts';
import { recoveredPath } from './recovered.ts';

/**
 * This file exists while rclone uses the cache, and after it ended in any other way than an orderly stop.
 * Its age tells since when.
 */
const RUNNING_FILE = 'in-use';
const FILES_AT_ONCE = 16;

interface Repair {
  readonly cacheDir: string;
  readonly trees: CacheTrees;
  readonly log: Logger;
  readonly clock: Clock;
  readonly zeros: FindZeros | undefined;
  /** Metadata without content, and content without metadata: the halves of interrupted renames. */
  readonly lonelyMeta: string[];
  readonly lonelyData: string[];
  /** Paths of the files that rclone will upload once it runs. */
  readonly dirty: Set<string>;
}

/**
 * Repairs what a killed rclone left half-done, before the next one throws it away: rclone deletes content
 * without readable metadata, and it completes a dirty file from the remote where the metadata does not list
 * yet what was written. Resolves with the paths of all dirty files; after an orderly end there are none,
 * and nothing is read. Without `processes`, zeros that were written count as never written.
 */
export async function repairCache(
  cacheDir: string,
  log: Logger,
  clock: Clock,
  processes?: Pick<Processes, 'run'>,
): Promise<readonly string[]> {
  const running = join(cacheDir, RUNNING_FILE);
  const wasRunning = await stat(running).then(
    () => true,
    () => false,
  );
  const zeros =
    processes &&
    ((async (file, content) => writtenZeros(await blocksOf(file, processes), content)) satisfies
      FindZeros | undefined);
  const repair: Repair = {
    cacheDir,
    trees: treesOf(cacheDir),
    log,
    clock,
    zeros,
    lonelyMeta: [],
    lonelyData: [],
    dirty: new Set(),
  };
  if (wasRunning || (await hasQuarantined(cacheDir))) {
    await clearRescued({ cacheDir, trees: repair.trees, clock, log });
    await restoreQuarantined({ cacheDir, trees: repair.trees, clock, log });
    await eachOf(folderPairs(repair.trees), 1, (pair) => walk(pair, repair));
    await joinRenamed(repair);
    for (const path of repair.lonelyData) await keepAside(path, repair);
  }
  const handle = await open(running, 'w', 0o600);
  await handle.close();
  return [...repair.dirty];
}

/** Marks an orderly end, after which nothing needs repair. */
export async function markClean(cacheDir: string): Promise<void> {
  await rm(join(cacheDir, RUNNING_FILE), { force: true });
}

/**
 * Removes what a killed rclone left half-done in a cache of files that were only read: content without
 * metadata, or with incomplete metadata, which could be taken for a file that users wrote.
 */
export async function dropTorn(trees: CacheTrees): Promise<void> {
  await eachOf(folderPairs(trees), 1, async ({ path, data, meta }) => {
    const isOfUse = async (name: string): Promise<boolean> => {
      if (!meta.has(name)) return false;
      const found = await readMeta(join(trees.meta, path, name));
      return found !== undefined && found !== 'torn';
    };
    await eachOf([...data], FILES_AT_ONCE, async (name) => {
      if (await isOfUse(name)) return;
      await rm(join(trees.data, path, name), { force: true });
      await rm(join(trees.meta, path, name), { force: true });
    });
  });
}

interface Folder {
  readonly path: string;
  readonly data: ReadonlySet<string>;
  readonly meta: ReadonlySet<string>;
}

/** Walks both trees in parallel, one folder at a time. */
async function* folderPairs(trees: CacheTrees): AsyncGenerator<Folder> {
  const folders = [''];
  for (let path = folders.pop(); path !== undefined; path = folders.pop()) {
    const [data, meta] = await Promise.all([
      namesIn(join(trees.data, path)),
      namesIn(join(trees.meta, path)),
    ]);
    for (const name of new Set([...data.folders, ...meta.folders])) folders.push(join(path, name));
    yield { path, data: data.files, meta: meta.files };
  }
}

async function walk(folder: Folder, repair: Repair): Promise<void> {
  const both: string[] = [];
  for (const name of folder.meta) {
    if (name.endsWith('.mountkeeper-new')) continue;
    if (folder.data.has(name)) both.push(join(folder.path, name));
    else repair.lonelyMeta.push(join(folder.path, name));
  }
  for (const name of folder.data) if (!folder.meta.has(name)) repair.lonelyData.push(join(folder.path, name));
  await eachOf(both, FILES_AT_ONCE, (path) => mend(path, repair));
}

async function namesIn(
  folder: string,
): Promise<{ readonly files: ReadonlySet<string>; readonly folders: readonly string[] }> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return [];
    throw error;
  });
  return {
    files: new Set(entries.filter((entry) => entry.isFile()).map((entry) => entry.name)),
    folders: entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name),
  };
}

async function mend(path: string, repair: Repair): Promise<void> {
  const meta = await readMeta(join(repair.trees.meta, path));
  if (meta === undefined || (meta !== 'torn' && !meta.Dirty)) return;
  const content = await dataFile(join(repair.trees.data, path));
  if (content === undefined) return;
  if (meta === 'torn') return mendTorn(path, content, repair);
  repair.dirty.add(path);
  if (!covers(meta.Rs, content.bytes)) await mendRanges(path, meta, content.bytes, repair);
}

/**
 * The metadata was being written when rclone was killed. Complete content is uploaded; content with holes
 * may belong to a file that was only being read.
 */
async function mendTorn(
  path: string,
  content: { readonly bytes: number; readonly isWhole: boolean; readonly modifiedMs: number },
  repair: Repair,
): Promise<void> {
  if (!content.isWhole) return keepAside(path, repair);
  const at = new Date(content.modifiedMs).toISOString();
  const meta: FileMeta = {
    ModTime: at,
    ATime: at,
    Size: content.bytes,
    Rs: [{ Pos: 0, Size: content.bytes }],
    Fingerprint: '',
    Dirty: true,
  };
  await writeMeta(join(repair.trees.meta, path), meta);
  repair.dirty.add(path);
  repair.log.warn({ path, bytes: content.bytes }, 'file whose record was cut off is uploaded again');
}

/**
 * Missing parts are fetched from the remote, so a gap beyond the remote's end is marked as present: it
 * would keep rclone 1.60 waiting for ever.
 */
async function mendRanges(path: string, meta: FileMeta, bytes: number, repair: Repair): Promise<void> {
  const ranges = await presentRanges(meta, join(repair.trees.data, path), bytes, repair.zeros);
  await writeMeta(join(repair.trees.meta, path), { ...meta, Size: bytes, Rs: ranges });
  repair.log.info(
    {
      path,
      bytes,
      before: { size: meta.Size, ranges: meta.Rs?.length ?? 0, fingerprint: meta.Fingerprint },
      ranges: ranges.length,
    },
    'record of a file that was being written is completed',
  );
}

// ------------------------------------------------------------ renames interrupted between content and
// metadata

async function joinRenamed(repair: Repair): Promise<void> {
  for (const from of repair.lonelyMeta) {
    const meta = await readMeta(join(repair.trees.meta, from));
    if (meta === undefined || meta === 'torn' || !meta.Dirty) continue;
    const to = (await contentOf(meta, repair.lonelyData, repair)) ?? (await recentTwin(meta, repair));
    if (to === undefined) {
      repair.log.error({ path: from, bytes: meta.Size }, 'content of a dirty file is missing');
      continue;
    }
    const index = repair.lonelyData.indexOf(to);
    if (index >= 0) repair.lonelyData.splice(index, 1);
    await mkdir(dirname(join(repair.trees.meta, to)), { recursive: true, mode: 0o700 });
    await rename(join(repair.trees.meta, from), join(repair.trees.meta, to));
    repair.dirty.add(to);
    repair.log.warn({ from, to }, 'rename that was cut off is completed');
  }
}

/**
 * The content that was closed with this metadata: rclone gives it the metadata's time. A single candidate
 * is accepted without this check.
 */
async function contentOf(
  meta: FileMeta,
  candidates: readonly string[],
  repair: Repair,
): Promise<string | undefined> {
  const matches: string[] = [];
  for (const path of candidates)
    if (await matchesContent(meta, join(repair.trees.data, path))) matches.push(path);
  return matches[0] ?? (candidates.length === 1 ? candidates[0] : undefined);
}

/** After a rename over a cached file, the content has the metadata of the file that it replaced. */
async function recentTwin(meta: FileMeta, repair: Repair): Promise<string | undefined> {
  const folders = [''];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const { files, folders: below } = await namesIn(join(repair.trees.data, folder));
    for (const name of below) folders.push(join(folder, name));
    for (const name of files)
      if (await matchesContent(meta, join(repair.trees.data, folder, name))) return join(folder, name);
  }
  return undefined;
}

async function matchesContent(meta: FileMeta, file: string): Promise<boolean> {
  const found = await stat(file).catch(undefinedWhenMissing);
  return (
    found !== undefined && found.size === meta.Size && Math.abs(found.mtimeMs - Date.parse(meta.ModTime)) < 1
  );
}

/**
 * Empty files and files that are only holes had just been opened; anything else is kept for a person to
 * look at.
 */
async function keepAside(path: string, repair: Repair): Promise<void> {
  const file = join(repair.trees.data, path);
  const found = await stat(file).catch(undefinedWhenMissing);
  if (!found || found.size === 0 || (found.blocks === 0 && found.size > 4_096)) return;
  const kept = await recoveredPath(path, repair);
  await link(file, kept);
  repair.log.warn({ path, kept, bytes: found.size }, 'content without a record is kept aside');
}
