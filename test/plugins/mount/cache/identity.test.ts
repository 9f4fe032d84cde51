import assert from 'node:assert/strict';
import { cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { settleIdentity, takeUpIdentity } from '../../../../plugins/mount/cache/identity.ts';
import { createCacheRoots, holdsFiles } from '../../../../plugins/mount/cache/cache-folders.ts';
import type { CacheRoots } from '../../../../plugins/mount/cache/cache-folders.ts';
import { pendingIn, pendingOf } from '../../../../plugins/mount/cache/scan.ts';

describe('the place that a cache folder belongs to', () => {
  let root: string;
  let cache: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'mk-place-'));
    cache = join(root, 'cache', 'work');
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  const dirtyFile = async (folder = cache): Promise<void> => {
    for (const tree of ['vfs', 'vfsMeta']) await mkdir(join(folder, tree, 'nas'), { recursive: true });
    await writeFile(join(folder, 'vfs', 'nas', 'a'), '12345');
    await writeFile(
      join(folder, 'vfsMeta', 'nas', 'a'),
      JSON.stringify({ Dirty: true, Size: 5, Rs: [{ Pos: 0, Size: 5 }] }),
    );
  };
  const isDirty = async (): Promise<boolean> => (await pendingIn(cache)).count > 0;

  it('keeps what is in it when its identity file was truncated', async () => {
    await dirtyFile();
    await writeFile(join(cache, 'place'), '');
    assert.deepEqual(await settleIdentity(cache, 'first', isDirty), { setAside: false });
    assert.equal((await pendingIn(cache)).count, 1);
    assert.equal(await readFile(join(cache, 'place'), 'utf8'), 'first\n');
  });

  it('is left as it was when the new mark cannot be written', async () => {
    await settleIdentity(cache, 'first', isDirty);
    await mkdir(join(cache, 'place.new'));
    await assert.rejects(settleIdentity(cache, 'second', isDirty));
    assert.equal(await readFile(join(cache, 'place'), 'utf8'), 'first\n');
  });

  it('may have had another name before: nothing is set aside, and what was under that name comes back', async () => {
    await dirtyFile();
    await writeFile(join(cache, 'place'), 'old\n');
    assert.deepEqual(await settleIdentity(cache, 'new', isDirty, { names: ['old'] }), { setAside: false });
    assert.equal((await pendingIn(cache)).count, 1);
    await rm(join(cache, 'vfs'), { recursive: true });
    await rm(join(cache, 'vfsMeta'), { recursive: true });
    await dirtyFile(join(cache, 'aside', 'old'));
    await settleIdentity(cache, 'new', isDirty, { names: ['old'] });
    assert.equal((await pendingIn(cache)).count, 1);
    assert.deepEqual(await readdir(join(cache, 'aside')), []);
  });

  describe('with a name from a version that left out some options', () => {
    const LESSER = { lesser: 'lesser' };
    const place = (): Promise<string> => readFile(join(cache, 'place'), 'utf8');
    const former = async (): Promise<void> => {
      await dirtyFile();
      await writeFile(join(cache, 'place'), 'lesser\n');
    };

    it('is the same place at the first mount of one that looks at them', async () => {
      await former();
      assert.deepEqual(await settleIdentity(cache, 'whole', isDirty, LESSER), { setAside: false });
      assert.equal((await pendingIn(cache)).count, 1);
      assert.equal(await place(), 'whole\n');
    });

    it('is another place once such a version had it: the option came later', async () => {
      await former();
      await settleIdentity(cache, 'lesser', isDirty);
      assert.deepEqual(await settleIdentity(cache, 'whole', isDirty, LESSER), { setAside: true });
      assert.deepEqual(await readdir(join(cache, 'aside')), ['lesser']);
      assert.deepEqual(await settleIdentity(cache, 'whole', isDirty, LESSER), { setAside: false });
      assert.deepEqual(await readdir(join(cache, 'aside')), ['lesser'], 'nor does it come back');
      await settleIdentity(cache, 'lesser', isDirty);
      assert.equal((await pendingIn(cache)).count, 1);
      assert.deepEqual(await readdir(join(cache, 'aside')), []);
    });

    it('is the same place again after a version that leaves options out had it once more', async () => {
      await former();
      await settleIdentity(cache, 'whole', isDirty, LESSER);
      // That one takes it for another place, whose files wait there.
      for (const tree of ['vfs', 'vfsMeta'])
        await cp(join(cache, tree), join(cache, 'aside', 'whole', tree), { recursive: true });
      await writeFile(join(cache, 'place'), 'lesser\n');
      assert.deepEqual(await settleIdentity(cache, 'whole', isDirty, LESSER), { setAside: false });
      assert.equal((await pendingIn(cache)).count, 1);
      assert.deepEqual(await readdir(join(cache, 'aside')), ['whole'], 'until the others are gone');
      await rm(join(cache, 'vfsMeta/nas/a'));
      assert.deepEqual(await settleIdentity(cache, 'whole', isDirty, LESSER), { setAside: false });
      assert.equal((await pendingIn(cache)).count, 1);
      assert.deepEqual(await readdir(join(cache, 'aside')), []);
    });

    it('says what to do where another place comes while they wait in two parts', async () => {
      await former();
      await settleIdentity(cache, 'whole', isDirty, LESSER);
      await cp(join(cache, 'vfs'), join(cache, 'aside', 'whole', 'vfs'), { recursive: true });
      await assert.rejects(settleIdentity(cache, 'other', isDirty), /wait in two parts.*until nothing waits/);
      assert.equal(await place(), 'whole\n');
      assert.equal((await pendingIn(cache)).count, 1);
    });

    it('is another place also where the mark could not be written when they came back', async () => {
      await former();
      await settleIdentity(cache, 'lesser', isDirty);
      await settleIdentity(cache, 'whole', isDirty, LESSER);
      await mkdir(join(cache, 'place-is-whole.new'));
      await assert.rejects(settleIdentity(cache, 'lesser', isDirty));
      await rm(join(cache, 'place-is-whole.new'), { recursive: true });
      await settleIdentity(cache, 'whole', isDirty, LESSER);
      assert.equal((await pendingIn(cache)).count, 0, 'they are of another place');
      assert.deepEqual(await readdir(join(cache, 'aside')), ['lesser']);
    });

    it('is another place when the option is changed, and taken away, after that', async () => {
      await former();
      await settleIdentity(cache, 'whole', isDirty, LESSER);
      for (const [other, names] of [
        ['changed', LESSER],
        ['lesser', {}],
      ] as const) {
        assert.deepEqual(await settleIdentity(cache, other, isDirty, names), {
          setAside: other === 'changed',
        });
        assert.deepEqual(await readdir(join(cache, 'aside')), ['whole']);
      }
      await settleIdentity(cache, 'whole', isDirty, LESSER);
      assert.equal((await pendingIn(cache)).count, 1);
    });

    it('brings back what the former version has put aside under that name', async () => {
      await dirtyFile(join(cache, 'aside', 'lesser'));
      await writeFile(join(cache, 'place'), 'other\n');
      await settleIdentity(cache, 'whole', isDirty, LESSER);
      assert.equal((await pendingIn(cache)).count, 1);
    });

    it('is taken up from a mount of that version once, and not where the option has changed since', async () => {
      await former();
      assert.equal(await takeUpIdentity(cache, 'whole', 'lesser'), true);
      assert.equal(await place(), 'whole\n');
      assert.equal(await takeUpIdentity(cache, 'whole', 'lesser'), true);
      assert.equal(await takeUpIdentity(cache, 'changed', 'lesser'), false);
      assert.equal(await place(), 'whole\n');
    });

    it('is not taken up where the option came after a mount without it was', async () => {
      await former();
      assert.equal(await takeUpIdentity(cache, 'lesser', undefined), true);
      assert.equal(await takeUpIdentity(cache, 'whole', 'lesser'), false);
      assert.equal(await place(), 'lesser\n');
    });
  });

  describe('in folders that cache.dir named before', () => {
    /** Shares of which the uploader knows that something waits. */
    const waiting = new Set<string>();
    const rootsOf = (state: string): CacheRoots =>
      createCacheRoots(state, (one) => holdsFiles(one, async (folder) => waiting.has(folder)));

    it('is remembered by the next daemon as long as something waits there', async () => {
      const state = join(root, 'state');
      const first = rootsOf(state);
      await Promise.all([
        first.note(join(root, 'cache')),
        first.note(join(root, 'empty')),
        first.note(join(root, 'cache')),
      ]);
      await dirtyFile();
      assert.deepEqual(await rootsOf(state).former(join(root, 'other')), [join(root, 'cache')]);
      assert.deepEqual(await rootsOf(state).former(join(root, 'cache')), []);
      assert.equal((await pendingOf(cache)).count, 1);
    });

    it('is remembered, too, where all that waits is a write layer that was set aside', async () => {
      const [state, former] = [join(root, 'state'), join(root, 'cache')];
      await rootsOf(state).note(former);
      await mkdir(join(cache, 'aside', 'first', 'layer', 'upper'), { recursive: true });
      assert.deepEqual(await rootsOf(state).former(join(root, 'other')), []);
      await rootsOf(state).note(former);
      await writeFile(join(cache, 'aside', 'first', 'layer', 'upper', 'a'), '12345');
      assert.deepEqual(await rootsOf(state).former(join(root, 'other')), [former]);
    });

    it('is remembered, too, where all that waits is what the uploader knows, and it left no file', async () => {
      const [state, former] = [join(root, 'state'), join(root, 'cache')];
      await mkdir(join(cache, 'layer', 'upper'), { recursive: true });
      for (const [waits, remembered] of [
        [[], []],
        [[cache], [former]],
        [[join(cache, 'aside', 'first')], [former]],
      ] as const) {
        await mkdir(join(cache, 'aside', 'first', 'layer', 'upper'), { recursive: true });
        await rootsOf(state).note(former);
        waiting.clear();
        for (const folder of waits) waiting.add(folder);
        assert.deepEqual(await rootsOf(state).former(join(root, 'other')), remembered);
      }
      const silent = createCacheRoots(state, (one) =>
        holdsFiles(one, () => Promise.reject(new Error('no uploader'))),
      );
      assert.deepEqual(await silent.former(join(root, 'other')), [former]);
    });

    it('is not written again by the next daemon, and after another one it is', async () => {
      const state = join(root, 'state');
      const file = join(state, 'mount', 'cache-folders.json');
      await rootsOf(state).note('/one');
      const { ino } = await stat(file);
      const next = rootsOf(state);
      await next.note('/one');
      assert.equal((await stat(file)).ino, ino);
      const later = rootsOf(state);
      // Empty folders are dropped, so this leaves the second alone in the file.
      await later.note('/two');
      await later.note('/one');
      assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), ['/two', '/one']);
    });

    it('is not noted when that cannot be written, and can be noted later', async () => {
      const state = join(root, 'state');
      await mkdir(join(state, 'mount', 'cache-folders.json.new'), { recursive: true });
      const roots = rootsOf(state);
      await assert.rejects(roots.note('/one'));
      await rm(join(state, 'mount', 'cache-folders.json.new'), { recursive: true });
      await roots.note('/one');
      assert.deepEqual(JSON.parse(await readFile(join(state, 'mount', 'cache-folders.json'), 'utf8')), [
        '/one',
      ]);
    });
  });
});
