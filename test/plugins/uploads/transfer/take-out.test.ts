/** What is noted of entries that were to leave the upper folder and stay, and of those beside them. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import type { LeavingEntry, UploadFigures } from 'mountkeeper';
import { NOTHING, Records } from '../../../../plugins/uploads/compare/records.ts';
import type { ScanEntry } from '../../../../plugins/uploads/compare/scan.ts';
import { takeOutDone } from '../../../../plugins/uploads/transfer/leaving/take-out.ts';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import type { StepTools } from '../../../../plugins/uploads/transfer/step-tools.ts';
import { LateScan } from '../../../support/write-layer/late-scan.ts';
import { changeOnBothSides } from '../../../support/write-layer/uploader-crash.ts';
import { refusal, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const HOUR = 3_600_000;

function entry(path: string, kind: LeavingEntry['kind']): LeavingEntry & Pick<ScanEntry, 'key'> {
  return { path, kind, inode: 1n, key: '1.1', bytes: 0, modifiedNs: 0n, changedNs: 0n, isOpaque: false };
}

it('notes what has left and what has not before it asks the remote about a whiteout that stays', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mk-take-out-'));
  const records = await Records.open(folder, 'upper');
  try {
    for (const path of ['hidden', 'gone', 'kept']) records.set(path, { remote: NOTHING });
    const told: string[] = [];
    const tools = {
      records,
      layer: { upper: folder, takeOut: async () => ['gone'] },
      remote: { forget: async () => undefined, stat: () => Promise.reject(refusal('No answer.', 'silent')) },
      signal: new AbortController().signal,
      leaving: () => (left: ReadonlySet<string>) => void told.push(...left),
    } as unknown as StepTools;
    const entries = [entry('hidden', 'whiteout'), entry('gone', 'file'), entry('kept', 'file')];
    await assert.rejects(takeOutDone(entries, [''], tools), /No answer/);
    assert.deepEqual(told, ['gone']);
    assert.deepEqual(
      [...records.places].map(([path, { isLeaving }]) => [path, isLeaving]),
      [
        ['hidden', false],
        ['gone', true],
        ['kept', false],
      ],
    );
  } finally {
    await records.close();
    rmSync(folder, { recursive: true });
  }
});

for (const [how, again] of [
  ['finds it gone', async () => []],
  ['fails', () => Promise.reject(new Error('no answer'))],
] as const)
  it(`counts what has left as on its way where an older plan takes it out again and ${how}`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'mk-take-out-'));
    const records = await Records.open(folder, 'upper');
    try {
      records.set('gone', { remote: { kind: 'file', version: { bytes: 1, modifiedMs: 1 } } });
      let takeOut: () => Promise<readonly string[]> = async () => ['gone'];
      const tools = {
        records,
        layer: { upper: folder, takeOut: () => takeOut() },
        remote: { forget: async () => undefined },
        signal: new AbortController().signal,
        leaving: () => () => undefined,
      } as unknown as StepTools;
      await takeOutDone([entry('gone', 'file')], [''], tools);
      const left = records.places.get('gone');
      assert.deepEqual([left?.isLeaving, left?.away], [true, '1.1']);
      takeOut = again;
      await takeOutDone([entry('gone', 'file')], [''], tools).catch(() => undefined);
      assert.deepEqual(records.places.get('gone'), left);
    } finally {
      await records.close();
      rmSync(folder, { recursive: true });
    }
  });

it('counts what is missing after a take-out that failed as deleted, unless it is still to come back', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mk-take-out-'));
  const records = await Records.open(folder, 'upper');
  try {
    for (const path of ['deleted', 'owed'])
      records.set(path, { remote: { kind: 'file', version: { bytes: 1, modifiedMs: 1 } } });
    const tools = {
      records,
      layer: {
        upper: folder,
        takeOut: () => Promise.reject(new Error('no')),
        unrestored: () => new Set(['owed']),
      },
      remote: { forget: async () => undefined },
      signal: new AbortController().signal,
      leaving: () => () => undefined,
    } as unknown as StepTools;
    await assert.rejects(takeOutDone([entry('deleted', 'file'), entry('owed', 'file')], [''], tools), /no/);
    assert.deepEqual(
      [...records.places].map(([path, { isLeaving }]) => [path, isLeaving]),
      [
        ['deleted', false],
        ['owed', true],
      ],
    );
  } finally {
    await records.close();
    rmSync(folder, { recursive: true });
  }
});

it('does not delete what others put where a whiteout came back, though a look that ends late missed it', async () => {
  const share = new TestShare();
  const { signal } = new AbortController();
  writeFileSync(join(share.nas, 'a'), 'first');
  share.up();
  const [nas, whiteout, away] = [
    join(share.nas, 'a'),
    join(share.upper, 'a'),
    join(share.root, 'away'),
  ] as const;
  const late = new LateScan();
  let begun: Promise<unknown> | undefined;
  const uploader: ShareUploader = share.uploader(
    async (call, when) => {
      if (call !== 'takeOut' || when !== 'before' || begun !== undefined) return;
      renameSync(whiteout, away);
      late.holdNext();
      uploader.flush();
      begun = uploader.look(signal);
      await late.isHeld;
      renameSync(away, whiteout);
      writeFileSync(nas, 'of others');
    },
    { processes: late },
  );
  try {
    rmSync(share.at('a'));
    for (let looks = 0; begun === undefined && looks < 20; looks += 1) {
      uploader.flush();
      await uploader.look(signal);
      await uploader.settled();
    }
    late.goOn();
    await begun;
    await settle(uploader);
    assert.equal(existsSync(nas) && readFileSync(nas, 'utf8'), 'of others');
    assert.equal(readFileSync(share.at('a'), 'utf8'), 'of others');
  } finally {
    await uploader.stop();
    share.close();
  }
});

it('neither deletes nor forgets what could not be brought back: a later change meets the one of others', async () => {
  const share = new TestShare();
  const { signal } = new AbortController();
  const [nas, mine, away] = [join(share.nas, 'a'), join(share.upper, 'a'), join(share.root, 'away')] as const;
  share.up();
  const uploader = share.uploader(
    (call, when) => {
      if (call !== 'takeOut' || when !== 'before' || !existsSync(mine)) return;
      renameSync(mine, away);
      share.unrestored = new Set(['a']);
      throw new Error('the disk fails');
    },
    { clean: { listingAgeMs: () => HOUR, keepMs: () => HOUR, minFreeBytes: () => Number.MAX_SAFE_INTEGER } },
  );
  const look = async (): Promise<UploadFigures> => {
    uploader.flush();
    const figures = await uploader.look(signal);
    await uploader.settled();
    return figures;
  };
  try {
    writeFileSync(share.at('a'), 'mine');
    for (let looks = 0; looks < 20 && share.unrestored.size === 0; looks += 1) await look();
    for (let looks = 0; looks < 3; looks += 1) assert.equal((await look()).isTorn, true);
    assert.equal(readFileSync(nas, 'utf8'), 'mine');
    writeFileSync(nas, 'of others');
    renameSync(away, mine);
    appendFileSync(mine, ' changed');
    share.unrestored = new Set();
    await settle(uploader);
    assert.equal(readFileSync(nas, 'utf8'), 'of others');
    assert.deepEqual(
      share.conflicts.map(({ path, what }) => [path, what]),
      [['a', 'changed']],
    );
  } finally {
    await uploader.stop();
    share.close();
  }
});

it('deletes nothing on the NAS that leaves to make room while a look finds it here still', async () => {
  const share = new TestShare();
  const { signal } = new AbortController();
  const look = async (): Promise<void> => {
    uploader.flush();
    await uploader.look(signal);
  };
  let attempts = 0;
  share.up();
  const uploader: ShareUploader = share.uploader(
    async (call, when) => {
      if (call !== 'takeOut' || (attempts === 0 && !existsSync(join(share.upper, 'a')))) return;
      if (when === 'before') attempts += 1;
      if (when === 'before' && attempts === 1) await look();
      // As each file that has left, it may come back for a minute.
      if (when === 'after') share.resting = new Set(['a']);
    },
    { clean: { listingAgeMs: () => HOUR, keepMs: () => HOUR, minFreeBytes: () => Number.MAX_SAFE_INTEGER } },
  );
  try {
    writeFileSync(share.at('a'), 'mine');
    for (let looks = 0; looks < 20 && attempts < 2; looks += 1) {
      await look();
      await uploader.settled();
    }
    for (let turn = 0; turn < 3; turn += 1) await settle(uploader);
    assert.deepEqual(
      { isTwice: attempts > 1, nas: Object.fromEntries(treeOf(share.nas)), conflicts: share.conflicts },
      { isTwice: true, nas: { a: 'mine' }, conflicts: [] },
    );
  } finally {
    await uploader.stop();
    share.close();
  }
});

/** What is on record of the file that has left is another text from now on. */
function noteLeft({ records }: TestShare, change: (noted: string) => string): void {
  const noted = /,"away":"[^"]+"/g;
  const files = readdirSync(records)
    .map((name) => join(records, name))
    .filter((file) => readFileSync(file, 'utf8').search(noted) !== -1);
  assert.equal(files.length, 1);
  for (const file of files) writeFileSync(file, readFileSync(file, 'utf8').replaceAll(noted, change));
}

