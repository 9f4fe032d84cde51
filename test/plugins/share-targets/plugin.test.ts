import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Health, ShortCommand } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import { emptyRecord, emptyShareStatus } from '../../support/shares/status-records.ts';
import shareTargets from '../../../plugins/share-targets/index.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const TARGET = 'mountkeeper-share@photos.target';

describe('the target of a share', () => {
  it('follows its health, and stays up while the share is mounted', async (t) => {
    const scratch = await createScratch('targets');
    t.after(() => scratch.close());
    const before = process.env['RUNTIME_DIRECTORY'];
    process.env['RUNTIME_DIRECTORY'] = scratch.path('run');
    t.after(() => {
      if (before === undefined) delete process.env['RUNTIME_DIRECTORY'];
      else process.env['RUNTIME_DIRECTORY'] = before;
    });
    const told: string[] = [];
    const run = async ({ args }: ShortCommand) => {
      told.push(`${args[0] ?? ''} ${args.at(-1) ?? ''}`);
      // A former daemon left it up.
      return { code: 0, signal: null, stdout: `${TARGET} loaded active active Share\n`, stderr: '' };
    };
    const host = await createTestHost({
      plugins: [shareTargets],
      config: {},
      services: { processes: { run } as never },
    });
    t.after(() => host.close());
    let health: Health = 'pending';
    /** As the daemon tells it: the change, and then a snapshot. */
    const becomes = async (to: Health, isMounted: boolean): Promise<void> => {
      const change = { share: 'photos', from: health, to, reason: null };
      health = to;
      await host.hooks.observe('shareHealthChanged', isMounted ? { ...change, mounted: true } : change);
      const shares = [{ ...emptyShareStatus('photos'), mounted: isMounted, health }];
      const snapshot = { version: 1, takenAt: 0, record: { ...emptyRecord(0), shares } };
      await host.hooks.observe('afterCycle', snapshot, 30);
    };
    const news = (): readonly string[] => told.splice(0).filter((one) => !one.startsWith('list-units'));
    await becomes('probing', true);
    await until('a former one is looked for', () => told.length > 0, { timeoutMs: 5_000 });
    await becomes('healthy', true);
    await until('it is started', () => told.includes(`start ${TARGET}`), { timeoutMs: 5_000 });
    assert.deepEqual(news(), [`start ${TARGET}`], 'and was not stopped before');
    await becomes('probing', true);
    await becomes('healthy', true);
    await becomes('failed', false);
    await until('it is stopped', () => told.length > 0, { timeoutMs: 5_000 });
    assert.deepEqual(news(), [`stop ${TARGET}`]);
    await becomes('probing', false);
    await becomes('probing', true);
    await becomes('healthy', true);
    await until('it is started again', () => told.length > 0, { timeoutMs: 5_000 });
    assert.deepEqual(news(), [`start ${TARGET}`]);
  });
});
