import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Clock, Logger } from 'mountkeeper';
import { CircuitBreaker } from '../../../../plugins/mount/outage/circuit-breaker.ts';
import type { RcClient } from '../../../../plugins/mount/rclone/control/remote-control.ts';

const silent = {
  debug: () => undefined,
  info: () => undefined,
} as unknown as Logger;
const signal = new AbortController().signal;

interface World {
  isThere: boolean;
  answers: boolean;
  /** Each wait for an answer is over at once. */
  isSlow: boolean;
  nowMs: number;
  readonly set: string[];
  readonly gate: CircuitBreaker;
  /** Lets what a failure set off come to its end. */
  settle(): Promise<void>;
}

function createWorld({ looks = true, ask }: { looks?: boolean; ask?: () => Promise<void> } = {}): World {
  const set: string[] = [];
  const clock = {
    monotonic: () => world.nowMs,
    sleep: () => Promise.resolve(),
    after: (_ms: number, act: () => void) => {
      if (world.isSlow) act();
      return () => undefined;
    },
    deadline: () => signal,
  } as unknown as Clock;
  const rc: RcClient = {
    call: <T>(_path: string, { main }: Readonly<Record<string, unknown>>) => {
      set.push((main as { BindAddr: string }).BindAddr);
      return Promise.resolve({} as T);
    },
    close: () => undefined,
  };
  const world: World = {
    isThere: true,
    answers: true,
    isSlow: false,
    nowMs: 0,
    set,
    gate: new CircuitBreaker({
      rc,
      clock,
      log: silent,
      end: signal,
      monitor: () =>
        looks
          ? {
              dial: () => Promise.resolve(world.isThere ? undefined : 'connection refused'),
            }
          : undefined,
      ask: ask ?? (() => (world.answers ? Promise.resolve() : Promise.reject(new Error('no answer')))),
    }),
    settle: () => new Promise((resolve) => setTimeout(resolve, 5)),
  };
  return world;
}

describe('the gate to a NAS', () => {
  const check = async (world: World): Promise<string> => {
    const outcome = await world.gate.through(signal).then(
      () => 'answers',
      (error: Error) => error.message,
    );
    await world.settle();
    return outcome;
  };

  it('shuts when rclone gets no answer and nobody is there, and opens when somebody is', async () => {
    const world = createWorld();
    assert.equal(await check(world), 'answers');
    Object.assign(world, { isThere: false, answers: false });
    await check(world);
    assert.equal(world.gate.isShut, true);
    assert.match(await check(world), /refuses connections/);
    Object.assign(world, { isThere: true, answers: true });
    assert.equal(await check(world), 'answers');
    assert.deepEqual([world.gate.isShut, world.set.length, world.set.at(-1)], [false, 2, '']);
  });

  it('shuts while rclone still waits for an answer, when nobody is there', async () => {
    const asked: (() => void)[] = [];
    const answer = (): void => asked.splice(0).forEach((resolve) => resolve());
    const world = createWorld({ ask: () => new Promise((resolve) => asked.push(resolve)) });
    const first = world.gate.through(signal);
    answer();
    await first;
    Object.assign(world, { isThere: false, isSlow: true });
    const waiting = world.gate.through(signal);
    await world.settle();
    assert.equal(world.gate.isShut, true);
    answer();
    await waiting;
  });

  it('stays open for a NAS that is there but slow', async () => {
    const world = createWorld();
    await check(world);
    world.answers = false;
    await check(world);
    assert.equal(world.gate.isShut, false);
  });

  it('stays open where looking from outside never agreed with rclone, or cannot be done', async () => {
    for (const world of [createWorld(), createWorld({ looks: false })]) {
      world.isThere = false;
      await check(world);
      world.answers = false;
      await check(world);
      assert.equal(world.gate.isShut, false);
    }
  });

  it('opens for rclone itself now and then, whatever is seen from outside', async () => {
    const world = createWorld();
    await check(world);
    Object.assign(world, { isThere: false, answers: false });
    await check(world);
    Object.assign(world, { answers: true, nowMs: 600_000 });
    assert.equal(await check(world), 'answers');
    assert.equal(world.gate.isShut, false);
  });
});