interface Resting {
  readonly share: TestShare;
  readonly comeBack: () => Promise<void>;
  /** Nobody can touch it any more, and the daemon starts anew. */
  readonly endRest: (change: (noted: string) => string) => Promise<void>;
}

/** `a` was written here and replaced by others, so that it has left, and may come back for a minute. */
async function withResting(
  act: (kit: Resting) => Promise<void>,
  restart: 'none' | 'orderly' | 'killed' = 'none',
): Promise<Record<string, string>> {
  const share = new TestShare();
  const [mine, away] = [join(share.upper, 'a'), join(share.root, 'away')] as const;
  share.hasHashes = true;
  share.up();
  const begin = (): ShareUploader =>
    share.uploader(
      (call, when) => {
        if (call === 'takeOut' && when === 'after' && !existsSync(mine)) share.resting = new Set(['a']);
      },
      { clean: { listingAgeMs: () => HOUR, keepMs: () => HOUR, minFreeBytes: () => 0 } },
    );
  let uploader = begin();
  try {
    writeFileSync(share.at('a'), 'mine');
    linkSync(mine, away);
    await settle(uploader);
    share.othersWrite('a', 'of others');
    uploader.refreshed('', true);
    for (let turn = 0; turn < 3; turn += 1) await settle(uploader);
    assert.deepEqual([readFileSync(share.at('a'), 'utf8'), ...share.resting], ['of others', 'a']);
    if (restart !== 'none') {
      await uploader.stop();
      // Between the move to where it rests and the record of that.
      if (restart === 'killed') noteLeft(share, () => '');
      uploader = begin();
      await settle(uploader);
    }
    const comeBack = async (): Promise<void> => {
      share.down();
      if (!existsSync(mine)) renameSync(away, mine);
      share.resting = new Set();
      share.up();
      await settle(uploader);
    };
    const endRest = async (change: (noted: string) => string): Promise<void> => {
      await uploader.stop();
      share.resting = new Set();
      noteLeft(share, change);
      uploader = begin();
    };
    await act({ share, comeBack, endRest });
    for (let turn = 0; turn < 2; turn += 1) await settle(uploader);
    assert.deepEqual(
      share.conflicts.map(({ path, what }) => [path, what]),
      treeOf(share.nas).size < 2 ? [] : [['a', 'changed']],
    );
    return Object.fromEntries(treeOf(share.nas));
  } finally {
    await uploader.stop();
    share.close();
  }
}

