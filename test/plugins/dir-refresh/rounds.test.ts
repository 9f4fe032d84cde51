import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import { createRounds } from '../../../plugins/dir-refresh/rounds.ts';
import { createShareRefresher } from '../../../plugins/dir-refresh/share-refresher.ts';
import { testShare } from './fixture.ts';
import type { TestShare } from './fixture.ts';

const log = pino({ level: 'silent' });
const MINUTE = 60_000;

function createKit(names: readonly string[], random = (): number => 0.5) {
  const clock = createManualClock();
  const shares = new Map(names.map((name) => [name, testShare(name)]));
  const end = new AbortController();
  const intervals = new Map(names.map((name) => [name, MINUTE]));
  const list = () => [...shares.values()].map((share) => share.live);
  const refresher = createShareRefresher({
    clock,
    log,
    shares: list,
    recursive: () => true,
    signal: end.signal,
  });
  const rounds = createRounds({
    clock,
    log,
    shares: list,
    refresher,
    intervalMs: (name) => intervals.get(name) ?? 0,
    random,
  });
  const pass = async (seconds: number): Promise<void> => {
    for (let second = 0; second < seconds; second += 1) {
      rounds.look();
      await clock.advance(1_000);
    }
    rounds.look();
    await clock.advance(0);
  };
  const share = (name: string): TestShare => shares.get(name) as TestShare;
  return { clock, shares, share, intervals, refresher, pass, end };
}

describe('rounds of refreshes', () => {
  it('wait somewhere inside the interval first, then the interval', async () => {
    const kit = createKit(['a']);
    await kit.pass(29);
    assert.equal(kit.share('a').made.refreshes, 0);
    await kit.pass(2);
    assert.equal(kit.share('a').made.refreshes, 1);
    kit.share('a').made.finish();
    await kit.pass(58);
    assert.equal(kit.share('a').made.refreshes, 1);
    await kit.pass(4);
    assert.equal(kit.share('a').made.refreshes, 2);
  });

  it('drift apart: a wait is up to a tenth longer or shorter', async () => {
    for (const [random, seconds] of [
      [0, 54],
      [0.999, 66],
    ] as const) {
      let given = 0;
      const kit = createKit(['a'], () => (given++ === 0 ? 0 : random));
      await kit.pass(1);
      kit.share('a').made.finish();
      await kit.pass(seconds - 2);
      assert.equal(kit.share('a').made.refreshes, 1, `${random}`);
      await kit.pass(4);
      assert.equal(kit.share('a').made.refreshes, 2, `${random}`);
    }
  });

  it('do not pile up behind a slow refresh', async () => {
    const kit = createKit(['a']);
    await kit.pass(5 * 60);
    assert.equal(kit.share('a').made.refreshes, 1);
    kit.share('a').made.finish();
    await kit.pass(50);
    assert.equal(kit.share('a').made.refreshes, 1);
  });

  it('take two shares at once and the others after them', async () => {
    const kit = createKit(['a', 'b', 'c', 'd'], () => 0);
    await kit.pass(3);
    const begun = () => ['a', 'b', 'c', 'd'].filter((name) => kit.share(name).made.refreshes > 0);
    assert.deepEqual(begun(), ['a', 'b']);
    kit.share('b').made.finish();
    await kit.pass(1);
    assert.deepEqual(begun(), ['a', 'b', 'c']);
  });

  it('leave a share alone that is not mounted or whose remote is away, and take it when it is back', async () => {
    for (const away of [{ mount: undefined }, { remoteAnswers: false }]) {
      const kit = createKit(['a']);
      const { made } = kit.share('a');
      Object.assign(kit.share('a'), away);
      await kit.pass(120);
      assert.equal(made.refreshes, 0);
      Object.assign(kit.share('a'), { mount: made, remoteAnswers: true });
      await kit.pass(1);
      assert.equal(made.refreshes, 1);
    }
  });

  it('follow a changed interval at once, and "0" stops them', async () => {
    const kit = createKit(['a']);
    kit.intervals.set('a', 60 * MINUTE);
    await kit.pass(10);
    kit.intervals.set('a', 10_000);
    await kit.pass(6);
    assert.equal(kit.share('a').made.refreshes, 1);
    kit.share('a').made.finish();
    kit.intervals.set('a', 0);
    await kit.pass(300);
    assert.equal(kit.share('a').made.refreshes, 1);
    kit.intervals.set('a', 10_000);
    await kit.pass(1);
    assert.equal(kit.share('a').made.refreshes, 2);
  });

  it('forget shares that have left', async () => {
    const kit = createKit(['a'], () => 0);
    await kit.pass(1);
    kit.share('a').made.finish();
    await kit.pass(1);
    assert.equal(kit.refresher.records.size, 1);
    kit.shares.clear();
    await kit.pass(1);
    assert.equal(kit.refresher.records.size, 0);
  });
});

describe('the refresher of shares', () => {
  it('remembers how many folders went well and how many failed, and when', async () => {
    const kit = createKit(['a']);
    const asked = kit.refresher.refresh('a', 'x');
    await kit.clock.advance(5_000);
    assert.deepEqual(
      kit.share('a').made.waiting.map(({ path, recursive }) => [path, recursive]),
      [['x', true]],
    );
    kit.share('a').made.finish({ ok: 7, failed: [{ path: 'x/bad', reason: 'no' }] });
    assert.equal((await asked).ok, 7);
    assert.deepEqual(kit.refresher.records.get('a'), { at: kit.clock.now(), ok: 7, failed: 1 });
  });

  it('refuses a second one of a share, and one of a share that is not mounted', async () => {
    const kit = createKit(['a', 'b']);
    const first = kit.refresher.refresh('a', '');
    await assert.rejects(kit.refresher.refresh('a', ''), /already/);
    kit.share('b').mount = undefined;
    await assert.rejects(kit.refresher.refresh('b', ''), /not mounted/);
    await assert.rejects(kit.refresher.refresh('nobody', ''), /not mounted/);
    kit.share('a').made.finish();
    await first;
  });

  it('gives up what takes too long and counts it as failed', async () => {
    const kit = createKit(['a']);
    const asked = kit.refresher.refresh('a', '');
    await kit.clock.advance(16 * MINUTE);
    assert.equal((await asked).failed.length, 1);
    assert.equal(kit.refresher.records.get('a')?.failed, 1);
    assert.equal(kit.refresher.running.size, 0);
    assert.equal(kit.clock.pending, 0);
  });

  it('ends with the plugin and with the mount, and then tells of no refresh', async () => {
    const kit = createKit(['a', 'b']);
    const stopped = kit.refresher.refresh('a', '');
    const gone = kit.refresher.refresh('b', '');
    kit.share('b').made.finish(new Error('the mount has ended'));
    await assert.rejects(gone, /has ended/);
    kit.end.abort(new Error('disabled'));
    await assert.rejects(stopped, /disabled/);
    assert.equal(kit.refresher.records.size, 0);
    assert.equal(kit.clock.pending, 0);
  });
});
