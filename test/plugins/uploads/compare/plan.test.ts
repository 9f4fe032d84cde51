/** Which steps wait for which: on looks that are written down here, without an overlay. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { planUpper } from '../../../../plugins/uploads/compare/plan.ts';
import type { Conditions, Item, Known } from '../../../../plugins/uploads/compare/plan-types.ts';
import { identityOf, NOTHING } from '../../../../plugins/uploads/compare/records.ts';
import type { PlaceRecord } from '../../../../plugins/uploads/compare/records.ts';
import type { ScanEntry } from '../../../../plugins/uploads/compare/scan.ts';

const SECOND = 1_700_000_000;

const CONDITIONS: Conditions = {
  isOpen: () => false,
  isRested: () => false,
  isWhole: true,
  nameProblem: () => undefined,
  late: { isTorn: () => false, wasRemoved: () => false },
  isCut: () => false,
  isUrgent: () => false,
  inUse: new Set(),
  quietAt: () => undefined,
};

const entry = (path: string, kind: ScanEntry['kind'], more: Partial<ScanEntry> = {}): ScanEntry => ({
  path,
  kind,
  inode: 1n,
  bytes: 0,
  modifiedNs: 0n,
  changedNs: 0n,
  isOpaque: false,
  ...more,
});

const folder: PlaceRecord = { remote: { kind: 'folder' }, isTree: true };
const file: PlaceRecord = {
  remote: { kind: 'file', version: { bytes: 10, modifiedMs: SECOND * 1_000 } },
};

function plan(
  entries: readonly ScanEntry[],
  places: Readonly<Record<string, PlaceRecord>>,
  conditions: Partial<Conditions> = {},
): ReadonlyMap<string, Item> {
  const scan = {
    entries: new Map(entries.map((one) => [one.path, one])),
    folders: new Map<string, string>(),
  };
  const known: Known = { places: new Map(Object.entries(places)), moves: new Map() };
  return planUpper(scan, known, { ...CONDITIONS, ...conditions }).items;
}

/** True when each item without a reason to wait can go at some time. */
function isEndingFor(items: ReadonlyMap<string, Item>): boolean {
  const done = new Set<string>();
  for (let before = -1; before < done.size;) {
    before = done.size;
    for (const { id, needs, hold } of items.values())
      if (hold === undefined && [...needs].every((need) => done.has(need))) done.add(id);
  }
  return [...items.values()].every(({ id, hold }) => hold !== undefined || done.has(id));
}