for (const [when, restart] of [
  ['', 'none'],
  [', also after a restart', 'orderly'],
  [', also after a kill that came before it was on record that it had left', 'killed'],
] as const) {
  it(`replaces nothing of others by what comes back within its minute, untouched but for its mode${when}`, async () => {
    const left = await withResting(async ({ share, comeBack }) => {
      chmodSync(join(share.root, 'away'), 0o640);
      await comeBack();
    }, restart);
    assert.deepEqual(left, { a: 'of others' });
  });

  it(`puts beside the version of others what was written to before it came back within its minute${when}`, async () => {
    const left = await withResting(async ({ share, comeBack }) => {
      appendFileSync(join(share.root, 'away'), ', and more');
      await comeBack();
    }, restart);
    assert.deepEqual(Object.values(left).sort(), ['mine, and more', 'of others']);
    assert.equal(left['a'], 'of others');
  });
}

it('takes a new file, where one has left that may come back, for a change of what users see there', async () => {
  const changed = await withResting(async ({ share }) =>
    writeFileSync(share.at('a'), 'theirs, changed here'),
  );
  assert.deepEqual(changed, { a: 'theirs, changed here' });
  const atTheEnd = await withResting(async ({ share, comeBack }) => {
    writeFileSync(share.at('a'), 'theirs, changed here');
    await comeBack();
  });
  assert.deepEqual(atTheEnd, { a: 'theirs, changed here' });
});

