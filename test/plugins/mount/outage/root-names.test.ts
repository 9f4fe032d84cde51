import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { pino } from 'pino';
import { haveAllGone, namesToKeep, RootNames } from '../../../../plugins/mount/outage/root-names.ts';
import type { KeptName } from '../../../../plugins/mount/outage/root-names.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const DAY_MS = 86_400_000;
const folder = (name: string): KeptName => ({ name, isFolder: true, sinceMs: 0 });
const file = (name: string): KeptName => ({ name, isFolder: false, sinceMs: 0 });
const listed = (...names: string[]) =>
  names.map((name) => ({ Name: name.replace(/\/$/, ''), IsDir: name.endsWith('/') }));

describe('names at the top of a share', () => {
  const gone = (kept: readonly KeptName[], there: readonly string[], nowMs = 0): boolean =>
    haveAllGone(kept, new Set(there), nowMs);

  it('have all gone where none of two or more is there, whatever else is', () => {
    assert.equal(gone([folder('a'), folder('b')], []), true);
    assert.equal(gone([folder('a'), file('b')], ['c', 'd']), true);
    assert.equal(gone([folder('a'), folder('b'), folder('c')], ['c']), false);
    assert.equal(gone([folder('a')], []), false, 'one may be renamed by others');
    assert.equal(gone([], []), false);
  });

  it('say nothing where all of them are files of the last day: those of a scanner are fetched all at once', () => {
    assert.equal(gone([file('a.pdf'), file('b.pdf')], []), false);
    assert.equal(gone([file('a.pdf'), file('b.pdf')], [], DAY_MS), true);
  });

  it('are kept from the whole folder, folders first, without what a NAS makes anywhere', () => {
    const many = Array.from({ length: 100 }, (_, index) => `${String(index).padStart(2, '0')}.jpg`);
    const kept = namesToKeep(
      [folder('old'), folder('went')],
      listed('@eaDir/', '#recycle/', '.DS_Store', 'lost+found/', 'old/', 'new/', ...many),
      7,
    );
    assert.equal(kept.length, 20);
    assert.deepEqual(kept.slice(0, 2), [folder('old'), { name: 'new', isFolder: true, sinceMs: 7 }]);
    assert.ok(kept.some(({ name }) => name > '90'));
    assert.ok(kept.some(({ name }) => name < '10.jpg'));
    assert.deepEqual(
      namesToKeep(kept, listed('old/', 'new/', ...many), 9),
      kept,
      'since when they are known stays',
    );
  });

  describe('on the disk', () => {
    let scratch: Scratch;
    before(async () => {
      scratch = await createScratch('root-names');
    });
    after(() => scratch.close());
    const clock = createManualClock();
    const open = async (name: string, identity = 'nas:p'): Promise<RootNames> => {
      const names = new RootNames({
        file: scratch.path(name),
        identity,
        clock,
        log: pino({ level: 'silent' }),
      });
      await names.read();
      return names;
    };
    const nameOf = ({ kept }: RootNames): readonly string[] => kept.map(({ name }) => name);

    it('outlast a restart, and count for no other place', async () => {
      const first = await open('restart');
      assert.equal(first.listed(listed('a/', 'b/'), clock.monotonic()), true);
      await first.save();
      const next = await open('restart');
      assert.equal(next.listed([], clock.monotonic()), false);
      assert.deepEqual(nameOf(next), ['a', 'b'], 'they are kept');
      assert.equal(next.listed(listed('a/'), clock.monotonic()), true);
      const other = await open('restart', 'nas:elsewhere');
      assert.equal(other.listed([], clock.monotonic()), true);
      await writeFile(scratch.path('torn'), '{"identity":"nas:p","na');
      assert.deepEqual(nameOf(await open('torn')), []);
    });

    it('are no sign while a change made here is about them, nor in a listing begun before its end', async () => {
      const names = await open('changed');
      names.listed(listed('a/', 'b/'), clock.monotonic());
      const begunMs = clock.monotonic();
      await clock.advance(10);
      names.changed('a/x.txt');
      names.changed('b');
      await names.save();
      assert.deepEqual(nameOf(await open('changed')), ['a'], 'also for the next start');
      await clock.advance(10);
      // It was asked for before, and shows them still.
      assert.equal(names.listed(listed('a/', 'b/'), begunMs), true);
      assert.deepEqual(nameOf(names), ['a']);
      assert.equal(names.isChanged, true);
      assert.equal(names.listed([], clock.monotonic()), true, 'one alone tells nothing');
      assert.equal(names.isChanged, false);
    });

    it('are missed though what is written in them may make one anew', async () => {
      const names = await open('made-anew');
      names.listed(listed('a/', 'b/', 'c/'), clock.monotonic());
      names.changed('a/x.txt');
      await clock.advance(10);
      assert.equal(names.listed(listed('a/'), clock.monotonic()), false);
    });

    it('do not become fewer by what was under way when all had gone', async () => {
      const names = await open('under-way');
      names.listed(listed('a/', 'b/'), clock.monotonic());
      assert.equal(names.listed([], clock.monotonic()), false);
      names.changed('a/x.txt');
      await clock.advance(10);
      assert.equal(names.listed([], clock.monotonic()), false);
      names.forget();
      assert.equal(names.listed(listed('c/'), clock.monotonic()), true);
    });
  });
});
