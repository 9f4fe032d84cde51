/**
 * Files that the NAS has, too: when they leave the upper folder, and when they must not. On a real overlay.
 */
import assert from 'node:assert/strict';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { CleanRules, Clock } from 'mountkeeper';
import { CleanFiles } from '../../../../plugins/uploads/transfer/leaving/clean-files.ts';
import type { CleanFile } from '../../../../plugins/uploads/compare/plan-types.ts';
import { LateScan } from '../../../support/write-layer/late-scan.ts';
import { until } from '../../../support/platform/wait.ts';
import {
  clock as realClock,
  refusal,
  settle,
  TestShare,
  treeOf,
} from '../../../support/write-layer/uploader-share.ts';

const HOUR = 3_600_000;
const KEEPS: CleanRules = { listingAgeMs: () => HOUR, keepMs: () => 1_000 * HOUR, minFreeBytes: () => 0 };

describe('a file that the NAS has, too', () => {
  let share: TestShare;
  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd'));
    writeFileSync(join(share.nas, 'd/a'), 'first');
    utimesSync(join(share.nas, 'd/a'), 1_700_000_000, 1_700_000_000);
    share.up();
  });
  afterEach(() => share.close());

  const run = async (clean: CleanRules, act: () => void = () => undefined, restMs = 0): Promise<void> => {
    const uploader = share.uploader(undefined, { clean, restMs });
    try {
      await settle(uploader);
      act();
      uploader.refreshed('', true);
      // The look that asks the NAS, and the one that takes out.
      for (let turn = 0; turn < 3; turn += 1) await settle(uploader);
    } finally {
      await uploader.stop();
    }
  };
  const isUpper = (path: string): boolean => existsSync(join(share.upper, path));
  const othersWrite = (content: string): void => share.othersWrite('d/a', content);

  it('stays as long as nothing asks for its place', async () => {
    writeFileSync(share.at('d/a'), 'ours');
    await run(KEEPS);
    assert.ok(isUpper('d/a'));
  });

  it('leaves when others have replaced it: users see theirs, and nobody is told of a conflict', async () => {
    writeFileSync(share.at('d/a'), 'ours');
    await run(KEEPS, () => othersWrite('of others'));
    assert.equal(readFileSync(share.at('d/a'), 'utf8'), 'of others');
    assert.equal(readFileSync(join(share.nas, 'd/a'), 'utf8'), 'of others');
    assert.deepEqual(share.conflicts, []);
  });

  for (const [others, act, left] of [
    ['replaced', () => othersWrite('of others'), { d: '/', 'd/a': 'of others' }],
    ['deleted', () => rmSync(join(share.nas, 'd/a')), { d: '/' }],
  ] as const)
    it(`leaves when others have ${others} it, though its mode has been changed since, or it came back`, async () => {
      share.hasHashes = true;
      writeFileSync(share.at('d/a'), 'ours');
      await run(KEEPS, () => {
        chmodSync(share.at('d/a'), 0o640);
        act();
      });
      assert.deepEqual(treeOf(share.nas), new Map(Object.entries(left)));
      assert.deepEqual(share.conflicts, []);
    });

  it('goes up again when it has its former name again, and the answer to the deletion there was lost', async () => {
    share.hasHashes = true;
    writeFileSync(share.at('d/a'), 'ours');
    await run(KEEPS);
    renameSync(share.at('d/a'), share.at('d/b'));
    const uploader = share.uploader(
      (call, when) => {
        if (call === 'deleteFile' && when === 'after') throw refusal('No answer.', 'silent');
      },
      { clean: KEEPS },
    );
    const isDeleted = async (): Promise<boolean> => {
      uploader.flush();
      await uploader.look(new AbortController().signal);
      await uploader.settled();
      return !existsSync(join(share.nas, 'd/a'));
    };
    await until('it is deleted there', isDeleted, { timeoutMs: 10_000 });
    await uploader.stop();
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['d', '/'],
        ['d/b', 'ours'],
      ]),
    );
    renameSync(share.at('d/b'), share.at('d/a'));
    await run(KEEPS);
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['d', '/'],
        ['d/a', 'ours'],
      ]),
    );
    assert.equal(readFileSync(share.at('d/a'), 'utf8'), 'ours');
  });

  it('takes nothing of others with it when a look saw it that ends after it has left', async () => {
    writeFileSync(share.at('d/a'), 'ours');
    const late = new LateScan();
    let begun: Promise<unknown> | undefined;
    const uploader = share.uploader(
      async (call, when) => {
        if (call !== 'takeOut' || when !== 'before' || begun !== undefined) return;
        late.holdNext();
        uploader.pause(0);
        begun = uploader.look(new AbortController().signal);
        await late.isHeld;
      },
      { clean: KEEPS, processes: late },
    );
    await settle(uploader);
    othersWrite('of others');
    uploader.refreshed('', true);
    for (let turn = 0; turn < 2; turn += 1) {
      uploader.flush();
      await uploader.look(new AbortController().signal);
      await uploader.settled();
    }
    late.goOn();
    assert.notEqual(await begun, undefined);
    await settle(uploader);
    await uploader.stop();
    assert.equal(readFileSync(join(share.nas, 'd/a'), 'utf8'), 'of others');
  });

  it('stays when users have changed it again meanwhile: that is a conflict', async () => {
    writeFileSync(share.at('d/a'), 'ours');
    await run(KEEPS, () => {
      othersWrite('of others');
      writeFileSync(share.at('d/a'), 'ours again');
    });
    assert.equal(share.conflicts.length, 1);
    assert.equal(readFileSync(join(share.nas, share.conflicts[0]?.copy ?? ''), 'utf8'), 'ours again');
    assert.equal(readFileSync(join(share.nas, 'd/a'), 'utf8'), 'of others');
  });

  it('leaves when the disk is short of room, but not what was changed a moment ago', async () => {
    writeFileSync(share.at('d/a'), 'ours');
    await run({ ...KEEPS, minFreeBytes: () => Number.MAX_SAFE_INTEGER }, undefined, HOUR);
    assert.ok(isUpper('d/a'));
    await run({ ...KEEPS, minFreeBytes: () => Number.MAX_SAFE_INTEGER });
    assert.ok(!isUpper('d/a'));
    assert.equal(readFileSync(share.at('d/a'), 'utf8'), 'ours');
  });

  it('leaves when the cache is fuller than it may be, the one written first, and no more than it takes', async () => {
    for (const name of ['old', 'new']) {
      writeFileSync(share.at(`d/${name}`), 'x'.repeat(1_000));
      await run(KEEPS);
    }
    await run({ ...KEEPS, mostBytes: () => 2_000 });
    assert.deepEqual(
      ['old', 'new'].map((name) => isUpper(`d/${name}`)),
      [true, true],
    );
    await run({ ...KEEPS, mostBytes: () => 1_500 });
    assert.deepEqual(
      ['old', 'new'].map((name) => isUpper(`d/${name}`)),
      [false, true],
    );
    assert.equal(readFileSync(share.at('d/old'), 'utf8'), 'x'.repeat(1_000));
  });

  it('leaves when nobody has changed it for as long as the cache keeps anything', async () => {
    writeFileSync(share.at('d/a'), 'ours');
    await run({ ...KEEPS, keepMs: () => -1_000 });
    assert.ok(!isUpper('d/a'));
    assert.equal(readFileSync(share.at('d/a'), 'utf8'), 'ours');
  });

  it('stays where it could be taken for what users saw before: rclone might show that', async () => {
    writeFileSync(share.at('d/a'), 'FIRST');
    utimesSync(share.at('d/a'), 1_700_000_000, 1_700_000_000);
    await run({ ...KEEPS, keepMs: () => -1_000 });
    assert.ok(isUpper('d/a'));
  });
});

