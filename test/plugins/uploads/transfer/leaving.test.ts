/** What users are still shown at a former place, and when that is tried again. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { Clock, LeavingEntry } from 'mountkeeper';
import type { Plan } from '../../../../plugins/uploads/compare/plan-types.ts';
import type { Scan, ScanEntry } from '../../../../plugins/uploads/compare/scan.ts';
import { Leaving } from '../../../../plugins/uploads/transfer/leaving/leaving.ts';
import type { StepTools } from '../../../../plugins/uploads/transfer/step-tools.ts';

const entry = { path: 'new', kind: 'file', nowAt: 'former', key: '1' } as ScanEntry & LeavingEntry;

/** `look` is one that began just now, or when it is told. `taking` is asked with each renewal, and tells what left. */
function watched(taking: () => readonly string[]) {
  let nowMs = 0;
  const clock = { monotonic: () => nowMs } as Clock;
  const tools = {
    layer: { upper: '/no-such-folder', takeOut: async () => taking() },
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
  return {
    leaving,
    look: (stale: readonly ScanEntry[], sinceMs = nowMs): void =>
      leaving.adopt(scan, { done: [], stale } as unknown as Plan, sinceMs),
    wait: (ms: number): void => void (nowMs += ms),
  };
}

it('waits a while for what its user has just renamed again, and says meanwhile that it is pending', async () => {
  let isShown = false;
  const { leaving, look, wait } = watched(() => (isShown ? ['new'] : []));
  look([entry]);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [true, true]);
  await leaving.renew();
  look([entry]);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [false, true]);
  wait(1_000);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [true, true]);
  isShown = true;
  await leaving.renew();
  look([]);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [false, false]);
});

it('tries nothing again that a look from before has found, and takes it for pending until the next one', async () => {
  const { leaving, look, wait } = watched(() => {
    // As the layer does, before it reads listings anew.
    look([entry]);
    return ['new'];
  });
  look([entry]);
  wait(5);
  await leaving.renew();
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [false, true]);
  wait(5);
  look([entry], 3);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [false, true]);
  look([entry]);
  assert.deepEqual([leaving.isRenewalDue, leaving.isRenewalPending], [true, true]);
});