it('takes a new file that has the inode of one that has left for a change of what users see there', async () => {
  const left = await withResting(async ({ share, endRest }) => {
    writeFileSync(share.at('a'), 'theirs, changed here');
    const { ino } = statSync(join(share.upper, 'a'), { bigint: true });
    // File systems give the inode of what was removed to what comes next.
    await endRest((noted) => noted.replace(/"[\da-z]+(?=\.)/, `"${ino.toString(36)}`));
  });
  assert.deepEqual(left, { a: 'theirs, changed here' });
});

it('takes its other name, which users give to its place while it may come back, for a change as well', async () => {
  const left = await withResting(async ({ share }) => {
    share.down();
    linkSync(join(share.root, 'away'), join(share.upper, 'a'));
    share.up();
  });
  assert.deepEqual(left, { a: 'mine' });
});

it('deletes what others have where a file has left that may come back, once users delete that', async () => {
  const left = await withResting(async ({ share }) => rmSync(share.at('a')));
  assert.deepEqual(left, {});
});

for (const [who, isHere] of [
  ['its user, here', true],
  ['others', false],
] as const)
  it(`sends the version of a conflict again that cannot leave yet, where its copy is deleted by ${who}`, async () => {
    const share = new TestShare();
    const { signal } = new AbortController();
    const onNas = (): readonly string[] => [...treeOf(share.nas).values()].sort();
    await changeOnBothSides(share, 'a');
    // It stays at its place here, as while somebody has it open.
    share.live = 'drops names';
    let uploader = share.uploader();
    try {
      await settle(uploader);
      assert.deepEqual(onNas(), ['of others', 'ours']);
      const copy = uploader.conflicts()[0]?.copy ?? '';
      share.dropNames();
      rmSync(isHere ? share.at(copy) : join(share.nas, copy));
      if (!isHere) {
        await uploader.stop();
        uploader = share.uploader();
      }
      const seen: number[] = [];
      for (let looks = 0; looks < 6; looks += 1) {
        uploader.flush();
        seen.push((await uploader.look(signal)).dirtyFiles);
        await uploader.settled();
      }
      await settle(uploader);
      assert.ok(
        seen.some((count) => count > 0),
        'it is not all on the NAS',
      );
      assert.deepEqual(onNas(), ['of others', 'ours']);
      assert.equal(uploader.conflicts().length, 1);
    } finally {
      await uploader.stop();
      share.close();
    }
  });
