/** A cache whose disk is not mounted is not one that holds nothing. */
import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { MountEntry, MountTable } from 'mountkeeper';
import { CacheDisks } from '../../../../plugins/mount/cache/cache-disks.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { createCacheRoots } from '../../../../plugins/mount/cache/cache-folders.ts';

describe('a cache folder on a disk of its own', () => {
  let room: string;
  let ssd: string;
  let mounted: string[];
  const holding = new Set<string>();

  beforeEach(async () => {
    room = await mkdtemp(join(tmpdir(), 'mk-disks-'));
    ssd = join(room, 'ssd');
    await mkdir(ssd);
    mounted = ['/', ssd];
    holding.clear();
  });
  afterEach(() => rm(room, { recursive: true }));

  const disks = (): CacheDisks => {
    const list = async (): Promise<readonly MountEntry[]> =>
      mounted.map((mountPoint) => ({ mountPoint }) as MountEntry);
    return new CacheDisks({
      stateDir: room,
      mountTable: { list } as unknown as MountTable,
      mayHold: async (root) => holding.has(root),
    });
  };
  /** The disk is gone, and its mount point is empty. */
  const unplug = async (): Promise<void> => {
    await rename(ssd, join(room, 'unplugged'));
    await mkdir(ssd);
    mounted = ['/'];
  };
  const MISSING = /is not mounted at .*ssd: what waits there for the NAS is not known/;

  it('is missed while that is away, and nothing that may wait there is forgotten', async () => {
    const [cache, other] = [join(ssd, 'mk'), join(room, 'other')] as const;
    await disks().note(cache);
    await unplug();
    const next = disks();
    await assert.rejects(next.note(cache), MISSING);
    await next.note(other);
    assert.equal(next.troubles.length, 1);
    const roots = createCacheRoots(room, (root) => next.mayHold(root));
    await roots.note(cache);
    const later = createCacheRoots(room, (root) => disks().mayHold(root));
    assert.deepEqual(await later.former(other), [cache]);
    await rm(ssd, { recursive: true });
    await rename(join(room, 'unplugged'), ssd);
    mounted = ['/', ssd];
    await next.note(cache);
    assert.deepEqual(next.troubles, []);
  });

  it('is the same by whatever way it is reached, and another one where that was mounted', async () => {
    const cache = join(ssd, 'mk');
    const marks = new Set<string>();
    for (const table of [mounted, ['/'], ['/', ssd], ['/', ssd]]) {
      mounted = table;
      await disks().note(cache);
      marks.add(await readFile(join(cache, 'cache-id'), 'utf8'));
      await disks().require(cache);
    }
    // Another mark for each other way, and none without one.
    assert.equal(marks.size, 3);
    await rm(cache, { recursive: true });
    await disks().note(cache);
    assert.equal((await readFile(join(cache, 'cache-id'), 'utf8')).length, 36);
  });

  it('is not the one below its mount point from which it was copied, mark and all', async () => {
    const below = join(room, 'below');
    mounted = ['/'];
    await disks().note(ssd);
    await cp(ssd, below, { recursive: true });
    mounted = ['/', ssd];
    await disks().note(ssd);
    await rename(ssd, join(room, 'unplugged'));
    await rename(below, ssd);
    mounted = ['/'];
    await assert.rejects(disks().note(ssd), MISSING);
    await rm(ssd, { recursive: true });
    await rename(join(room, 'unplugged'), ssd);
    await disks().require(ssd);
  });

  it('is known by either mark where its renewal was cut off, and by the new one alone after it', async () => {
    const cache = join(ssd, 'mk');
    await disks().note(cache);
    const former = await readFile(join(cache, 'cache-id'), 'utf8');
    // Its disk is at another place now, and its mark cannot be written.
    mounted = ['/', room];
    await mkdir(join(cache, 'cache-id.new'));
    await assert.rejects(disks().note(cache));
    mounted = ['/'];
    await disks().require(cache);
    const [, { at, mark, next }] = JSON.parse(
      await readFile(join(room, 'mount', 'cache-disks.jsonl'), 'utf8'),
    ) as [string, { at: string; mark: string; next: string }];
    assert.deepEqual([at, mark, next.length], [ssd, former, 36]);
    // Or it was written, and nothing after it.
    await rm(join(cache, 'cache-id.new'), { recursive: true });
    await writeFile(join(cache, 'cache-id'), next);
    await disks().require(cache);
    mounted = ['/', room];
    await disks().note(cache);
    mounted = ['/'];
    await disks().require(cache);
    await writeFile(join(cache, 'cache-id'), former);
    await assert.rejects(disks().require(cache), /is not mounted at/);
  });

  const HIDDEN =
    /is on another disk than before, which is mounted at .*ssd: what waits .* is hidden and not known/;

  it('is missed, too, while another disk is mounted over it, as long as it was used since a clean stop', async () => {
    const cache = join(ssd, 'mk');
    mounted = ['/'];
    await disks().note(cache);
    const cover = async (): Promise<void> => {
      await rename(ssd, join(room, 'covered'));
      await mkdir(ssd);
      mounted = ['/', ssd];
    };
    const uncover = async (): Promise<void> => {
      await rm(ssd, { recursive: true });
      await rename(join(room, 'covered'), ssd);
      mounted = ['/'];
    };
    await cover();
    await assert.rejects(disks().note(cache), HIDDEN);
    // What is covered is not empty, whatever the other disk has.
    await disks().noteEmpty(cache);
    await assert.rejects(disks().require(cache), HIDDEN);
    assert.equal(await disks().mayHold(cache), true);
    await uncover();
    await disks().note(cache);
    await disks().noteEmpty(cache);
    await cover();
    await disks().require(cache);
    // It is in use again from the next start on, and then a daemon was killed.
    await uncover();
    await disks().note(cache);
    await cover();
    await assert.rejects(disks().note(cache), HIDDEN);
    await uncover();
    await disks().noteEmpty(cache);
    await cover();
    await disks().note(cache);
    await uncover();
    await assert.rejects(disks().note(cache), MISSING);
  });

  it('is not the one that is mounted in its place, but may be emptied', async () => {
    const cache = join(ssd, 'mk');
    await disks().note(cache);
    await rename(ssd, join(room, 'unplugged'));
    await mkdir(ssd);
    await assert.rejects(disks().note(cache), HIDDEN);
    await rm(ssd, { recursive: true });
    await rename(join(room, 'unplugged'), ssd);
    await rm(cache, { recursive: true });
    await disks().note(cache);
  });

  it('of which a former version noted the place alone is the one that is there', async () => {
    const cache = join(ssd, 'mk');
    await mkdir(join(room, 'mount'));
    const file = join(room, 'mount', 'cache-disks.jsonl');
    await writeFile(file, `${JSON.stringify([cache, { at: ssd, mark: 'former' }])}\n`);
    await disks().note(cache);
    const line = await readFile(file, 'utf8');
    // The package's purge reads it in this form.
    assert.match(line, /^\["[^"]*",\{"at":"[^"]*","mark":"[^"]*","fs":"\d+ \d+"\}\]\n$/);
    await rm(ssd, { recursive: true });
    await mkdir(ssd);
    await assert.rejects(disks().require(cache), HIDDEN);
  });

  it('gets another mark where a former version noted the place alone: a copy below may have it', async () => {
    const cache = join(ssd, 'mk');
    await mkdir(cache);
    await writeFile(join(cache, 'cache-id'), 'of both');
    await mkdir(join(room, 'mount'));
    await writeFile(
      join(room, 'mount', 'cache-disks.jsonl'),
      `${JSON.stringify([cache, { at: ssd, mark: 'of both' }])}\n`,
    );
    await disks().note(cache);
    await unplug();
    await mkdir(cache);
    await writeFile(join(cache, 'cache-id'), 'of both');
    await assert.rejects(disks().note(cache), MISSING);
  });

  it('is used also where it is full, and nothing can be noted of it', { skip: unlessRoot }, async () => {
    const cache = join(ssd, 'mk');
    assert.equal(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'full', ssd]).status, 0);
    try {
      await mkdir(cache);
      await writeFile(join(cache, 'cache-id'), 'former');
      await mkdir(join(room, 'mount'));
      const file = join(room, 'mount', 'cache-disks.jsonl');
      await writeFile(file, `${JSON.stringify([cache, { at: ssd, mark: 'former' }])}\n`);
      await assert.rejects(writeFile(join(ssd, 'filling'), Buffer.alloc(200_000)), { code: 'ENOSPC' });
      await disks().note(cache);
      await rm(join(ssd, 'filling'));
      await disks().note(cache);
      assert.match(await readFile(file, 'utf8'), /"fs"/);
      assert.notEqual(await readFile(join(cache, 'cache-id'), 'utf8'), 'former');
    } finally {
      spawnSync('umount', ['-l', ssd]);
    }
  });

  it('in memory is another one after each boot, which is not told of', async () => {
    const cache = join(ssd, 'mk');
    const list = async (): Promise<readonly MountEntry[]> =>
      [{ mountPoint: '/' }, { mountPoint: ssd, fsType: 'tmpfs' }] as unknown as readonly MountEntry[];
    const inMemory = (): CacheDisks =>
      new CacheDisks({
        stateDir: room,
        mountTable: { list } as unknown as MountTable,
        mayHold: async () => false,
      });
    await inMemory().note(cache);
    await rename(ssd, join(room, 'before'));
    await mkdir(ssd);
    await inMemory().note(cache);
    assert.deepEqual(inMemory().troubles, []);
  });

  it('is forgotten by whoever removes its line, at once, and by itself where nothing waits', async () => {
    const [cache, other, third] = [join(ssd, 'mk'), join(room, 'other'), join(room, 'third')] as const;
    await disks().note(cache);
    holding.add(cache);
    const running = disks();
    await running.note(other);
    await unplug();
    await assert.rejects(running.require(cache), MISSING);
    const file = join(room, 'mount', 'cache-disks.jsonl');
    const lines = (await readFile(file, 'utf8')).split('\n');
    await writeFile(file, `not of ours\n${lines.filter((line) => !line.includes('ssd')).join('\n')}`);
    await running.require(cache);
    assert.deepEqual(running.troubles, []);
    // Nothing waits in the other one.
    await running.note(third);
    assert.doesNotMatch(await readFile(file, 'utf8'), /other/);
  });
});
