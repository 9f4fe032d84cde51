import assert from 'node:assert/strict';
import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { createClock } from 'mountkeeper';
import { pino } from 'pino';
import type { Clock } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { maintain } from '../../../../plugins/mount/recovery/maintenance.ts';
import type { OpenFiles } from '../../../../plugins/mount/stats/open-files.ts';
import { OpenFilesLook } from '../../../../plugins/mount/stats/open-files-look.ts';

const NONE: OpenFiles = { open: 0, dirty: [] };
const clock = createClock();
/** Nothing else keeps this process alive meanwhile. */
const awake: Clock = { ...clock, after: (ms, fn) => clock.after(ms, fn, { keepAlive: true }) };

it('the upkeep of a mount goes on in rounds of its own, also after a step failed, until the end', async () => {
  const cacheDir = await mkdtemp(join(tmpdir(), 'mk-upkeep-'));
  const end = new AbortController();
  const done: string[] = [];
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
        openFiles: new OpenFilesLook(async () => NONE, awake),
        clock: awake,
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

it('the upkeep of an idle mount uses what the figures have seen, and looks itself when nobody reads them', async () => {
  const manual = createManualClock();
  const end = new AbortController();
  const tended: number[] = [];
  let looks = 0;
  let open = 0;
  const look = new OpenFilesLook(async () => {
    looks += 1;
    return { open, dirty: [] };
  }, manual);
  const over = maintain(
    {
      cacheDir: '/nowhere/at/all',
      rescue: { tend: async (files) => void tended.push(files.open) },
      truncateFix: { mend: async () => undefined },
      records: { mend: async () => undefined },
      openFiles: look,
      clock: manual,
      log: pino({ level: 'silent' }),
    },
    end.signal,
  );
  // A step asks the disk now and then.
  const isAtRest = async (): Promise<void> => {
    while (manual.pending === 0) await new Promise((resolve) => setImmediate(resolve));
  };
  const pass = async (ms: number): Promise<void> => {
    await manual.advance(ms);
    await isAtRest();
  };
  await isAtRest();
  for (open of [0, 0, 3]) {
    await pass(2_000);
    await look.now();
    await pass(0);
  }
  assert.deepEqual([tended, looks], [[0, 0, 0, 3], 4]);
  open = 0;
  await pass(1_000);
  assert.deepEqual(
    [tended, looks],
    [[0, 0, 0, 3, 0], 5],
    'a file was open: it looks by itself after a second',
  );
  await pass(2_500);
  assert.deepEqual([tended, looks], [[0, 0, 0, 3, 0, 0], 6], 'nobody has read the figures');
  end.abort();
  await over;
});
