import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { NotificationEvent } from 'mountkeeper';
import type { Delivery } from '../../../../plugins/webhooks/delivery/delivery.ts';
import { Outbox } from '../../../../plugins/webhooks/delivery/outbox.ts';
import type { Outcome } from '../../../../plugins/webhooks/delivery/outbox.ts';
import { askedWaitMs, waitAfter, WAITS_MS } from '../../../../plugins/webhooks/delivery/retry-times.ts';

const event = (key: string): NotificationEvent => ({
  type: 'test',
  severity: 'info',
  message: key,
  data: {},
  key,
});
const DOWN: Outcome = { ok: false, status: null, problem: 'down' };
const GOOD: Outcome = { ok: true, status: 200 };

function createKit(former: readonly Delivery[] = []) {
  const clock = createManualClock();
  const wall = { aheadMs: 0 };
  const trueNow = clock.now.bind(clock);
  clock.now = () => trueNow() + wall.aheadMs;
  const sent: { key: string; id: string; second: number }[] = [];
  const end = new AbortController();
  const receiver = {
    answer: (_delivery: Delivery): Outcome | Promise<Outcome> => GOOD,
    isOn: true,
    changes: 0,
  };
  /** The disk: what is not saved yet waits for `saved`. */
  const disk = { saved: Promise.resolve() };
  const outbox = new Outbox(
    {
      clock,
      log: pino({ level: 'silent' }),
      signal: end.signal,
      random: () => 0.5,
      isOn: () => receiver.isOn,
      onChange: () => void (receiver.changes += 1),
      saved: () => disk.saved,
      attempt: async (delivery) => {
        sent.push({ key: delivery.event.key, id: delivery.id, second: Math.round(clock.monotonic() / 1000) });
        return receiver.answer(delivery);
      },
    },
    former,
  );
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      await clock.advance(1_000);
      void outbox.work();
    }
    await clock.advance(0);
  };
  return { clock, wall, outbox, receiver, disk, sent, pass, end, keys: () => sent.map(({ key }) => key) };
}

