/** Who brings the upper folder to the disk is told when there is something new in it, and only then. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, readFileSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { clock, settle, TestShare } from '../../../support/write-layer/uploader-share.ts';

describe('a change in the upper folder', () => {
  it('is told with the first look that finds it, once; a folder in which nothing happens gives no word', async () => {
    const share = new TestShare();
    share.up();
    let told = 0;
    const uploader = share.uploader(undefined, { onChange: () => void (told += 1) });
    // Nothing goes up, so nobody but the users changes anything.
    uploader.pause(Date.now() + 3_600_000);
    const look = async (): Promise<number> => {
      told = 0;
      await uploader.look(new AbortController().signal);
      return told;
    };
    const change = async (work: () => void): Promise<void> => {
      work();
      uploader.pause(Date.now() + 3_600_000);
      assert.equal(await look(), 1, String(work));
      for (let looks = 0; looks < 3; looks += 1) {
        uploader.pause(Date.now() + 3_600_000);
        assert.equal(await look(), 0, `after ${String(work)}`);
      }
    };
    try {
      await change(() => undefined);
      await change(() => writeFileSync(share.at('a'), 'one'));
      await change(() => appendFileSync(share.at('a'), ', two'));
      await change(() => mkdirSync(share.at('d')));
      // Neither file nor folder: looked at anew each time.
      await change(() => symlinkSync('a', share.at('link')));
      await change(() => unlinkSync(share.at('a')));
    } finally {
      await uploader.stop();
      share.close();
    }
  });

  it('is on record once a new look was asked for, where the last one would do for others', async () => {
    const share = new TestShare();
    writeFileSync(join(share.nas, 'a'), 'what users saw');
    share.up();
    // As with thousands of files: a look does for whoever asks in the seconds after it.
    const uploader = share.uploader(undefined, { clock: { ...clock, monotonic: () => 0 } });
    const { signal } = new AbortController();
    try {
      uploader.pause(Date.now() + 3_600_000);
      writeFileSync(share.at('other'), 'waits');
      const looks = async (how?: { readonly isNew: boolean }): Promise<number> =>
        (await uploader.look(signal, how)).dirtyFiles;
      while ((await looks()) === 0 || uploader.isLookDue) await pause(25);
      unlinkSync(share.at('a'));
      assert.equal(await looks(), 1, 'by the last look');
      await looks({ isNew: true });
      writeFileSync(join(share.nas, 'a'), 'what others saved since, and nobody here has seen');
      uploader.pause(0);
      await settle(uploader);
      assert.match(readFileSync(join(share.nas, 'a'), 'utf8'), /^what others saved/);
    } finally {
      await uploader.stop();
      share.close();
    }
  });
});