describe('the plan of an upload', () => {
  it('says of a file that somebody may still be changing when it goes up, however long that is', () => {
    const written = entry('a.txt', 'file', { changedNs: BigInt(SECOND) * 1_000_000_000n });
    const quietAt = SECOND * 1_000 + 3_600_000;
    const [item] = plan([written], { 'a.txt': file }, { quietAt: () => quietAt }).values();
    assert.match(item?.hold ?? '', /nobody has changed it for a while/);
    assert.equal(item?.quietAt, quietAt);
    const [open] = plan(
      [written],
      { 'a.txt': file },
      { quietAt: () => quietAt, isOpen: () => true },
    ).values();
    assert.deepEqual([/open for writing/.test(open?.hold ?? ''), open?.quietAt], [true, undefined]);
  });

  const lessonOf = (
    one: ScanEntry,
    folders: readonly (readonly [string, string])[] = [],
    more: readonly ScanEntry[] = [],
  ): object => {
    const scan = {
      entries: new Map([...more, one].map((entry) => [entry.path, entry])),
      folders: new Map(folders),
    };
    const { lessons } = planUpper(scan, { places: new Map(), moves: new Map() }, CONDITIONS);
    const lesson = lessons.find(({ place }) => place === one.path);
    return { bornMs: lesson?.bornMs, changedMs: lesson?.changedMs };
  };

  it('knows when a change was made: a file that is older than its rename, a folder, a move over something', () => {
    const key = `1.${(5_000_000_000).toString(36)}`;
    assert.deepEqual(lessonOf(entry('f', 'file', { key, changedNs: 9_000_000n })), {
      bornMs: 5_000,
      changedMs: 9,
    });
    assert.deepEqual(lessonOf(entry('d', 'folder', { key, isOpaque: true })), {
      bornMs: undefined,
      changedMs: 5_000,
    });
    const moved = entry('t', 'file', { key, hasNoData: true, redirect: '/s', changedNs: 7_000_000n });
    assert.deepEqual(lessonOf(moved), { bornMs: undefined, changedMs: 7 });
  });

  it('knows of a deletion no later time than that of its folder: whiteouts are one inode', () => {
    const gone = entry('in/x', 'whiteout', { changedNs: 9_000_000n });
    const around = entry('in', 'folder');
    assert.deepEqual(lessonOf(gone, [['in', '2 1000000 6000000']], [around]), {
      bornMs: undefined,
      changedMs: 6,
    });
    assert.deepEqual(lessonOf(gone, [['in', '2 1000000 9500000']], [around]), {
      bornMs: undefined,
      changedMs: 9,
    });
  });

  it("shows a folder that hides others' content only once the one around it does so no more", () => {
    const spentOf = (isOpaque: boolean): readonly string[] => {
      const all = [entry('d', 'folder', { isOpaque }), entry('d/e', 'folder', { isOpaque: true })];
      const scan = {
        entries: new Map(all.map((one) => [one.path, one])),
        folders: new Map<string, string>(),
      };
      const known: Known = {
        places: new Map([
          ['d', folder],
          ['d/e', folder],
        ]),
        moves: new Map(),
      };
      const { done } = planUpper(scan, known, { ...CONDITIONS, isRested: () => true });
      return done.map(({ path }) => path);
    };
    assert.deepEqual([spentOf(true), spentOf(false)], [['d'], ['d/e']]);
  });

  it('shows a folder together with those in it, and not while the remote may have moved something into it', () => {
    const all = [
      entry('d', 'folder', { isOpaque: true }),
      entry('d/e', 'folder'),
      entry('d/e/f', 'folder'),
      entry('d/own', 'folder', { isOpaque: true }),
      entry('d/own/g', 'folder'),
    ];
    const scan = {
      entries: new Map(all.map((one) => [one.path, one])),
      folders: new Map<string, string>(),
    };
    const places = new Map(all.map(({ path }) => [path, folder]));
    const shownIf = (moves: Known['moves']): unknown =>
      planUpper(scan, { places, moves }, { ...CONDITIONS, isRested: () => true }).done.map(
        ({ path, shownWith = [] }) => [path, shownWith.map((one) => one.path)],
      );
    assert.deepEqual(shownIf(new Map()), [['d', ['d/e', 'd/e/f']]]);
    // Users have deleted what was moved there, and no look has put that on record yet.
    assert.deepEqual(shownIf(new Map([['1.1', { at: 'x', going: 'd/e/x' }]])), []);
  });

  it('deletes nothing while there is a file that a full disk may have cut off', () => {
    const entries = [entry('b', 'file', { bytes: 3 })];
    const places = { a: file, b: { remote: NOTHING } };
    const full = { isCut: () => true };
    const held = plan(entries, places, full);
    assert.match(held.get('delete a')?.hold ?? '', /renamed to a file whose end is missing/);
    const isUrgent = (path: string): boolean => path === 'a';
    assert.equal(plan(entries, places, { ...full, isUrgent }).get('delete a')?.hold, undefined);
    assert.equal(plan(entries, places).get('delete a')?.hold, undefined);
    // The NAS has another file by its name: that one is not what was renamed.
    assert.match(plan(entries, { a: file, b: file }, full).get('delete a')?.hold ?? '', /end is missing/);
    // Not known yet what it is.
    const unread = [entry('b', 'file', { bytes: 3, isUnread: true })];
    assert.match(plan(unread, places, full).get('delete a')?.hold ?? '', /end is missing/);
  });

  it('notes that a full disk may have cut a file off also while it is not known yet what it is', () => {
    const unread = entry('b', 'file', { bytes: 3, isUnread: true });
    const cutOf = (record: PlaceRecord | undefined): readonly string[] => {
      const scan = { entries: new Map([['b', unread]]), folders: new Map<string, string>() };
      const places = new Map(record === undefined ? [] : [['b', record] as const]);
      const { cut } = planUpper(scan, { places, moves: new Map() }, { ...CONDITIONS, isCut: () => true });
      return cut.map(({ place }) => place);
    };
    assert.deepEqual(cutOf(file), ['b']);
    assert.deepEqual(cutOf({ ...file, cut: identityOf(unread) }), [], 'once');
    // A record says what its users saw there, which is not known yet.
    assert.deepEqual(cutOf(undefined), []);
  });

  it('deletes the former name of a file after it is up by its new one, also on a NAS that shows other times', () => {
    const changedNs = BigInt(SECOND) * 1_000_000_000n;
    const hourLater: PlaceRecord = {
      remote: { kind: 'file', version: { bytes: 10, modifiedMs: (SECOND + 3_600) * 1_000 } },
      proved: { inode: '7', bytes: 10, modifiedNs: String(changedNs), changedNs: String(changedNs) },
    };
    const needsOf = (second: number): readonly string[] => {
      const key = `7.${(BigInt(second) * 1_000_000_000n).toString(36)}`;
      const renamed = entry('b', 'file', { key, inode: 7n, bytes: 10, modifiedNs: changedNs, changedNs });
      return [...(plan([renamed], { a: hourLater, b: { remote: NOTHING } }).get('delete a')?.needs ?? [])];
    };
    assert.deepEqual(needsOf(SECOND - 60), ['upload b']);
    // Another file, which was given the inode of the one that was deleted.
    assert.deepEqual(needsOf(SECOND + 60), []);
  });

  it('leaves what a renamed folder replaces in its place for as long as the folder is held', () => {
    const entries = [entry('d', 'whiteout'), entry('e', 'folder', { key: 'k', redirect: '/d' })];
    const places = { d: folder, e: folder };
    const held = plan(entries, places, { inUse: new Set(['e']) });
    assert.match(held.get('move e')?.hold ?? '', /has the folder open/);
    assert.match(held.get('delete e')?.hold ?? '', /has the folder open/);
    const free = plan(entries, places);
    assert.deepEqual(
      [free.get('move e')?.hold, free.get('delete e')?.hold, [...free.get('move e')!.needs]],
      [undefined, undefined, ['delete e']],
    );
  });

  it('deletes a file whose name is in the way of a move, also where a like one lies where the move begins', () => {
    const items = plan(
      [
        entry('E', 'folder', { key: 'k', redirect: '/d' }),
        entry('d', 'file', { key: 'f', bytes: 10, modifiedNs: BigInt(SECOND) * 1_000_000_000n }),
        entry('e', 'whiteout'),
      ],
      { d: folder, e: file },
    );
    assert.deepEqual([...items.keys()].sort(), ['delete e', 'move E', 'upload d']);
    assert.ok(items.get('move E')?.needs.has('delete e'), 'the move waits for the similar name');
    assert.ok(items.get('upload d')?.hold !== undefined, 'what lies where the move begins waits for it');
    assert.ok(isEndingFor(items), JSON.stringify([...items.values()].map(({ id, needs }) => [id, ...needs])));
  });

  it('has two folders change places while somebody has a third, renamed one open', () => {
    const swapped = [
      entry('a', 'folder', { key: 'ka', redirect: '/b' }),
      entry('b', 'folder', { key: 'kb', redirect: '/a' }),
    ];
    const third = [entry('c', 'whiteout'), entry('d', 'folder', { key: 'kd', redirect: '/c' })];
    const places = { a: folder, b: folder, c: folder, f: folder };
    const items = plan([...swapped, ...third, entry('f', 'whiteout')], places, { inUse: new Set(['d']) });
    const goes = [...items.values()].filter(({ action, hold }) => action === 'move' && hold === undefined);
    assert.deepEqual(
      goes.map(({ move }) => move?.isDetour),
      [true],
      'one steps aside',
    );
    const behind = plan(
      [...third, entry('c', 'folder', { key: 'ke', redirect: '/f' }), entry('f', 'whiteout')],
      places,
      { inUse: new Set(['d']) },
    );
    assert.deepEqual(
      [...behind.values()].filter(({ action, hold }) => action === 'move' && hold === undefined),
      [],
      'what only waits for the open folder steps nowhere',
    );
  });

  it('has one name stand for a file of the remote that users have given several', () => {
    const link = (path: string): ScanEntry =>
      entry(path, 'file', { key: 'k', hasNoData: true, redirect: '/a' });
    const known: Known = { places: new Map([['a', file]]), moves: new Map([['k', { at: 'a' }]]) };
    const scan = {
      entries: new Map(['a', 'b'].map((path) => [path, link(path)])),
      folders: new Map<string, string>(),
    };
    const { items, stale, done } = planUpper(scan, known, { ...CONDITIONS, isRested: () => true });
    assert.deepEqual(
      [...items.values()].map(({ id, isRefused, hold }) => [id, isRefused, /hard link/.test(hold ?? '')]),
      [['upload b', true, true]],
    );
    assert.deepEqual([stale, done], [[], []], 'no name is taken away');
  });
});
