/** Who makes a cache ready has it alone, among daemons and within one. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { asSoleUser } from '../../../../plugins/mount/lifecycle/sole-use.ts';

it('two calls of one daemon for a cache come one after the other, and neither is told of another daemon', async (t) => {
  const cacheDir = mkdtempSync(join(tmpdir(), 'mk-sole-'));
  t.after(() => rmSync(cacheDir, { recursive: true, force: true }));
  const processes = { run: () => Promise.reject(new Error('there is no layer yet')) } as never;
  const steps: string[] = [];
  const use = (who: string): Promise<void> =>
    asSoleUser(cacheDir, processes, async () => {
      steps.push(`${who} begins`);
      await new Promise((resolve) => setImmediate(resolve));
      steps.push(`${who} ends`);
    });
  await Promise.all([use('first'), use('second')]);
  assert.deepEqual(steps, ['first begins', 'first ends', 'second begins', 'second ends']);
});
