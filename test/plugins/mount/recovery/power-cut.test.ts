import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createClock } from '../../../../core/platform/clock.ts';
import {
  bootIdNow,
  noteBoot,
  noteNotLater,
  noteOnDisk,
  readBootNote,
} from '../../../../plugins/mount/recovery/boot-note.ts';
import { filesBelow, readMeta, treesOf, writeMeta } from '../../../../plugins/mount/cache/metadata.ts';
import type { CacheTrees } from '../../../../plugins/mount/cache/metadata.ts';
import { clearAfterPowerCut } from '../../../../plugins/mount/recovery/power-cut.ts';
import { beginReadOnlyCache } from '../../../../plugins/mount/former/read-only-cache.ts';
import { sleep } from '../../../support/platform/wait.ts';

const HOUR_MS = 3_600_000;
const BYTES = 100_000;
/** How far the kernel's stamps may lag behind the clock. */
const STAMPS_MS = 100;

interface Room {
  readonly cacheDir: string;
  readonly trees: CacheTrees;
  readonly clear: (signal?: AbortSignal) => Promise<boolean>;
}

async function inRoom(work: (room: Room) => Promise<void>): Promise<void> {
  const cacheDir = await mkdtemp(join(tmpdir(), 'mk-power-'));
  try {
    const [clock, log] = [createClock(), pino({ level: 'silent' })];
    const trees = treesOf(cacheDir);
    await work({
      cacheDir,
      trees,
      clear: (signal = new AbortController().signal) =>
        clearAfterPowerCut({ cacheDir, trees, clock, log, signal }),
    });
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
}

/** A file's time is kept in seconds: a millisecond may be lost when it is read. */
async function isOnDiskUntil(cacheDir: string, atMs: number): Promise<void> {
  assert.equal(Math.round((await readBootNote(cacheDir))?.onDiskUntilMs ?? 0), atMs);
}

/** As rclone leaves a file that was closed. */
async function cached(
  trees: CacheTrees,
  path: string,
  { isDirty = true, bytes = BYTES } = {},
): Promise<string> {
  const [file, at] = [join(trees.data, path), new Date('2026-01-02T03:04:05.500Z')];
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, Buffer.alloc(bytes, 7));
  await utimes(file, at, at);
  await writeMeta(join(trees.meta, path), {
    ModTime: at.toISOString(),
    ATime: at.toISOString(),
    Size: bytes,
    Rs: [{ Pos: 0, Size: bytes }],
    Fingerprint: '',
    Dirty: isDirty,
  });
  return file;
}

/** As the next boot finds it; all that is older than `untilMs` was on the disk. */
async function nextBoot({ cacheDir }: Room, untilMs: number): Promise<void> {
  await writeFile(join(cacheDir, 'boot'), 'another\n');
  await noteOnDisk(cacheDir, untilMs);
}

const IN_TIME = (): number => Date.now() + HOUR_MS;
const TOO_LATE = (): number => Date.now() - HOUR_MS;

async function left({ trees }: Room): Promise<string[]> {
  const paths: string[] = [];
  for await (const path of filesBelow(trees.meta)) paths.push(path);
  return paths.sort();
}

async function keptAside({ cacheDir }: Room): Promise<string[]> {
  const times = await readdir(join(cacheDir, 'recovered')).catch((): string[] => []);
  return (await Promise.all(times.map((time) => readdir(join(cacheDir, 'recovered', time))))).flat().sort();
}

