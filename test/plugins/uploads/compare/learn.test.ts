import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteEntry, RemoteVersion } from 'mountkeeper';
import { learn } from '../../../../plugins/uploads/compare/learn.ts';
import type { Lesson } from '../../../../plugins/uploads/compare/plan-types.ts';
import { Records } from '../../../../plugins/uploads/compare/records.ts';

const BEFORE: RemoteVersion = { bytes: 1, modifiedMs: 1 };
const NOW: RemoteVersion = { bytes: 2, modifiedMs: 2 };
const READ_AGAIN_AT = 1_000;

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
  const learnt = async (lesson: Partial<Lesson>): Promise<unknown> => {
    const shown: RemoteEntry = { name: 'a', kind: 'file', version: NOW };
    const failed = await learn([{ place: 'a', isTree: true, ...lesson }], {
      layer: {
        below: async () => ({ found: new Map([['a', shown]]), failed: new Map() }),
        listBelow: async () => ({ found: new Map(), failed: new Map() }),
        heldVersion: (path, openedAtMs) => (path === 'a' && openedAtMs <= READ_AGAIN_AT ? BEFORE : undefined),
      },
      remote: { forget: async () => undefined, stat: async () => undefined },
      records,
      sources: [],
      isStill: async () => true,
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

  it('is the former one for a deletion, whose time nobody knows: then the other one stays', async () => {
    assert.deepEqual(await learnt({}), { kind: 'file', version: BEFORE });
  });

  it('stays the one that is on record', async () => {
    records.set('a', { remote: { kind: 'file', version: NOW } });
    assert.deepEqual(await learnt({ bornMs: 0 }), { kind: 'file', version: NOW });
  });
});