describe('a file that is gone from the NAS', () => {
  const entry = {
    path: 'd/a',
    kind: 'file',
    inode: 7n,
    bytes: 4,
    modifiedNs: 1n,
    changedNs: 1n,
    isOpaque: false,
  } as const;
  const file: CleanFile = { entry, version: { bytes: 4, modifiedMs: 0 }, mayMakeRoom: true };
  let now = 0;
  let root: readonly string[] = [];
  const clock = { ...realClock, monotonic: () => now, now: () => now } as Clock;
  const remote = {
    precisionMs: 1,
    list: async (folder: string) =>
      folder === '' ? root.map((name) => ({ name, kind: 'folder' as const })) : [],
  };
  const { signal } = new AbortController();

  it('leaves when it is gone a second time, a minute later, and not while the NAS shows nothing at all', async () => {
    const files = new CleanFiles({
      upper: '/',
      remote,
      clock,
      rules: KEEPS,
      log: { debug: () => undefined },
    });
    const check = async (): Promise<number> => {
      now += HOUR;
      files.adopt([file], 4);
      await files.check(signal);
      return files.leaving().length;
    };
    files.adopt([file], 4);
    assert.equal(await check(), 0, 'the NAS shows nothing');
    assert.equal(await check(), 0, 'the NAS shows nothing');
    root = ['d'];
    assert.equal(await check(), 0, 'once');
    assert.equal(await check(), 1, 'twice');
    assert.deepEqual(files.leaving()[0]?.theirs, {});
  });
});
