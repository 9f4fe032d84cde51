/** A pause of uploads: what waits in rclone's queue is put off, and what comes meanwhile, before its time is over. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { Config } from '../../../../core/contract/config.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { QueuePause } from '../../../../plugins/mount/rclone/upload-pause.ts';

const HOUR_MS = 3_600_000;

interface Item {
  readonly id: number;
  readonly dueMs: number;
  readonly uploading: boolean;
  readonly name: string;
  readonly tries: number;
}

function stage(writeBack = '5s') {
  const clock = createManualClock();
  const end = new AbortController();
  const pauses = new Map<string, number>();
  const queue = new Map<number, Item>();
  /** As rclone queues a file: due in so many seconds. */
  const add = (id: number, seconds: number, uploading = false, { name = `f${id}`, tries = 0 } = {}): void => {
    queue.set(id, { id, dueMs: clock.monotonic() + seconds * 1_000, uploading, name, tries });
  };
  /** Listed still, and gone when it is asked for. */
  const gone = new Set<number>();
  const calls: string[] = [];
  let isSilent = false;
  let answers = Infinity;
  const rc = {
    call: async (name: string, parameters: Readonly<Record<string, unknown>>): Promise<never> => {
      if (isSilent) throw new Error('rclone does not answer');
      const secondsTo = ({ dueMs }: Item): number => (dueMs - clock.monotonic()) / 1_000;
      if (name === 'vfs/queue')
        return { queue: [...queue.values()].map((item) => ({ ...item, expiry: secondsTo(item) })) } as never;
      const { id, expiry } = parameters as { id: number; expiry: number };
      if (gone.has(id)) throw new Error('id not found in queue');
      answers -= 1;
      if (answers < 0) throw new Error('rclone does not answer');
      calls.push(`${id} ${Math.round(expiry)}`);
      add(id, expiry, false, queue.get(id));
      return {} as never;
    },
  };
  const begin = (isAdopted = false): QueuePause =>
    new QueuePause({
      shareName: 'files',
      rc: rc as never,
      fs: 'nas:',
      clock,
      log: pino({ level: 'silent' }),
      config: () => ({ mount: { write_back: writeBack } }) as unknown as Config,
      pauses,
      isAdopted,
      end: end.signal,
    });
  return {
    clock,
    end,
    pauses,
    add,
    drop: (id: number) => void gone.add(id),
    calls,
    begin,
    silence: (to: boolean) => (isSilent = to),
    answerOnly: (count: number) => (answers = count),
    signal: new AbortController().signal,
  };
}

