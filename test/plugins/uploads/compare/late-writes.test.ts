/** What was written right before a power cut, and may have lost its content: it never replaces what the NAS has. */
import assert from 'node:assert/strict';
import {
  appendFileSync,
  lstatSync,
  mkdirSync,
  renameSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { noteLateWrites } from '../../../../plugins/uploads/compare/late-writes.ts';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { processes, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const TORN = /^The power went while this was being written/;
const MOST_LOOKS = 8;

describe('what was written right before a power cut', () => {
  let share: TestShare;
  let uploader: ShareUploader | undefined;

  beforeEach(() => {
    share = new TestShare();
    for (const name of ['a', 'b', 'c']) {
      writeFileSync(join(share.nas, name), `${name} of the NAS`);
      utimesSync(join(share.nas, name), 1_700_000_000, 1_700_000_000);
    }
    share.up();
  });
  afterEach(async () => {
    await stopped();
    share.close();
  });

  const stopped = async (): Promise<void> => {
    await uploader?.stop();
    uploader = undefined;
  };
  /** A time of the file system's own, with all stamps of before earlier and all of after later. */
  const moment = (): number => {
    const probe = join(share.root, 'probe');
    const stamp = (): number => {
      writeFileSync(probe, '');
      return lstatSync(probe).ctimeMs;
    };
    const first = stamp();
    let now = first;
    while (now === first) now = stamp();
    const since = now;
    while (now === since) now = stamp();
    return since;
  };
  const note = (sinceMs: number): Promise<number> =>
    noteLateWrites(
      { upper: share.upper, records: share.records, sinceMs, signal: new AbortController().signal },
      processes,
    );
  /** The power goes, and after the boot the share is mounted again. */
  const boot = async (sinceMs: number): Promise<number> => {
    await stopped();
    share.down();
    const files = await note(sinceMs);
    await share.renew();
    return files;
  };
  /** Looks and works as long as anything else than stuck files waits, and some looks more. */
  const run = async (): Promise<ShareUploader> => {
    uploader ??= share.uploader();
    for (let looks = 0; looks < MOST_LOOKS; looks += 1) {
      uploader.flush();
      await uploader.look(new AbortController().signal);
      await uploader.settled();
    }
    return uploader;
  };
  const stuck = (): string[] =>
    (uploader?.queue() ?? [])
      .filter(({ state, reason }) => state === 'stuck' && TORN.test(reason ?? ''))
      .map(({ path }) => path)
      .sort();

  it('is kept and shown, and not sent over what the NAS has; all older goes up', async () => {
    writeFileSync(share.at('a'), 'written long before');
    const since = moment();
    writeFileSync(share.at('b'), '');
    writeFileSync(share.at('new'), '\0\0\0\0');
    writeFileSync(share.at('c.tmp'), '');
    renameSync(share.at('c.tmp'), share.at('c'));
    assert.equal(await boot(since), 3);
    await run();
    assert.deepEqual(stuck(), ['b', 'c', 'new']);
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['a', 'written long before'],
        ['b', 'b of the NAS'],
        ['c', 'c of the NAS'],
      ]),
    );
    assert.deepEqual(treeOf(share.mount).get('new'), '\0\0\0\0');
    // Neither another start of the daemon nor another power cut changes that.
    await stopped();
    await share.renew();
    await run();
    assert.deepEqual(stuck(), ['b', 'c', 'new']);
    assert.equal(await boot(moment()), 3);
    await run();
    assert.deepEqual(stuck(), ['b', 'c', 'new']);
    assert.equal(treeOf(share.nas).get('b'), 'b of the NAS');
  });

  it('goes up when it is sent by hand, or written again, under another name, too', async () => {
    const since = moment();
    for (const name of ['a', 'b', 'new']) writeFileSync(share.at(name), 'torn');
    await boot(since);
    await run();
    renameSync(share.at('new'), share.at('newer'));
    await run();
    assert.deepEqual(stuck(), ['a', 'b', 'newer']);
    await uploader!.sendNow('a');
    appendFileSync(share.at('b'), ', and mended');
    writeFileSync(share.at('newer'), 'as it was meant');
    await settle(uploader!);
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['a', 'torn'],
        ['b', 'torn, and mended'],
        ['c', 'c of the NAS'],
        ['newer', 'as it was meant'],
      ]),
    );
  });

  it('leaves what it may have been renamed from on the NAS until it has been seen to', async () => {
    unlinkSync(share.at('c'));
    mkdirSync(share.at('d'));
    const since = moment();
    writeFileSync(share.at('a'), '');
    renameSync(share.at('a'), share.at('d/a'));
    await boot(since);
    await run();
    assert.deepEqual(stuck(), ['d/a']);
    assert.equal(treeOf(share.nas).get('a'), 'a of the NAS');
    writeFileSync(share.at('d/a'), 'written again');
    await settle(uploader!);
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['b', 'b of the NAS'],
        ['d', '/'],
        ['d/a', 'written again'],
      ]),
    );
  });

  it('is no matter for what the NAS has already, nor for renames and deletions alone', async () => {
    const since = moment();
    writeFileSync(share.at('a'), 'on the NAS');
    uploader = share.uploader();
    await settle(uploader);
    unlinkSync(share.at('b'));
    renameSync(share.at('c'), share.at('moved'));
    await boot(since);
    await run();
    assert.deepEqual(stuck(), []);
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['a', 'on the NAS'],
        ['moved', 'c of the NAS'],
      ]),
    );
  });

  it('is nothing where no share was written to, and rejects what cannot be read', async () => {
    await assert.doesNotReject(note(0));
    writeFileSync(share.at('a'), 'torn');
    assert.equal(await note(0), 1);
    writeFileSync(join(share.records, 'late-writes.json'), '{"upper": ');
    await assert.rejects(note(0));
    uploader = share.uploader();
    await assert.rejects(uploader.look(new AbortController().signal));
    assert.equal(treeOf(share.nas).get('a'), 'a of the NAS');
  });
});
