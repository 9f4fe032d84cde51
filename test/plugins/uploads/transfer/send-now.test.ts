/** One path is sent next: what was written a moment ago, too; where nothing waits, that is said. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { until } from '../../../support/platform/wait.ts';
import { clock, settle, TestShare } from '../../../support/write-layer/uploader-share.ts';

it('sends what waits at a path, through a pause, and says where nothing does', async () => {
  const share = new TestShare();
  share.up();
  const uploader = share.uploader();
  try {
    uploader.pause(Date.now() + 60_000);
    for (const name of ['a', 'b']) writeFileSync(share.at(name), name);
    await uploader.sendNow('a');
    await assert.rejects(uploader.sendNow('none'), /^Error: none does not wait to be uploaded\.$/);
    await uploader.look(AbortSignal.timeout(20_000));
    await uploader.settled();
    assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), 'a');
    await assert.rejects(uploader.sendNow('a'), /does not wait/);
    uploader.pause(0);
    await settle(uploader);
    assert.equal(readFileSync(join(share.nas, 'b'), 'utf8'), 'b');
  } finally {
    await uploader.stop();
    share.close();
  }
});

it('ends a pause when its time is over, though the clock was set back by hours', async (t) => {
  const share = new TestShare();
  share.up();
  const uploader = share.uploader();
  const backMs = 3 * 3_600_000;
  try {
    const end = Date.now() + 2_000;
    uploader.pause(end);
    t.mock.method(clock, 'now', () => Date.now() - backMs);
    assert.ok(Math.abs((uploader.pausedUntil ?? 0) - (end - backMs)) < 1_000);
    writeFileSync(share.at('a'), 'a');
    await until(
      'it is there',
      async () => {
        await uploader.look(AbortSignal.timeout(20_000));
        await uploader.settled();
        return existsSync(join(share.nas, 'a'));
      },
      { timeoutMs: 30_000 },
    );
  } finally {
    await uploader.stop();
    share.close();
  }
});