describe('a pause of uploads', () => {
  it('puts off what waits to its end, and leaves what is being uploaded', async () => {
    const { add, begin, calls, clock, end, signal } = stage();
    add(1, 4);
    add(2, -3, true);
    add(3, -1);
    const paused = begin();
    assert.equal(paused.until, undefined);
    await paused.set(clock.now() + HOUR_MS, signal);
    assert.deepEqual(calls, ['1 3600', '3 3600']);
    assert.equal(paused.until, clock.now() + HOUR_MS);
    end.abort();
  });

  it('puts off what comes meanwhile within a second or two, once each, and ends by itself', async () => {
    const { add, begin, calls, clock, end, signal } = stage();
    const paused = begin();
    await paused.set(clock.now() + 60_000, signal);
    add(7, 5);
    await clock.advance(1_000);
    assert.deepEqual(calls, ['7 59']);
    await clock.advance(10_000);
    assert.equal(calls.length, 1);
    await clock.advance(60_000);
    add(8, 5);
    await clock.advance(5_000);
    assert.deepEqual([paused.until, calls.length], [undefined, 1]);
    end.abort();
  });

  it('lets through what somebody sends by name, for one try', async () => {
    const { add, begin, calls, clock, end, signal } = stage();
    add(1, 4, false, { name: 'd/a' });
    add(2, 4, false, { name: 'd/b' });
    add(3, 4, false, { name: 'da' });
    add(4, -1, true, { name: 'd/goes' });
    const paused = begin();
    await paused.set(clock.now() + HOUR_MS, signal);
    await paused.sendNow('d', signal);
    assert.deepEqual(calls.splice(0), ['1 3600', '2 3600', '3 3600', '1 -1', '2 -1']);
    await clock.advance(5_000);
    assert.deepEqual(calls, [], 'they wait for a place, and are not put off');
    add(1, 10, false, { name: 'd/a', tries: 1 });
    await clock.advance(1_000);
    assert.deepEqual(calls, ['1 3594'], 'it failed, and the pause holds again');
    await paused.sendNow('d/goes', signal);
    await assert.rejects(paused.sendNow('nowhere', signal), /nowhere does not wait/);
    end.abort();
  });

  it('puts off what somebody sent by name before it, or during a former one', async () => {
    const { add, begin, calls, clock, end, signal } = stage();
    add(1, 4);
    const paused = begin();
    await paused.sendNow('f1', signal);
    await paused.set(clock.now() + 60_000, signal);
    await paused.sendNow('f1', signal);
    await clock.advance(61_000);
    assert.deepEqual(calls.splice(0), ['1 -1', '1 60', '1 -1']);
    // Saved again after its upload: rclone keeps the id.
    add(1, 5);
    await paused.set(clock.now() + HOUR_MS, signal);
    assert.deepEqual(calls, ['1 3600']);
    end.abort();
  });

  it('holds what somebody could not send by name', async () => {
    const { add, answerOnly, begin, calls, clock, end, signal } = stage();
    add(1, 4);
    const paused = begin();
    await paused.set(clock.now() + HOUR_MS, signal);
    answerOnly(0);
    await assert.rejects(paused.sendNow('f1', signal), /does not answer/);
    answerOnly(Infinity);
    // rclone may have carried it out all the same.
    add(1, 0);
    await clock.advance(1_000);
    assert.deepEqual(calls, ['1 3600', '1 3599']);
    end.abort();
  });

  it('can be made shorter', async () => {
    const { add, begin, calls, clock, end, signal } = stage();
    add(1, 4);
    const paused = begin();
    await paused.set(clock.now() + HOUR_MS, signal);
    await paused.set(clock.now() + 60_000, signal);
    assert.deepEqual(calls, ['1 3600', '1 60']);
    end.abort();
  });

  it('hastens nothing that goes later than its end by itself', async () => {
    const { add, begin, calls, clock, end, signal } = stage('1h');
    add(1, 3_600);
    add(2, 200);
    const paused = begin();
    await paused.set(clock.now() + 60_000, signal);
    await clock.advance(58_500);
    add(3, 5);
    await clock.advance(1_500);
    assert.deepEqual(calls, []);
    end.abort();
  });

  it('that could not be begun as a whole leaves nothing behind that waits', async () => {
    const { add, answerOnly, begin, calls, clock, end, signal } = stage();
    add(1, 4);
    add(2, 4);
    const paused = begin();
    answerOnly(1);
    await assert.rejects(paused.set(clock.now() + HOUR_MS, signal), /does not answer/);
    assert.deepEqual([calls, paused.until], [['1 3600'], undefined]);
    await clock.advance(5_000);
    answerOnly(Infinity);
    await clock.advance(5_000);
    assert.deepEqual(calls, ['1 3600', '1 -1']);
    end.abort();
  });

  it('leaves what is no longer in the queue', async () => {
    const { begin, clock, end, signal, add, calls, drop } = stage();
    add(1, 4);
    add(2, 4);
    drop(1);
    await begin().set(clock.now() + HOUR_MS, signal);
    assert.deepEqual(calls, ['2 3600']);
    end.abort();
  });

  it('goes on with the next rclone of the share, and ends when it is forgotten', async () => {
    const { add, begin, calls, clock, end, pauses } = stage();
    pauses.set('files', clock.now() + HOUR_MS);
    add(1, 5);
    const paused = begin();
    await clock.advance(0);
    assert.deepEqual(calls, ['1 3600']);
    paused.forget();
    add(2, 5);
    await clock.advance(3_000);
    assert.deepEqual([paused.until, calls.length], [undefined, 1]);
    end.abort();
  });

  it('ends with the daemon that made it: the next one sends what waits longer than rclone itself would', async () => {
    const { add, begin, calls, clock, end, silence } = stage();
    add(1, 3_000);
    add(2, 200);
    add(3, 4_000, true);
    silence(true);
    begin(true);
    await clock.advance(5_000);
    silence(false);
    await clock.advance(5_000);
    assert.deepEqual(calls, ['1 -1']);
    await clock.advance(60_000);
    assert.equal(calls.length, 1);
    end.abort();
  });

  it('is none where rclone does not answer, and looks again where it was one', async () => {
    const { add, begin, calls, clock, end, pauses, signal, silence } = stage();
    add(1, 4);
    const paused = begin();
    silence(true);
    await assert.rejects(paused.set(clock.now() + HOUR_MS, signal), /does not answer/);
    assert.deepEqual([paused.until, pauses.size], [undefined, 0]);
    silence(false);
    await paused.set(clock.now() + HOUR_MS, signal);
    silence(true);
    add(2, 5);
    await clock.advance(1_000);
    silence(false);
    await clock.advance(1_000);
    assert.deepEqual(calls, ['1 3600', '2 3598']);
    end.abort();
  });

  it('says in a sentence where rclone would begin before it can be held back', async () => {
    const { begin, clock, signal } = stage('1s');
    const paused = begin();
    assert.match(paused.obstacle ?? '', /^mount\.write_back is 1s, and rclone/);
    await assert.rejects(paused.set(clock.now() + HOUR_MS, signal), /write_back is 1s/);
    assert.equal(paused.until, undefined);
    assert.equal(stage('3s').begin().obstacle, undefined);
  });
});
