import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Bandwidth } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { pino } from 'pino';
import { limitAnew } from '../../../../plugins/mount/layer/limit-anew.ts';

describe('the limit of a new rclone below a share', () => {
  const clock = createManualClock();
  const tools = { clock, log: pino({ level: 'silent' }) };
  const limit: Bandwidth = { up: 5, down: 0 };

  it('is told again until it is taken', async () => {
    const told: Bandwidth[] = [];
    const lower = {
      setBandwidth: (wanted: Bandwidth) => {
        told.push(wanted);
        return told.length < 3 ? Promise.reject(new Error('busy')) : Promise.resolve();
      },
    };
    const done = limitAnew(() => limit, { shareName: 's', lower, tools, end: new AbortController().signal });
    for (let step = 0; step < 2; step += 1) await clock.advance(1_000);
    await done;
    assert.deepEqual(told, [limit, limit, limit]);
  });

  it('is not told to one that was replaced meanwhile', async () => {
    let [tries, isCurrent] = [0, true];
    const lower = {
      setBandwidth: () => {
        tries += 1;
        isCurrent = false;
        return Promise.reject(new Error('it has ended'));
      },
    };
    const done = limitAnew(() => (isCurrent ? limit : undefined), {
      shareName: 's',
      lower,
      tools,
      end: new AbortController().signal,
    });
    await clock.advance(1_000);
    await done;
    assert.equal(tries, 1);
  });
});
