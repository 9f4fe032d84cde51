/** What the status says of a share's uploads and of what lies here, from the uploader's own figures. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { NOTHING_READ, withUploads } from '../../../../plugins/mount/layer/layer-figures.ts';
import { settle, TestShare } from '../../../support/write-layer/uploader-share.ts';

const NONE = { inTheWay: undefined, uploadSpeed: 0 } as const;

describe("the uploader's figures", () => {
  let share: TestShare;

  beforeEach(() => {
    share = new TestShare();
    share.up();
  });
  afterEach(() => share.close());

  it('count all that went up, small files too, and what still lies here after that', async () => {
    const uploader = share.uploader();
    for (const name of ['a', 'b', 'c']) writeFileSync(share.at(name), Buffer.alloc(1_000));
    await settle(uploader);
    const figures = await uploader.look(new AbortController().signal);
    assert.deepEqual([figures.dirtyFiles, figures.uploadedBytes, figures.localBytes], [0, 3_000, 3_000]);
    await uploader.stop();
  });

  it('tell between two scans what is going up by then', async () => {
    let sending = (): void => undefined;
    let goOn = (): void => undefined;
    const [sends, mayGo] = [
      new Promise<void>((resolve) => (sending = resolve)),
      new Promise<void>((resolve) => (goOn = resolve)),
    ];
    const uploader = share.uploader(async (call, when) => {
      if (call !== 'upload' || when !== 'before') return;
      sending();
      await mayGo;
    });
    writeFileSync(share.at('a'), 'text');
    const { signal } = new AbortController();
    // Its bandwidth is divided by that.
    assert.equal((await uploader.look(signal)).uploading, 1, 'begun by this very look');
    await sends;
    const before = await uploader.look(signal);
    goOn();
    await uploader.settled();
    await uploader.stop();
    assert.deepEqual([before.uploading, before.uploadedBytes], [1, 0]);
  });

  it('are added to those of reading', () => {
    const reading = { ...NOTHING_READ, cacheBytes: 500, speed: 10, transfers: 1, downloading: true };
    const waiting = {
      lookedAtMs: 0,
      dirtyFiles: 2,
      dirtyBytes: 70,
      stuckFiles: 0,
      uploading: 2,
      uploadedBytes: 0,
      localBytes: 70,
    };
    const idle = withUploads(reading, { ...waiting, dirtyFiles: 0, uploading: 0 }, NONE);
    assert.deepEqual(
      [idle.cacheBytes, idle.speed, idle.transfers, idle.uploading, idle.downloading],
      [570, 10, 1, false, true],
    );
    const busy = withUploads({ ...reading, downloading: false }, waiting, { ...NONE, uploadSpeed: 30 });
    assert.deepEqual([busy.speed, busy.transfers, busy.uploading, busy.downloading], [40, 3, true, false]);
  });
});
