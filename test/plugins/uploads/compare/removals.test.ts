/** What the uploader takes for what users saw when they removed something. On a real overlay. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { lookOnly } from '../../../support/write-layer/uploader-crash.ts';
import { settle, TestShare } from '../../../support/write-layer/uploader-share.ts';

describe('a folder that users removed bit by bit', () => {
  let share: TestShare;
  beforeEach(() => {
    share = new TestShare();
    mkdirSync(join(share.nas, 'd/s'), { recursive: true });
    for (const path of ['d/a', 'd/s/b']) writeFileSync(join(share.nas, path), path);
    share.up();
  });
  afterEach(() => share.close());

  it('leaves on the NAS what others put into the first bit since, which users have never seen', async () => {
    rmSync(share.at('d/s'), { recursive: true });
    await lookOnly(share);
    writeFileSync(join(share.nas, 'd/s/others'), 'of others');
    rmSync(share.at('d'), { recursive: true });
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
    assert.equal(readFileSync(join(share.nas, 'd/s/others'), 'utf8'), 'of others');
    assert.deepEqual(
      [existsSync(join(share.nas, 'd/a')), existsSync(join(share.nas, 'd/s/b'))],
      [false, false],
    );
    await share.renew();
    assert.equal(readFileSync(share.at('d/s/others'), 'utf8'), 'of others', 'and it shows again');
  });
});
