import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteEntry, RemoteFiles, RemoteVersion } from 'mountkeeper';
import { learn } from '../../../../plugins/uploads/compare/learn.ts';
import type { Lesson } from '../../../../plugins/uploads/compare/plan-types.ts';
import { Records } from '../../../../plugins/uploads/compare/records.ts';

const BEFORE: RemoteVersion = { bytes: 1, modifiedMs: 1 };
const NOW: RemoteVersion = { bytes: 2, modifiedMs: 2 };
const READ_AGAIN_AT = 1_000;

const NOTHING_THERE: Pick<RemoteFiles, 'forget' | 'list' | 'stat'> = {
  forget: async () => undefined,
  list: async () => [],
  stat: async () => undefined,
};

describe('the version that users changed', () => {
  let folder: string;
  let records: Records;

  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mk-learn-'));
    records = await Records.open(folder, 'upper');
  });
  afterEach(async () => {
    await records.close();
    await rm(folder, { recursive: true, force: true });
  });

  /** The listing was read again while the file was open, and shows another version since. */
  const learnt = async (lesson: Partial<Lesson>, heldSinceMs = 0): Promise<unknown> => {
    const shown: RemoteEntry = { name: 'a', kind: 'file', version: NOW };
    const former: RemoteEntry = { name: 'a', kind: 'file', version: BEFORE };
    const failed = await learn([{ place: 'a', isTree: true, ...lesson }], {
      layer: {
        below: async () => ({ found: new Map([['a', shown]]), failed: new Map() }),
        listBelow: async () => ({ found: new Map(), failed: new Map() }),
        held: (path, bornMs = 0) =>
          path === 'a' && heldSinceMs === 0 && bornMs <= READ_AGAIN_AT ? former : undefined,
        heldSinceMs: () => heldSinceMs,
      },
      remote: NOTHING_THERE,
      records,
      sources: [],
      isStill: async () => true,
      now: Date.now,
      signal: new AbortController().signal,
    });
    assert.equal(failed.size, 0);
    return records.places.get('a')?.remote;
  };

  it('is the former one for a copy that was begun before others had replaced it', async () => {
    assert.deepEqual(await learnt({ bornMs: READ_AGAIN_AT }), { kind: 'file', version: BEFORE });
  });

  it('is the one that shows for a file that began to be later', async () => {
    assert.deepEqual(await learnt({ bornMs: READ_AGAIN_AT + 1 }), { kind: 'file', version: NOW });
  });

  it('is the former one for a deletion, as long as it may have been made before', async () => {
    assert.deepEqual(await learnt({}), { kind: 'file', version: BEFORE });
  });

  it('is nothing where others saved after a change that no daemon saw', async () => {
    const nothing = { kind: 'nothing' };
    const [bornMs, changedMs] = [NOW.modifiedMs - 1, READ_AGAIN_AT - 1];
    assert.deepEqual(await learnt({ bornMs, changedMs }, READ_AGAIN_AT), nothing);
    records.drop('a');
    assert.deepEqual(await learnt({ changedMs: bornMs }, READ_AGAIN_AT), nothing);
  });

  it('is the one that shows where it is older than the change, or the change was seen', async () => {
    const shown = { kind: 'file', version: NOW };
    const changedMs = READ_AGAIN_AT - 1;
    assert.deepEqual(await learnt({ bornMs: NOW.modifiedMs, changedMs }, READ_AGAIN_AT), shown);
    records.drop('a');
    assert.deepEqual(await learnt({ changedMs }, READ_AGAIN_AT), shown);
    records.drop('a');
    // An old file that was renamed to the place under this daemon's eyes.
    assert.deepEqual(await learnt({ bornMs: 1, changedMs: READ_AGAIN_AT }, READ_AGAIN_AT), shown);
  });

  it('is that from before for all in a deleted folder; what others put there since was not seen', async () => {
    const folderOf = (name: string): RemoteEntry => ({ name, kind: 'folder' });
    const fileOf = (name: string, version: RemoteVersion): RemoteEntry => ({ name, kind: 'file', version });
    const held = new Map<string, RemoteEntry | null>([
      ['d/changed', fileOf('changed', BEFORE)],
      ['d/new', null],
      ['turned', fileOf('turned', BEFORE)],
    ]);
    const listings = new Map([
      ['d', [fileOf('changed', NOW), fileOf('new', NOW), fileOf('kept', NOW)]],
      ['turned', [fileOf('theirs', NOW)]],
    ]);
    await learn(
      ['d', 'turned'].map((place) => ({ place, isTree: true })),
      {
        layer: {
          below: async (paths) => ({
            found: new Map(paths.map((path) => [path, folderOf(path)])),
            failed: new Map(),
          }),
          listBelow: async (paths) => ({
            found: new Map(paths.map((path) => [path, listings.get(path)])),
            failed: new Map(),
          }),
          held: (path) => held.get(path),
        },
        remote: NOTHING_THERE,
        records,
        sources: [],
        isStill: async () => true,
        now: Date.now,
        signal: new AbortController().signal,
      },
    );
    const known = new Map([...records.places].map(([place, { remote }]) => [place, remote]));
    assert.deepEqual(
      known,
      new Map<string, unknown>([
        ['d/changed', { kind: 'file', version: BEFORE }],
        ['d/kept', { kind: 'file', version: NOW }],
        ['d', { kind: 'folder' }],
        ['turned', { kind: 'file', version: BEFORE }],
      ]),
    );
  });

  it('is the one that shows for a deletion where nothing was before, and nothing for what was made', async () => {
    const layer = {
      below: async (paths: readonly string[]) => ({
        found: new Map(paths.map((path) => [path, { name: path, kind: 'file', version: NOW } as const])),
        failed: new Map<string, string>(),
      }),
      listBelow: async () => ({ found: new Map(), failed: new Map<string, string>() }),
      held: () => null,
    };
    await learn(
      [
        { place: 'deleted', isTree: true, wasThere: true },
        { place: 'moved to', isTree: true },
        { place: 'made', isTree: true, folder: '1.1' },
        { place: 'written', isTree: false, bornMs: 1 },
      ],
      {
        layer,
        remote: NOTHING_THERE,
        records,
        sources: [],
        isStill: async () => true,
        now: Date.now,
        signal: new AbortController().signal,
      },
    );
    const known = ['deleted', 'moved to', 'made', 'written'].map(
      (place) => records.places.get(place)?.remote.kind,
    );
    assert.deepEqual(known, ['file', 'nothing', 'nothing', 'nothing']);
  });

  const found = async (
    lesson: Lesson,
    entries: Readonly<Record<string, RemoteEntry>>,
    more: {
      readonly unsettled?: readonly string[];
      readonly onLook?: () => void;
      readonly list?: RemoteFiles['list'];
      readonly held?: () => null;
    } = {},
  ): Promise<ReadonlyMap<string, string>> =>
    learn([lesson], {
      layer: {
        below: async (paths) => {
          more.onLook?.();
          return { found: new Map(paths.map((path) => [path, entries[path]])), failed: new Map() };
        },
        listBelow: async (paths) => ({
          found: new Map(paths.map((path) => [path, entries[`${path}/a`] ? [entries[`${path}/a`]!] : []])),
          failed: new Map(),
        }),
        ...(more.held && { held: more.held }),
      },
      remote: { ...NOTHING_THERE, ...(more.list && { list: more.list }) },
      records,
      sources: [],
      ...(more.unsettled && { unsettled: more.unsettled }),
      isStill: async () => true,
      now: Date.now,
      signal: new AbortController().signal,
    });

  it('is not looked up in a folder that the remote has moved and the share does not show there yet', async () => {
    const failed = await found({ place: 'new/a', isTree: true }, {}, { unsettled: ['new'] });
    assert.deepEqual([...failed.keys()], ['new/a']);
    assert.equal(records.places.has('new/a'), false);
  });

  it('is not noted at a name that a move has changed meanwhile', async () => {
    const file: RemoteEntry = { name: 'a', kind: 'file', version: NOW };
    const onLook = (): void => records.renamed('old', 'new');
    const failed = await found({ place: 'old/a', isTree: true }, { 'old/a': file }, { onLook });
    assert.deepEqual([...failed.keys()], ['old/a']);
    assert.equal(records.places.has('old/a'), false);
  });

  it('is not nothing where the share does not show yet what came with a folder that was moved here', async () => {
    const folder = { remote: { kind: 'folder' }, isShown: true } as const;
    records.set('d', folder);
    const file: RemoteEntry = { name: 'a', kind: 'file', version: NOW };
    const list = async (): Promise<readonly RemoteEntry[]> => [file];
    const away = (): Promise<never> => Promise.reject(new Error('away'));
    const lesson = { isTree: false, wasThere: true };
    const failed = await found({ place: 'd/a', ...lesson }, {}, { list });
    assert.match(failed.get('d/a') ?? '', /the share does not show it yet/);
    assert.match((await found({ place: 'd/a', ...lesson }, {}, { list: away })).get('d/a') ?? '', /away/);
    assert.equal(records.places.has('d/a'), false);
    // Others have renamed it in case alone: by its former name it is not there.
    assert.equal((await found({ place: 'd/A', ...lesson }, {}, { list })).size, 0);
    assert.deepEqual(records.places.get('d/A')?.remote, { kind: 'nothing' });
  });

  it('is nothing for what users put where nothing shows, whatever the remote says', async () => {
    records.set('d', { remote: { kind: 'folder' }, isShown: true });
    const list = (): Promise<never> => Promise.reject(new Error('away'));
    for (const made of [{ bornMs: 1 }, { folder: '1.1' }, { changedMs: 1 }]) {
      assert.equal((await found({ place: 'd/a', isTree: true, ...made }, {}, { list })).size, 0);
      assert.deepEqual(records.places.get('d/a')?.remote, { kind: 'nothing' });
      records.drop('d/a');
    }
  });

  it('is what shows in a folder that the uploader moved, though it showed empty for a moment', async () => {
    records.set('d', { remote: { kind: 'folder' }, isShown: true });
    records.setMove('1.1', { at: 'd', former: ['c'] });
    await found(
      { place: 'd', isTree: true, isGone: true, wasThere: true },
      { d: { name: 'd', kind: 'folder' }, 'd/a': { name: 'a', kind: 'file', version: NOW } },
      { held: () => null },
    );
    assert.deepEqual(records.places.get('d/a')?.remote, { kind: 'file', version: NOW });
  });

  it('is nothing in a folder that was shown empty at its place, and filled by others since', async () => {
    records.set('d', { remote: { kind: 'folder' }, isShown: true });
    const listings = new Map<string, readonly RemoteEntry[]>([
      [
        'd',
        [
          { name: 's', kind: 'folder' },
          { name: 'z', kind: 'file', version: NOW },
        ],
      ],
      ['d/s', [{ name: 'in', kind: 'file', version: NOW }]],
    ]);
    await learn([{ place: 'd', isTree: true, isGone: true, wasThere: true }], {
      layer: {
        below: async () => ({
          found: new Map<string, RemoteEntry>([['d', { name: 'd', kind: 'folder' }]]),
          failed: new Map(),
        }),
        listBelow: async (paths) => ({
          found: new Map(paths.map((path) => [path, listings.get(path)])),
          failed: new Map(),
        }),
        // Of a folder that was not there no listing is held.
        held: (path) => (path === 'd/s' || path === 'd/z' ? null : undefined),
      },
      remote: NOTHING_THERE,
      records,
      sources: [],
      isStill: async () => true,
      now: Date.now,
      signal: new AbortController().signal,
    });
    assert.equal(records.places.get('d')?.isTree, true);
    assert.deepEqual(
      [...records.places.keys()].filter((path) => path !== 'd'),
      [],
    );
  });

  it('is that from before in such a folder, too, where a listing is held that is not empty', async () => {
    records.set('d', { remote: { kind: 'folder' }, isShown: true });
    records.setMove('1.1', { at: 'd', former: ['c'] });
    const fileOf = (name: string, version: RemoteVersion): RemoteEntry => ({ name, kind: 'file', version });
    const held = new Map<string, RemoteEntry | null>([
      ['d/changed', fileOf('changed', BEFORE)],
      ['d/new', null],
      ['d/s', { name: 's', kind: 'folder' }],
      // It was on its way when that was held.
      ['d/s/in', null],
    ]);
    const listings = new Map<string, readonly RemoteEntry[]>([
      ['d', [fileOf('changed', NOW), fileOf('new', NOW), { name: 's', kind: 'folder' }]],
      ['d/s', [fileOf('in', NOW)]],
    ]);
    await learn([{ place: 'd', isTree: true, isGone: true, wasThere: true }], {
      layer: {
        below: async () => ({
          found: new Map<string, RemoteEntry>([['d', { name: 'd', kind: 'folder' }]]),
          failed: new Map(),
        }),
        listBelow: async (paths) => ({
          found: new Map(paths.map((path) => [path, listings.get(path)])),
          failed: new Map(),
        }),
        // As a write layer that is an object of a class has it.
        held(path) {
          assert.ok(this !== undefined);
          return held.get(path);
        },
      },
      remote: NOTHING_THERE,
      records,
      sources: [],
      isStill: async () => true,
      now: Date.now,
      signal: new AbortController().signal,
    });
    const seen = ['d/changed', 'd/new', 'd/s/in'].map((path) => records.places.get(path)?.remote);
    assert.deepEqual(seen, [{ kind: 'file', version: BEFORE }, undefined, { kind: 'file', version: NOW }]);
  });

  it('is, in a folder that was deleted, also that of what was on its way out of the upper folder', async () => {
    records.set('d/a', { remote: { kind: 'file', version: NOW }, isLeaving: true });
    await found(
      { place: 'd', isTree: true },
      { d: { name: 'd', kind: 'folder' }, 'd/a': { name: 'a', kind: 'file', version: NOW } },
    );
    assert.deepEqual(records.places.get('d/a'), { remote: { kind: 'file', version: NOW }, isTree: true });
  });

  it('is, where a file has left that may come back, what shows there', async () => {
    records.set('d/a', { remote: { kind: 'file', version: BEFORE }, isLeaving: true, away: '7' });
    await found(
      { place: 'd', isTree: true },
      { d: { name: 'd', kind: 'folder' }, 'd/a': { name: 'a', kind: 'file', version: NOW } },
    );
    assert.deepEqual(records.places.get('d/a'), { remote: { kind: 'file', version: NOW }, isTree: true });
  });

  it('stays the one that is on record', async () => {
    records.set('a', { remote: { kind: 'file', version: NOW } });
    assert.deepEqual(await learnt({ bornMs: 0 }), { kind: 'file', version: NOW });
  });

  /** As over S3: rclone has not seen the file's time before, and shows that of the question. */
  const asked = async (stat: RemoteFiles['stat']): Promise<readonly unknown[]> => {
    const file = (): RemoteEntry => ({
      name: 'a',
      kind: 'file',
      version: { bytes: 1, modifiedMs: Date.now() },
    });
    const failed = await learn(
      [
        { place: 'a', isTree: true, bornMs: 1 },
        { place: 'd', isTree: true },
      ],
      {
        layer: {
          below: async () => ({
            found: new Map<string, RemoteEntry>([
              ['a', file()],
              ['d', { name: 'd', kind: 'folder' }],
            ]),
            failed: new Map(),
          }),
          listBelow: async () => ({ found: new Map([['d', [file()]]]), failed: new Map() }),
        },
        remote: { ...NOTHING_THERE, stat },
        records,
        sources: [],
        isStill: async () => true,
        now: Date.now,
        signal: new AbortController().signal,
      },
    );
    return [[...failed.keys()], [...records.places.keys()]];
  };

  it('is not known while the remote does not tell its time', async () => {
    const away = (): Promise<never> => Promise.reject(new Error('away'));
    assert.deepEqual(await asked(away), [['a', 'd'], []]);
    // It is back, and has another time.
    assert.deepEqual(await asked(async () => ({ name: 'a', kind: 'file', version: BEFORE })), [
      ['a', 'd'],
      [],
    ]);
  });

  it('is one of this moment where the remote says so, or has it no more', async () => {
    const fresh = async (): Promise<RemoteEntry> => ({
      name: 'a',
      kind: 'file',
      version: { bytes: 1, modifiedMs: Date.now() },
    });
    assert.deepEqual(await asked(fresh), [[], ['a', 'd/a', 'd']]);
    assert.deepEqual((await asked(async () => undefined))[0], []);
  });
});
