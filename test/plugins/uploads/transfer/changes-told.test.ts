/** Who brings the upper folder to the disk is told when there is something new in it, and only then. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { TestShare } from '../../../support/write-layer/uploader-share.ts';

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
});
