/** What users are still shown at a former place, and when that is tried again. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Clock, LeavingEntry } from 'mountkeeper';
import type { Plan } from '../../../../plugins/uploads/compare/plan-types.ts';
import type { Scan, ScanEntry } from '../../../../plugins/uploads/compare/scan.ts';
import { Leaving } from '../../../../plugins/uploads/transfer/leaving/leaving.ts';
import type { StepTools } from '../../../../plugins/uploads/transfer/step-tools.ts';

it('waits a while for what its user has just renamed again, and says meanwhile that it is pending', async () => {
  let nowMs = 0;
  const clock = { monotonic: () => nowMs } as Clock;
  const entry = { path: 'new', kind: 'file', nowAt: 'former', key: '1' } as ScanEntry & LeavingEntry;
  let isShown = false;
  const tools = {
    layer: { takeOut: async () => (isShown ? ['new'] : []) },
    records: { saved: async () => undefined, places: new Map(), setMove: () => undefined },
    leaving: () => () => undefined,
  } as unknown as StepTools;
  const leaving = new Leaving({
    clock,
    tools: () => tools,
    learnFirst: async () => undefined,
    settled: () => undefined,
  });
  const scan = { entries: new Map([['new', entry]]) } as unknown as Scan;
  const look = (stale: readonly ScanEntry[]): void =>
    leaving.adopt(scan, { done: [], stale } as unknown as Plan);
  look([entry]);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [true, true]);
  await leaving.renew();
  look([entry]);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [false, true]);
  nowMs += 1_000;
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [true, true]);
  isShown = true;
  await leaving.renew();
  look([]);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [false, false]);
});
