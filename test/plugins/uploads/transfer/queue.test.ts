/** What goes next: pauses, what is to go now, and what changed while it went. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Queue } from '../../../../plugins/uploads/transfer/queue.ts';
import type { Item, Plan } from '../../../../plugins/uploads/compare/plan-types.ts';

const NOW = 1_800_000_000_000;

const NO_PLAN: Plan = {
  items: new Map(),
  lessons: [],
  sources: [],
  spent: [],
  done: [],
  stale: [],
  clean: [],
  cut: [],
};

function item(action: Item['action'], path: string, needs: readonly string[] = []): Item {
  return { id: `${action} ${path}`, action, path, place: path, bytes: 10, needs: new Set(needs) };
}

function queueOf(...items: readonly Item[]): Queue {
  const queue = new Queue();
  queue.adopt({ ...NO_PLAN, items: new Map(items.map((one) => [one.id, one])) }, NOW);
  return queue;
}

const next = (queue: Queue, now = NOW): string[] => queue.next(now, 4).map(({ id }) => id);

describe('the queue', () => {
  it('starts nothing while it is paused, says so, and goes on by itself', () => {
    const queue = queueOf(item('upload', 'a'), item('make folder', 'd'), item('delete', 'x'));
    queue.pause(NOW + 3_600_000);
    assert.deepEqual(next(queue), []);
    assert.match(queue.entries(NOW)[0]?.reason ?? '', /paused until 2027-01-15T09:00:00/);
    assert.equal(queue.pausedUntil(NOW), NOW + 3_600_000);
    assert.deepEqual(next(queue, NOW + 3_600_000), ['make folder d', 'upload a', 'delete x']);
    assert.equal(queue.pausedUntil(NOW + 3_600_000), undefined);
  });

  it('says also in a pause why a file is refused, or has failed, and the pause of those that only wait', () => {
    const unkept: Item = { ...item('upload', 'u'), isRefused: true, hold: 'Rename it.' };
    const open: Item = { ...item('upload', 'o'), hold: 'It is open.' };
    const [full, silent] = [item('upload', 'f'), item('upload', 's')];
    const queue = queueOf(unkept, full, open, silent, item('upload', 'w'));
    const failure = (message: string, remote: 'answers' | 'silent') =>
      Object.assign(new Error(message), { remote });
    queue.failed(full, failure('no space left', 'answers'), NOW);
    queue.failed(silent, failure('no answer', 'silent'), NOW);
    queue.pause(NOW + 3_600_000);
    const [first, second, ...others] = queue.entries(NOW).map(({ reason }) => reason);
    assert.deepEqual([first, second], ['Rename it.', 'no space left']);
    assert.equal(others.filter((reason) => reason.startsWith('Uploads are paused until')).length, 3);
  });

  it('sends names that the remote may take for one, one after the other', () => {
    const queue = queueOf(item('upload', 'A.txt'), item('upload', 'a.txt'), item('upload', 'b.txt'));
    const begun = queue.next(NOW, 4);
    assert.deepEqual(
      begun.map(({ place }) => place),
      ['A.txt', 'b.txt'],
    );
    for (const one of begun) queue.succeeded(one);
    assert.deepEqual(next(queue), ['upload a.txt']);
  });

  it('finds out while moves are held where a folder is whose move was not answered', () => {
    const moving = (path: string, more: object): Item => ({
      ...item('move', path),
      move: { source: `former ${path}`, isDetour: false, ...more } as unknown as NonNullable<Item['move']>,
    });
    const queue = queueOf(moving('a', { going: 'a' }), moving('b', {}));
    queue.holdMoves(true);
    assert.deepEqual(next(queue), ['move a']);
  });

  it('says when a file goes up that somebody has just changed, but while uploads are paused', () => {
    const hold = 'It goes up once nobody has changed it for a while.';
    const quietAt = NOW + 3_600_000;
    const queue = queueOf({ ...item('upload', 'a'), hold, quietAt });
    const now = () => queue.entries(NOW).map(({ reason, nextTryAt }) => [reason, nextTryAt]);
    assert.deepEqual(now(), [[hold, quietAt]]);
    queue.pause(NOW + 60_000);
    assert.match(String(now()[0]?.[0]), /^Uploads are paused until/);
    assert.equal(now()[0]?.[1], undefined);
  });

  it('goes on at once when all is to go', () => {
    const queue = queueOf(item('upload', 'a'));
    queue.pause(NOW + 3_600_000);
    queue.hurry();
    assert.deepEqual(next(queue), ['upload a']);
  });

  it('goes on after a move with all that the move is not about, and with nothing else', () => {
    const moving: Item = {
      ...item('move', 'x/New'),
      move: {
        source: 'f',
        isDetour: false,
        entry: { path: 'x/New' },
      } as unknown as NonNullable<Item['move']>,
    };
    const queue = queueOf(
      moving,
      item('make folder', 'x'),
      item('upload', 'f/a'),
      item('upload', 'x/new/b'),
      item('upload', 'fa'),
      item('upload', 'x/other'),
    );
    queue.succeeded(moving);
    queue.moved(moving);
    assert.deepEqual(next(queue), ['upload fa', 'upload x/other']);
  });

  it('goes on with nothing after the move of a folder', () => {
    const entry = { path: 'x', kind: 'folder' } as unknown as NonNullable<Item['entry']>;
    const moving: Item = { ...item('move', 'x'), entry };
    const queue = queueOf(moving, item('upload', 'fa'));
    queue.succeeded(moving);
    queue.moved(moving);
    assert.deepEqual(next(queue), []);
  });

  it('sends what is to go now through a pause, with what it needs, and nothing else', () => {
    const queue = queueOf(
      item('upload', 'a'),
      item('make folder', 'd'),
      item('upload', 'd/b', ['make folder d']),
      item('delete', 'x'),
    );
    queue.pause(NOW + 3_600_000);
    queue.prefer('d/b');
    const [first] = queue.next(NOW, 4);
    assert.equal(first?.id, 'make folder d');
    queue.succeeded(first);
    assert.deepEqual(next(queue), ['upload d/b']);
  });

  it('sends what is to go now before all others, though its next try was later', () => {
    const [a, b] = [item('upload', 'a'), item('upload', 'b')];
    const queue = queueOf(a, b);
    queue.failed(b, Object.assign(new Error('no'), { remote: 'answers' as const }), NOW);
    queue.prefer('b');
    queue.adopt(
      {
        items: new Map([a, b].map((one) => [one.id, one])),
        lessons: [],
        sources: [],
        spent: [],
        done: [],
        stale: [],
        clean: [],
        cut: [],
      },
      NOW,
    );
    assert.deepEqual(next(queue), ['upload b', 'upload a']);
  });

  it('does not start again what changed while it went, before the next look', () => {
    const one = item('upload', 'a');
    const queue = queueOf(one);
    assert.deepEqual(next(queue), ['upload a']);
    queue.postponed(one);
    assert.deepEqual(next(queue), []);
  });

  it('keeps a slot for small files while long ones are sent', () => {
    const long = (path: string): Item => ({ ...item('upload', path), bytes: 20 * 1024 ** 3 });
    const queue = queueOf(...['a', 'b', 'c', 'd'].map(long));
    const going = queue.next(NOW, 4);
    assert.equal(going.length, 3);
    for (const one of going) queue.running.set(one.id, { item: one, sentBytes: 0 });
    const items = [...['a', 'b', 'c', 'd'].map(long), item('upload', 'small')];
    queue.adopt({ ...NO_PLAN, items: new Map(items.map((one) => [one.id, one])) }, NOW);
    assert.deepEqual(next(queue), ['upload small']);
    assert.equal(queueOf(long('a'), long('b')).next(NOW, 1).length, 1);
  });

  it('waits no longer, and takes nothing for younger, after the clock was set back', () => {
    const [a, b] = [item('upload', 'a'), item('upload', 'b')];
    const plan = {
      ...NO_PLAN,
      items: new Map([a, b].map((one) => [one.id, one])),
    };
    const failure = (remote: 'answers' | 'silent') => Object.assign(new Error('no'), { remote });
    const back = NOW - 3 * 3_600_000;
    const at = (queue: Queue, now: number, monotonicMs: number): string[] => {
      queue.clockSays(now, monotonicMs);
      queue.adopt(plan, now);
      return next(queue, now);
    };
    const begun = (): Queue => {
      const queue = queueOf(a, b);
      queue.clockSays(NOW, 0);
      return queue;
    };
    const failed = begun();
    failed.failed(a, failure('answers'), NOW);
    assert.deepEqual(at(failed, back + 1_000, 1_000), ['upload b']);
    assert.deepEqual(at(failed, back + 61_000, 61_000), ['upload a', 'upload b']);
    assert.equal(failed.since(a), back);
    const silent = begun();
    silent.failed(a, failure('silent'), NOW);
    assert.deepEqual(at(silent, back + 1_000, 1_000), []);
    assert.deepEqual(at(silent, back + 6_000, 6_000), ['upload b']);
    const paused = begun();
    paused.pause(NOW + 900_000);
    assert.deepEqual(at(paused, back + 899_000, 899_000), []);
    assert.equal(paused.pausedUntil(back + 899_000), back + 900_000);
    assert.deepEqual(at(paused, back + 901_000, 901_000), ['upload a', 'upload b']);
  });

  it('keeps the end of a pause while the machine sleeps', () => {
    const queue = queueOf(item('upload', 'a'));
    queue.clockSays(NOW, 0);
    queue.pause(NOW + 900_000);
    queue.clockSays(NOW + 600_000, 1_000);
    assert.equal(queue.pausedUntil(NOW + 600_000), NOW + 900_000);
  });

  it('gives each its turn while the remote is silent, and calls stuck what it is silent to alone', () => {
    const [a, b] = [item('upload', 'a'), item('upload', 'b')];
    const queue = queueOf(a, b);
    const silent = Object.assign(new Error('504'), { remote: 'silent' as const });
    let now = NOW;
    for (let turn = 1; turn <= 3; turn += 1) {
      queue.failed(a, silent, now);
      assert.equal(queue.isStuck(a), false);
      now += 6_000;
      assert.deepEqual(next(queue, now), ['upload b']);
      queue.succeeded(b);
      queue.adopt({ ...NO_PLAN, items: new Map([a, b].map((one) => [one.id, one])) }, now);
    }
    assert.equal(queue.isStuck(a), true);
    queue.failed(a, silent, now);
    assert.deepEqual(next(queue, now), ['upload b']);
    queue.succeeded(a);
    assert.equal(queue.isStuck(a), false);
  });
});
