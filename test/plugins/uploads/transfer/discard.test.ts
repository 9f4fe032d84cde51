/** One waiting file is given up: what becomes of it and of the NAS's version, and when it is refused. On an overlay. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { CleanRules, UploadFigures } from 'mountkeeper';
import { sweepDiscarded } from '../../../../plugins/uploads/transfer/leaving/left-files.ts';
import type { Discarded } from '../../../../plugins/uploads/transfer/leaving/discard.ts';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { LateScan } from '../../../support/write-layer/late-scan.ts';
import { clock, refusal, settle, TestShare } from '../../../support/write-layer/uploader-share.ts';
import type { Fault } from '../../../support/write-layer/uploader-share.ts';

const HOUR = 3_600_000;
/** The disk is short of room. */
const LEAVES: CleanRules = {
  listingAgeMs: () => HOUR,
  keepMs: () => 1_000 * HOUR,
  minFreeBytes: () => Number.MAX_SAFE_INTEGER,
};

describe('a waiting file that is discarded', () => {
  let share: TestShare;
  let uploader: ShareUploader;
  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd'));
    writeFileSync(join(share.nas, 'd/a'), 'first');
    utimesSync(join(share.nas, 'd/a'), 1_700_000_000, 1_700_000_000);
    share.up();
  });
  afterEach(async () => {
    await uploader.stop();
    share.close();
  });

  /** A scan of its own: the last one is never fresh enough. */
  const look = () => {
    uploader.pause(Date.now() + HOUR);
    return uploader.look(new AbortController().signal);
  };
  /** Nothing goes up by itself. */
  const paused = async (
    fault?: Fault,
    more: Parameters<TestShare['uploader']>[1] = {},
  ): Promise<ShareUploader> => {
    uploader = share.uploader(fault, more);
    await look();
    return uploader;
  };
  /** As the page does: the version that the queue shows. */
  const discard = async (path: string): Promise<Discarded> =>
    uploader.discard({ path, version: uploader.queue().find((one) => one.path === path)?.version ?? 'none' });
  const onNas = (path: string): string => readFileSync(join(share.nas, path), 'utf8');
  const seen = (path: string): string => readFileSync(share.at(path), 'utf8');

  it('is kept aside, and the version of the NAS shows and stays', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    await paused();
    const { keptAt, shows, bytes } = await discard('d/a');
    assert.deepEqual(uploader.queue(), [], 'it waits no more');
    assert.deepEqual([shows, bytes, readFileSync(keptAt, 'utf8')], ['file', 4, 'mine']);
    assert.ok(keptAt.startsWith(`${share.discarded}/`) && keptAt.endsWith('/d/a'), keptAt);
    assert.equal(seen('d/a'), 'first');
    await settle(uploader);
    assert.deepEqual([onNas('d/a'), seen('d/a'), uploader.queue()], ['first', 'first', []]);
  });

  it('leaves no name where the NAS has none, also in a folder that is new', async () => {
    mkdirSync(share.at('new'));
    writeFileSync(share.at('new/b'), 'mine');
    writeFileSync(share.at('c'), 'mine, too');
    await paused();
    assert.equal((await discard('new/b')).shows, 'nothing');
    assert.equal((await discard('c')).shows, 'nothing');
    assert.deepEqual([readdirSync(share.at('new')), existsSync(share.at('c'))], [[], false]);
    await settle(uploader);
    assert.deepEqual(readdirSync(share.nas).sort(), ['d', 'new']);
  });

  it('shows what others have put there meanwhile, and tells no conflict', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    await paused();
    rmSync(join(share.nas, 'd/a'));
    writeFileSync(join(share.nas, 'd/a'), 'of others');
    await discard('d/a');
    await settle(uploader);
    assert.deepEqual([onNas('d/a'), share.conflicts], ['of others', []]);
  });

  it('stays when it was written since it was shown, by any program', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    await paused();
    appendFileSync(share.at('d/a'), ' and more');
    await assert.rejects(discard('d/a'), /changed since it was shown/);
    assert.equal(existsSync(share.discarded), false);
    await settle(uploader);
    assert.equal(onNas('d/a'), 'mine and more');
  });

  it('stays while a program has it open, and while it is going up', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    let open = new Set(['d/a']);
    let refused: Promise<unknown> = Promise.resolve();
    await paused(
      async (call, when) => {
        if (call !== 'upload' || when !== 'before') return;
        refused = assert.rejects(discard('d/a'), /being uploaded just now/);
        await refused;
      },
      { isOpen: () => open },
    );
    await assert.rejects(discard('d/a'), /has d\/a open/);
    open = new Set();
    await settle(uploader);
    assert.notEqual(await refused, null);
    assert.deepEqual([onNas('d/a'), existsSync(share.discarded)], ['mine', false]);
  });

  it('is one file with content: no folder, deletion, renaming, and nothing that does not wait', async () => {
    for (const name of ['gone', 'former', 'rest']) writeFileSync(join(share.nas, name), name);
    await share.renew();
    mkdirSync(share.at('new'));
    writeFileSync(share.at('new/b'), 'mine');
    rmSync(share.at('gone'));
    renameSync(share.at('former'), share.at('latter'));
    writeFileSync(share.at('former'), 'in its place');
    await paused();
    for (const [path, why] of [
      ['new', /is a folder/],
      ['gone', /deletion waits/],
      ['latter', /renaming waits/],
      ['former', /renamed or deleted here/],
      ['d', /does not wait/],
      ['rest', /does not wait/],
      ['', /is a folder/],
      ['n*', /does not wait/],
    ] as const)
      await assert.rejects(discard(path), why, path);
    await settle(uploader);
    assert.deepEqual(readdirSync(share.nas).sort(), ['d', 'former', 'latter', 'new', 'rest']);
  });

  it('stays while the NAS has its content by a former name alone, which is deleted when it has arrived', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    uploader = share.uploader();
    await settle(uploader);
    renameSync(share.at('d/a'), share.at('d/b'));
    await look();
    await assert.rejects(discard('d/b'), /it may be d\/a, renamed here/);
    assert.equal(onNas('d/a'), 'mine');
    await settle(uploader);
    assert.deepEqual([readdirSync(join(share.nas, 'd')), onNas('d/b')], [['b'], 'mine']);
  });

  it('stays when the NAS seems to have it already, since the answer to an upload was lost', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    let isLost = true;
    uploader = share.uploader((call, when) => {
      if (call === 'upload' && when === 'after' && isLost) throw refusal('The connection was lost.');
    });
    await uploader.look(new AbortController().signal);
    await uploader.settled();
    await look();
    await assert.rejects(discard('d/a'), /seems to have d\/a already/);
    isLost = false;
    await settle(uploader);
    assert.deepEqual([onNas('d/a'), seen('d/a'), share.conflicts], ['mine', 'mine', []]);
  });

  it('stays when it cannot be moved, with all that is known of it: what others changed is a conflict', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    let lookedAt: UploadFigures | undefined;
    await paused(async (call, when) => {
      if (call !== 'takeOut') return;
      // Whoever looks meanwhile, also while it is away, must not forget which version was changed here.
      if (when === 'before') renameSync(join(share.upper, 'd/a'), join(share.root, 'away'));
      if (when === 'before') lookedAt = await look();
      if (when === 'before') renameSync(join(share.root, 'away'), join(share.upper, 'd/a'));
      throw refusal('The NAS is silent.');
    });
    rmSync(join(share.nas, 'd/a'));
    writeFileSync(join(share.nas, 'd/a'), 'of others');
    await assert.rejects(discard('d/a'), /is silent/);
    assert.equal(lookedAt?.isTorn, true, 'nobody says that all of it is on the NAS');
    assert.equal((await look()).isTorn, undefined);
    await settle(uploader);
    assert.equal(onNas('d/a'), 'of others');
    assert.deepEqual(
      share.conflicts.map(({ path, copy }) => [path, onNas(copy)]),
      [['d/a', 'mine']],
    );
  });

  it('waits until its former version is out, or has stayed, whichever was on its way', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    const calls: string[] = [];
    let discarded: Promise<Discarded> | undefined;
    uploader = share.uploader(
      async (call, when) => {
        if (call !== 'takeOut') return;
        calls.push(when);
        if (calls.length > 1) return;
        writeFileSync(share.at('d/a'), 'written again');
        await look();
        discarded = discard('d/a');
        // As long as another one may take at most to come in between.
        await Promise.race([discarded, clock.sleep(300)]);
      },
      { clean: LEAVES },
    );
    for (let turn = 0; turn < 4 && discarded === undefined; turn += 1) await settle(uploader);
    assert.equal(existsSync((await discarded!).keptAt), true);
    assert.deepEqual(calls.slice(0, 4), ['before', 'after', 'before', 'after']);
    await settle(uploader);
    assert.deepEqual([onNas('d/a'), seen('d/a')], ['mine', 'mine']);
  });

  it('does not take the version of the NAS with it, when a look saw it that ends later', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    const late = new LateScan();
    let begun: Promise<unknown> | undefined;
    await paused(
      async (call, when) => {
        if (call !== 'takeOut' || when !== 'before') return;
        late.holdNext();
        begun = look();
        await late.isHeld;
      },
      { processes: late },
    );
    await discard('d/a');
    late.goOn();
    await begun;
    await settle(uploader);
    assert.deepEqual([onNas('d/a'), seen('d/a')], ['first', 'first']);
  });

  it('is a conflict once more when it comes back, and had been one', async () => {
    let isRefusing = true;
    writeFileSync(share.at('d/a'), 'mine');
    await paused((call, when) => {
      if (call === 'takeOut' && when === 'after') share.resting = new Set(['d/a']);
      if (call === 'upload' && when === 'before' && isRefusing) throw refusal('No.');
    });
    share.othersWrite('d/a', 'of others');
    uploader.flush();
    await uploader.look(new AbortController().signal);
    await uploader.settled();
    assert.equal(uploader.conflicts().length, 1);
    const { keptAt } = await discard('d/a');
    assert.deepEqual(uploader.conflicts(), []);
    await settle(uploader);
    share.down();
    appendFileSync(keptAt, ', and more');
    renameSync(keptAt, join(share.upper, 'd/a'));
    share.resting = new Set();
    share.up();
    isRefusing = false;
    await settle(uploader);
    const [conflict] = uploader.conflicts();
    assert.deepEqual([onNas('d/a'), onNas(conflict?.copy ?? '')], ['of others', 'mine, and more']);
  });

  it('is watched by the layer for a minute, not until something else leaves it', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    let [laterMs, calls] = [0, 0];
    const shifted: typeof clock = Object.assign(Object.create(clock), {
      monotonic: () => clock.monotonic() + laterMs,
    });
    const count = (call: string, when: 'before' | 'after'): void => {
      if (call === 'takeOut' && when === 'after') calls += 1;
    };
    await paused(count, { clock: shifted });
    await discard('d/a');
    const at = async (ms: number): Promise<number> => {
      laterMs = ms;
      await look();
      await uploader.settled();
      return calls;
    };
    // Once more for what a former daemon may have left, which is learnt of at the first.
    const taken = [await at(50_000), await at(70_000), await at(140_000), await at(300_000)];
    assert.deepEqual(taken, [1, 2, 3, 3]);
  });

  it('is removed for good after a week, and nothing else in that folder', async () => {
    writeFileSync(share.at('d/a'), 'mine');
    await paused();
    const { keptAt } = await discard('d/a');
    mkdirSync(join(share.discarded, 'of a person'));
    await sweepDiscarded(share.discarded, Date.now() + 6 * 24 * HOUR);
    assert.equal(readFileSync(keptAt, 'utf8'), 'mine');
    await sweepDiscarded(share.discarded, Date.now() + 8 * 24 * HOUR);
    assert.deepEqual(readdirSync(share.discarded), ['of a person']);
  });
});