describe('a cache after a power cut', () => {
  it('keeps what was on the disk, whether it is to go up or not', () =>
    inRoom(async (room) => {
      await cached(room.trees, 'dirty.bin');
      await cached(room.trees, 'clean.bin', { isDirty: false });
      await cached(room.trees, 'empty', { bytes: 0 });
      await nextBoot(room, IN_TIME());
      await room.clear();
      assert.deepEqual(await left(room), ['clean.bin', 'dirty.bin', 'empty']);
    }));

  it('uploads no file shorter than its metadata says, unless a program truncated it', () =>
    inRoom(async (room) => {
      const [short, empty] = [await cached(room.trees, 'a/short.bin'), await cached(room.trees, 'empty.bin')];
      await sleep(2 * STAMPS_MS);
      const recordsOnDisk = Date.now();
      await sleep(2 * STAMPS_MS);
      await truncate(short, 10_000);
      await truncate(empty, 0);
      await nextBoot(room, IN_TIME());
      await room.clear();
      assert.deepEqual(await left(room), ['a/short.bin', 'empty.bin']);
      await nextBoot(room, recordsOnDisk);
      await room.clear();
      assert.deepEqual(await left(room), []);
      assert.deepEqual(await keptAside(room), ['a']);
      assert.deepEqual(await readdir(join(room.trees.data, 'a')), []);
    }));

  it('forgets a copy into which something was written that its record knows nothing of', () =>
    inRoom(async (room) => {
      const file = await cached(room.trees, 'over.bin', { isDirty: false });
      await cached(room.trees, 'other.bin', { isDirty: false });
      await sleep(2 * STAMPS_MS);
      const recordsOnDisk = Date.now();
      await sleep(2 * STAMPS_MS);
      await writeFile(file, Buffer.alloc(BYTES, 9));
      await nextBoot(room, recordsOnDisk);
      await room.clear();
      assert.deepEqual([await left(room), await keptAside(room)], [['other.bin'], []]);
    }));

  it('is looked at no further once the mount is called off, and says whether there was anything to look at', () =>
    inRoom(async (room) => {
      await truncate(await cached(room.trees, 'short.bin', { isDirty: false }), 0);
      assert.equal(await room.clear(), false);
      await nextBoot(room, TOO_LATE());
      await assert.rejects(room.clear(AbortSignal.abort(new Error('called off'))), /called off/);
      assert.deepEqual(await left(room), ['short.bin']);
      assert.equal(await room.clear(), true);
      assert.deepEqual(await left(room), []);
    }));

  it('sends nothing up of whose record nobody knows that it was on the disk, and keeps it aside', () =>
    inRoom(async (room) => {
      await cached(room.trees, 'young.bin');
      await nextBoot(room, TOO_LATE());
      await room.clear();
      assert.deepEqual([await left(room), await keptAside(room)], [[], ['young.bin']]);
    }));

  it('keeps nothing aside of a cache with which rclone only ever read', () =>
    inRoom(async (room) => {
      await beginReadOnlyCache(room.cacheDir);
      await cached(room.trees, 'torn.bin', { isDirty: false });
      await writeFile(join(room.trees.meta, 'torn.bin'), '');
      await nextBoot(room, TOO_LATE());
      await room.clear();
      assert.deepEqual([await left(room), await keptAside(room)], [[], []]);
    }));

  it('forgets copies of which nobody knows that they were on the disk, and those that are too short', () =>
    inRoom(async (room) => {
      await cached(room.trees, 'young.bin', { isDirty: false });
      await nextBoot(room, TOO_LATE());
      await room.clear();
      await truncate(await cached(room.trees, 'short.bin', { isDirty: false }), 0);
      await nextBoot(room, IN_TIME());
      await room.clear();
      assert.deepEqual([await left(room), await keptAside(room)], [[], []]);
    }));

  it('keeps content aside whose record was cut off, unless the content was on the disk', () =>
    inRoom(async (room) => {
      for (const until of [IN_TIME(), TOO_LATE()]) {
        await cached(room.trees, 'torn.bin');
        await writeFile(join(room.trees.meta, 'torn.bin'), '');
        await nextBoot(room, until);
        await room.clear();
        assert.equal(
          await readMeta(join(room.trees.meta, 'torn.bin')),
          until > Date.now() ? 'torn' : undefined,
        );
      }
      assert.deepEqual(await keptAside(room), ['torn.bin']);
    }));

  it('is left as it is when the machine has gone on, or nothing was noted', () =>
    inRoom(async (room) => {
      await truncate(await cached(room.trees, 'short.bin'), 0);
      await room.clear();
      await noteBoot(room.cacheDir);
      await noteOnDisk(room.cacheDir, TOO_LATE());
      await room.clear();
      assert.deepEqual(await left(room), ['short.bin']);
    }));

  it('has a note that says no longer that all is on the disk once the clock was set back', () =>
    inRoom(async ({ cacheDir }) => {
      await noteNotLater(cacheDir, Date.now());
      assert.equal(await readBootNote(cacheDir), undefined);
      await noteBoot(cacheDir);
      const at = Date.now();
      await noteOnDisk(cacheDir, at);
      await noteNotLater(cacheDir, at + HOUR_MS);
      await noteNotLater(cacheDir, at);
      await isOnDiskUntil(cacheDir, at - STAMPS_MS);
      await noteNotLater(cacheDir, at - HOUR_MS);
      await isOnDiskUntil(cacheDir, at - HOUR_MS - STAMPS_MS);
    }));

  it('has a note of the boot that later starts in it leave as it is', () =>
    inRoom(async ({ cacheDir }) => {
      await noteBoot(cacheDir);
      assert.equal(await readFile(join(cacheDir, 'boot'), 'utf8'), `${await bootIdNow()}\n`);
      await noteOnDisk(cacheDir, TOO_LATE());
      const before = await readBootNote(cacheDir);
      await noteBoot(cacheDir);
      assert.deepEqual(await readBootNote(cacheDir), before);
    }));
});
