import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { treesOf } from '../../../../plugins/mount/cache/metadata.ts';
import { OverwrittenRecords } from '../../../../plugins/mount/recovery/overwritten-records.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const META = {
  Size: 5,
  Rs: [{ Pos: 0, Size: 5 }],
  Fingerprint: '5,then',
  ModTime: '',
  ATime: '',
};

describe('records that rclone overwrites with those of former files', () => {
  let root: string;
  let clock: ReturnType<typeof createManualClock>;
  let queue: {
    readonly name: string;
    readonly id: number;
    readonly uploading?: boolean;
  }[];
  let asked: number;
  /** Called when the queue is asked for. */
  let onAsk: () => void;
  let saved: [name: string, modifiedMs: number][];
  let records: OverwrittenRecords;

  const put = async (name: string, isDirty: boolean): Promise<void> => {
    const { data, meta } = treesOf(root);
    for (const [tree, content] of [
      [data, '12345'],
      [meta, JSON.stringify({ ...META, Dirty: isDirty })],
    ] as const) {
      const file = join(tree, 'team', name);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, content);
    }
  };

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'mk-records-'));
    clock = createManualClock();
    [queue, asked, onAsk, saved] = [[], 0, () => undefined, []];
    records = new OverwrittenRecords({
      rc: {
        call: async <T>(): Promise<T> => {
          asked += 1;
          onAsk();
          return { queue } as T;
        },
      },
      trees: treesOf(root),
      fs: 'nas:team',
      clock,
      log: collectLog().log,
      saveRecord: async (name, modifiedMs) => void saved.push([name, modifiedMs]),
    });
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it('are saved again for files that wait, with the time of the saving', async () => {
    await put('tree/saved', false);
    await put('edited', true);
    queue = [
      { name: 'tree/saved', id: 1 },
      { name: 'edited', id: 2 },
      { name: 'gone', id: 3 },
    ];
    await records.mend();
    const { ctimeMs } = await stat(join(treesOf(root).data, 'team/tree/saved'));
    assert.deepEqual(saved, [['tree/saved', ctimeMs]]);
  });

  it('are left alone for what went up meanwhile', async () => {
    await put('saved', false);
    queue = [{ name: 'saved', id: 1 }];
    onAsk = () => {
      if (asked === 2) queue = [];
    };
    await records.mend();
    assert.deepEqual([asked, saved], [2, []]);
  });

  it('are looked at closely at first, and again every minute', async () => {
    await put('saved', true);
    queue = [{ name: 'saved', id: 1 }];
    await records.mend();
    await put('saved', false);
    await clock.advance(5_000);
    await records.mend();
    assert.equal(saved.length, 1);
    for (let second = 5; second < 65; second += 1) {
      await clock.advance(1_000);
      await records.mend();
    }
    // From the fifth to the fifteenth second in each round, then once.
    assert.equal(saved.length, 1 + 10);
    await clock.advance(15_000);
    await records.mend();
    assert.equal(saved.length, 1 + 10 + 1);
  });

  it('are left alone for what goes up and may just be through, and not in the next round', async () => {
    await put('saved', false);
    queue = [{ name: 'saved', id: 1, uploading: true }];
    await records.mend();
    assert.deepEqual(saved, []);
    // rclone tries without end while the NAS is away.
    await records.mend();
    assert.equal(saved.length, 1);
  });

  it('are saved again in the next round also for what has waited long and is called uploading', async () => {
    await put('saved', true);
    queue = [{ name: 'saved', id: 1, uploading: true }];
    await records.mend();
    await clock.advance(60_000);
    await put('saved', false);
    await records.mend();
    assert.deepEqual(saved, []);
    await clock.advance(1_000);
    await records.mend();
    await clock.advance(1_000);
    await records.mend();
    assert.equal(saved.length, 1);
  });

  it('are looked at as those of a new file once it has another name, though rclone keeps its id', async () => {
    await put('temporary', true);
    await put('saved', false);
    queue = [{ name: 'temporary', id: 1 }];
    await records.mend();
    await clock.advance(20_000);
    await records.mend();
    queue = [{ name: 'saved', id: 1 }];
    await records.mend();
    assert.deepEqual(
      saved.map(([name]) => name),
      ['saved'],
    );
  });

  it('are looked at in portions where thousands wait, those of new files first', async () => {
    for (let id = 0; id < 1_200; id += 1) queue.push({ name: `${id}`, id });
    for (const name of ['0', '1199', 'new']) await put(name, false);
    await records.mend();
    assert.deepEqual(
      saved.map(([name]) => name),
      ['0'],
      '500 of them',
    );
    await clock.advance(20_000);
    queue.push({ name: 'new', id: 5_000 });
    for (let round = 0; round < 2; round += 1) await records.mend();
    assert.deepEqual(
      saved.map(([name]) => name),
      ['0', 'new', 'new', '1199'],
    );
  });

  it('cost no question while nothing waits', async () => {
    records.noteQueued(0);
    await records.mend();
    assert.equal(asked, 0);
    records.noteQueued(1);
    await records.mend();
    assert.equal(asked, 1);
  });
});
