/** Which rclone lies below a share when they die, hang and cannot be started. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { pino } from 'pino';
import { LowerSupervisor } from '../../../../plugins/mount/layer/lower-supervisor.ts';
import type { ActiveMount } from '../../../../plugins/mount/lifecycle/active-mount.ts';

interface Fake {
  readonly mount: ActiveMount;
  die(): void;
  readonly killed: () => boolean;
}

function createFake(): Fake {
  let [isKilled, die] = [false, (): void => undefined];
  const exited = new Promise<string>((resolve) => (die = () => resolve('it was killed')));
  const kill = (): Promise<void> => {
    isKilled = true;
    return Promise.resolve();
  };
  return { mount: { exited, kill } as unknown as ActiveMount, die: () => die(), killed: () => isKilled };
}

function createWorld(starts: (() => Promise<ActiveMount>)[]): {
  supervisor: LowerSupervisor;
  clock: ReturnType<typeof createManualClock>;
  seen: string[];
  left: () => number;
} {
  const clock = createManualClock();
  const seen: string[] = [];
  const start = (): Promise<ActiveMount> => starts.shift()?.() ?? new Promise(() => undefined);
  const supervisor = new LowerSupervisor({
    shareName: 's',
    clock,
    log: pino({ level: 'silent' }),
    start,
    onUp: () => void seen.push('up'),
    onDown: (wasSettled) => void seen.push(wasSettled ? 'down, to be back soon' : 'down'),
  });
  return { supervisor, clock, seen, left: () => starts.length };
}

const turns = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

describe('the rclone below a share with a write layer', () => {
  it('is followed by another one at once when it has died, and the former is cleared before', async () => {
    const [first, second] = [createFake(), createFake()];
    let wasCleared = false;
    const { supervisor, seen } = createWorld([
      () => {
        wasCleared = first.killed();
        return Promise.resolve(second.mount);
      },
    ]);
    supervisor.adopt(first.mount);
    first.die();
    await turns();
    assert.equal(supervisor.living, second.mount);
    assert.equal(wasCleared, true);
    assert.deepEqual(seen, ['up', 'down', 'up']);
  });

  it('is soon back when it had worked for a while, and that is told', async () => {
    const [first, second] = [createFake(), createFake()];
    const { supervisor, clock, seen } = createWorld([() => Promise.resolve(second.mount)]);
    supervisor.adopt(first.mount);
    await clock.advance(2_000);
    first.die();
    await turns();
    second.die();
    await turns();
    assert.deepEqual(seen, ['up', 'down, to be back soon', 'up', 'down']);
  });

  it('is ended and followed by another one when it hangs; one that was replaced already is left alone', async () => {
    const [first, second] = [createFake(), createFake()];
    const { supervisor } = createWorld([() => Promise.resolve(second.mount)]);
    supervisor.adopt(first.mount);
    supervisor.replace(first.mount, 'it hangs');
    await turns();
    assert.equal(first.killed(), true);
    supervisor.replace(first.mount, 'it hangs');
    await turns();
    assert.equal(supervisor.living, second.mount);
    assert.equal(second.killed(), false);
  });

  it('is tried again with rests that grow, and says why there is none', async () => {
    const second = createFake();
    const refuse = (): Promise<ActiveMount> => Promise.reject(new Error('the remote refuses connections'));
    const { supervisor, clock, left } = createWorld([refuse, refuse, () => Promise.resolve(second.mount)]);
    supervisor.begin();
    await turns();
    assert.equal(left(), 2);
    await assert.rejects(supervisor.obtain(clock.deadline(1_000)), /refuses connections/);
    assert.equal(supervisor.problem, 'the remote refuses connections');
    assert.equal(supervisor.isFailing, true);
    await clock.advance(250);
    await turns();
    assert.equal(left(), 1);
    await clock.advance(499);
    await turns();
    assert.equal(supervisor.living, undefined);
    await clock.advance(1);
    await turns();
    assert.equal(supervisor.living, second.mount);
    assert.equal(await supervisor.obtain(clock.deadline(1_000)), second.mount);
  });

  it('is waited for while it starts, and not started any more once the share is taken down', async () => {
    const first = createFake();
    const { supervisor, clock, left } = createWorld([() => Promise.resolve(createFake().mount)]);
    supervisor.adopt(first.mount);
    assert.equal(await supervisor.stop(), first.mount);
    first.die();
    await turns();
    assert.equal(left(), 1);
    const { supervisor: other } = createWorld([]);
    other.begin();
    const waiting = assert.rejects(other.obtain(clock.deadline(1_000)), /has not been started yet/);
    await clock.advance(1_000);
    await waiting;
  });
});
