import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { StartAttempt } from '../../../core/platform/start-attempt.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

describe("starts with third parties' plugins", () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('starts');
  });
  after(() => scratch.close());

  const begin = (name: string, hasStrangers = true, isSafe = false) =>
    StartAttempt.begin(scratch.path(name), { hasStrangers, isSafe });

  it('that come to nothing three times in a row lead to one without them', async () => {
    for (let count = 0; count < 3; count += 1)
      assert.equal((await begin('a')).safeMode, undefined, String(count));
    const safe = await begin('a');
    assert.match(safe.safeMode?.reason ?? '', /^the last 3 starts of the daemon failed/);
    await safe.end();
    assert.equal((await begin('a')).safeMode, undefined, 'the next tries again');
  });

  it('that come up count for nothing', async () => {
    for (let count = 0; count < 10; count += 1) {
      const attempt = await begin('b');
      assert.equal(attempt.safeMode, undefined);
      await attempt.end();
    }
    assert.deepEqual(await readdir(scratch.path('b')), []);
  });

  it('are not counted where there are none, or where safe mode was asked for', async () => {
    for (let count = 0; count < 5; count += 1) assert.equal((await begin('c', false)).safeMode, undefined);
    assert.match((await begin('c', true, true)).safeMode?.reason ?? '', /--safe-mode/);
    assert.equal((await begin('c')).safeMode, undefined);
  });
});
