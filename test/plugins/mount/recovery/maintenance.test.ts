import assert from 'node:assert/strict';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createClock } from 'mountkeeper';
import { pino } from 'pino';
import { maintain } from '../../../../plugins/mount/recovery/maintenance.ts';

it('the upkeep of a mount goes on in rounds of its own, also after a step failed, until the end', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'mk-upkeep-'));
  const end = new AbortController();
  const done: string[] = [];
  const clock = createClock();
  try {
    await maintain(
      {
        cacheDir,
        rescue: {
          tend: async () => {
            done.push('rescue');
            throw new Error('the disk is full');
          },
        },
        truncateFix: {
          mend: async () => {
            done.push('cut');
          },
        },
        records: {
          mend: async () => {
            done.push('records');
            if (done.length === 6) end.abort();
          },
        },
        openFiles: async () => ({ open: 0, dirty: [] }),
        // Nothing else keeps this process alive meanwhile.
        clock: { ...clock, after: (ms, fn) => clock.after(ms, fn, { keepAlive: true }) },
        log: pino({ level: 'silent' }),
      },
      end.signal,
    );
    assert.deepEqual(done, ['rescue', 'cut', 'records', 'rescue', 'cut', 'records']);
    assert.equal((await stat(join(cacheDir, 'reserve'))).isFile(), true);
  } finally {
    await rm(cacheDir, { recursive: true, force: true });
  }
});