describe('the outbox', () => {
  it('sends each event once, in order, at once', async () => {
    const kit = createKit();
    kit.outbox.add(event('a'));
    kit.outbox.add(event('b'));
    await kit.pass(3);
    assert.deepEqual(kit.keys(), ['a', 'b']);
    assert.deepEqual(
      kit.outbox.deliveries.map(({ state, tries }) => [state, tries]),
      [
        ['delivered', 1],
        ['delivered', 1],
      ],
    );
    assert.equal(kit.clock.pending, 0);
  });

  it('sends nothing before it is kept', async () => {
    const kit = createKit();
    let kept: () => void = () => undefined;
    kit.disk.saved = new Promise((resolve) => (kept = resolve));
    kit.outbox.add(event('a'));
    await kit.pass(60);
    assert.deepEqual(
      [kit.keys(), kit.outbox.deliveries.map(({ tries }) => tries)],
      [[], [0]],
      'a daemon killed here sends it under the same id',
    );
    kept();
    await kit.pass(1);
    assert.deepEqual([kit.keys(), kit.outbox.deliveries.map(({ tries }) => tries)], [['a'], [1]]);
  });

  it('leaves what is not kept yet to the next daemon when it ends', async () => {
    const kit = createKit();
    let kept: () => void = () => undefined;
    kit.disk.saved = new Promise((resolve) => (kept = resolve));
    kit.outbox.add(event('a'));
    await kit.pass(1);
    kit.end.abort(new Error('shutdown'));
    kept();
    await kit.pass(1);
    assert.deepEqual(kit.keys(), []);
  });

  it('tells who asked of an attempt only once that is kept', async () => {
    const kit = createKit();
    const id = kit.outbox.add(event('a'))?.id ?? '';
    let kept: () => void = () => undefined;
    let isTold = false;
    kit.receiver.answer = () => {
      kit.disk.saved = new Promise((resolve) => (kept = resolve));
      return GOOD;
    };
    const told = kit.outbox.afterNextAttempt(id, new AbortController().signal).then(() => (isTold = true));
    await kit.pass(5);
    assert.deepEqual([kit.keys(), isTold], [['a'], false]);
    kept();
    await told;
  });

  it('takes no event twice, and none while there is nowhere to send to', async () => {
    const kit = createKit();
    kit.outbox.add(event('a'));
    assert.equal(kit.outbox.add(event('a')), undefined);
    kit.receiver.isOn = false;
    assert.equal(kit.outbox.add(event('b')), undefined);
    await kit.pass(1);
    assert.deepEqual(kit.keys(), ['a']);
  });

  it('tries again with growing waits under one id, and sends what waited when the receiver is back', async () => {
    const kit = createKit();
    kit.receiver.answer = () => DOWN;
    kit.outbox.add(event('a'));
    await kit.pass(20);
    kit.outbox.add(event('b'));
    await kit.pass(180);
    assert.deepEqual(
      kit.sent.filter(({ key }) => key === 'a').map(({ second }) => second),
      [0, 5, 35, 155],
    );
    assert.equal(new Set(kit.sent.map(({ id }) => id)).size, 2);
    kit.receiver.answer = () => GOOD;
    const before = kit.sent.length;
    await kit.pass(300);
    assert.deepEqual(
      kit
        .keys()
        .slice(before)
        .sort((a, b) => a.localeCompare(b)),
      ['a', 'b'],
    );
    const last = kit.sent.slice(before).map(({ second }) => second);
    assert.equal(last[0], last[1], 'the second followed the first at once');
  });

  it('keeps to what the receiver asked for, also when others get through', async () => {
    const kit = createKit();
    kit.receiver.answer = ({ event: { key } }) =>
      key === 'a' && kit.sent.length < 2
        ? { ok: false, status: 429, problem: 'busy', askedWaitMs: 60_000 }
        : GOOD;
    kit.outbox.add(event('a'));
    await kit.pass(5);
    kit.outbox.add(event('b'));
    await kit.pass(54);
    assert.deepEqual(kit.keys(), ['a', 'b']);
    await kit.pass(3);
    assert.deepEqual(kit.keys(), ['a', 'b', 'a']);
  });

  it('gives up after hours, says so, and sends again by hand', async () => {
    const kit = createKit();
    kit.receiver.answer = () => DOWN;
    const id = kit.outbox.add(event('a'))?.id ?? '';
    for (const wait of WAITS_MS)
      await kit
        .pass(0)
        .then(() => kit.clock.advance(wait))
        .then(() => kit.outbox.work());
    assert.deepEqual(
      [kit.outbox.deliveries[0]?.state, kit.sent.length, kit.outbox.deliveries[0]?.attempts.length],
      ['failed', 11, 11],
    );
    kit.receiver.answer = () => GOOD;
    assert.equal(kit.outbox.resend(id), true);
    await kit.pass(1);
    assert.equal(kit.outbox.deliveries[0]?.state, 'delivered');
    assert.equal(kit.outbox.resend('nobody'), false);
  });

  it('goes on where a former daemon left off', async () => {
    const first = createKit();
    first.receiver.answer = () => DOWN;
    first.outbox.add(event('a'));
    await first.pass(1);
    const second = createKit(JSON.parse(JSON.stringify(first.outbox.deliveries)) as Delivery[]);
    await second.pass(6);
    assert.deepEqual([second.keys(), second.sent[0]?.id], [['a'], first.sent[0]?.id]);
    assert.equal(second.outbox.add(event('a')), undefined);
  });

  it('waits no longer when the clock is set back, by hand or between two daemons', async () => {
    const first = createKit();
    first.receiver.answer = () => DOWN;
    first.wall.aheadMs = 4 * 365 * 86_400_000;
    first.outbox.add(event('a'));
    await first.pass(2);
    const kept = JSON.parse(JSON.stringify(first.outbox.deliveries)) as Delivery[];
    first.wall.aheadMs = 0;
    await first.pass(4);
    assert.equal(first.sent.length, 2, 'set back while it waited 5 s');
    first.wall.aheadMs = 86_400_000;
    await first.pass(1);
    assert.equal(first.sent.length, 3, 'set forward: at once');
    const second = createKit(kept);
    await second.pass(6);
    assert.deepEqual(second.keys(), ['a']);
  });

  it('begins nothing new after its end, and leaves what was under way as it was', async () => {
    const kit = createKit();
    let finish: (outcome: Outcome) => void = () => undefined;
    kit.receiver.answer = () => new Promise((resolve) => (finish = resolve));
    kit.outbox.add(event('a'));
    kit.outbox.add(event('b'));
    await kit.pass(1);
    kit.end.abort(new Error('disabled'));
    finish(DOWN);
    await kit.pass(100);
    assert.deepEqual(
      [kit.keys(), kit.outbox.deliveries.map(({ state, tries }) => [state, tries])],
      [
        ['a'],
        [
          ['waiting', 0],
          ['waiting', 0],
        ],
      ],
    );
    assert.equal(kit.clock.pending, 0);
  });

  it('keeps a bounded number, dropping first what is done', async () => {
    const kit = createKit();
    for (let index = 0; index < 150; index += 1) kit.outbox.add(event(`good${index}`));
    await kit.pass(1);
    kit.receiver.answer = () => DOWN;
    for (let index = 0; index < 150; index += 1) kit.outbox.add(event(`bad${index}`));
    await kit.pass(1);
    assert.equal(kit.outbox.deliveries.length, 200);
    assert.equal(kit.outbox.deliveries.filter(({ state }) => state === 'waiting').length, 150);
  });
});

describe('waits', () => {
  it('grow over hours with jitter and end', () => {
    assert.ok(WAITS_MS.reduce((sum, wait) => sum + wait, 0) > 15 * 3_600_000);
    assert.deepEqual(
      [waitAfter(1, undefined, 0), waitAfter(1, undefined, 0.5), waitAfter(1, undefined, 0.999_999)].map(
        (ms) => Math.round(ms ?? 0),
      ),
      [4_000, 5_000, 6_000],
    );
    assert.equal(waitAfter(WAITS_MS.length + 1, 5, 0.5), undefined);
  });

  it('honour what was asked for, within a day', () => {
    assert.equal(waitAfter(1, 77_000, 0.5), 77_000);
    assert.equal(waitAfter(1, 1e12, 0.5), 24 * 3_600_000);
    const now = Date.UTC(2026, 0, 1);
    assert.deepEqual(
      [
        askedWaitMs('12', now),
        askedWaitMs('Thu, 01 Jan 2026 00:01:00 GMT', now),
        askedWaitMs('soon', now),
        askedWaitMs(undefined, now),
        askedWaitMs('Wed, 31 Dec 2025 00:00:00 GMT', now),
      ],
      [12_000, 60_000, undefined, undefined, 0],
    );
    assert.equal(askedWaitMs('1.5', now), 1_500);
  });

  it('drops what waits longest of whoever tells the most, where too many wait', async () => {
    const kit = createKit();
    kit.receiver.answer = () => DOWN;
    kit.outbox.add({ ...event('real'), type: 'share.failed' });
    for (let count = 0; count < 300; count += 1)
      kit.outbox.add({ ...event(`flood ${count}`), type: 'odd.flood' });
    const keys = kit.outbox.deliveries.map((one) => one.event.key);
    assert.deepEqual([keys.length, keys[0], keys[1]], [200, 'real', 'flood 101']);
  });
});
