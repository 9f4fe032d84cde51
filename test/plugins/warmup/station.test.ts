import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Task } from '../../../plugins/warmup/task.ts';
import { createKit, newMount } from './fixture.ts';

const photos = { share: 'photos', path: '2024' };

describe('warmup rules', () => {
  it('run once their share is healthy, and only then', async () => {
    const kit = createKit(['photos'], []);
    kit.share('photos').mount = undefined;
    kit.config.rules = [{ ...photos, newer_than: '1d' }];
    kit.station.configure();
    await kit.pass();
    assert.deepEqual([kit.states(), kit.started.length], [['pending'], 0]);
    newMount(kit.share('photos'), 'photos');
    await kit.pass();
    assert.deepEqual([kit.states(), kit.last().order.path, kit.last().order.mountPoint], [['listing'], '2024', '/mnt/photos']);
    assert.equal(kit.last().order.changedSinceMs, kit.clock.now() - 86_400_000);
    kit.last().counts('caching', { total: 3, skipped: 1 });
    assert.deepEqual(kit.states(), ['caching']);
    kit.last().counts('caching', { total: 3, skipped: 1, cached: 2 });
    kit.last().end({});
    await kit.pass(60_000);
    assert.deepEqual([kit.states(), kit.station.rules[0]?.counts.cached, kit.started.length], [['complete'], 2, 1]);
  });

  it('run again when the share is mounted anew, but not when only its remote was away', async () => {
    const kit = createKit(['photos'], [photos]);
    kit.last().end({});
    await kit.pass();
    kit.share('photos').remoteAnswers = false;
    await kit.pass();
    kit.share('photos').remoteAnswers = true;
    await kit.pass(10_000);
    assert.equal(kit.started.length, 1);
    newMount(kit.share('photos'), 'photos');
    await kit.pass(10_000);
    assert.equal(kit.started.length, 2);
  });

  it('wait for an occasion where they do not run by themselves', async () => {
    const kit = createKit(['photos', 'music'], [photos, { share: 'music', path: '' }], { auto: false });
    await kit.pass(10_000);
    assert.deepEqual([kit.states(), kit.started.length], [['pending', 'pending'], 0]);
    assert.equal(kit.station.wantRules('music'), 1);
    assert.deepEqual(kit.states(), ['pending', 'listing']);
    assert.equal(kit.station.wantRules(), 2);
    assert.deepEqual(kit.states(), ['listing', 'listing']);
  });

  it('run one at a time on a share, and on two shares at once', async () => {
    const names = ['a', 'b', 'c'];
    const kit = createKit(names, names.flatMap((share) => [{ share, path: 'x' }, { share, path: 'y' }]));
    const running = (): readonly string[] => kit.station.rules.filter((task) => task.isRunning).map(({ target }) => `${target.share}/${target.path}`);
    assert.deepEqual(running(), ['a/x', 'b/x']);
    kit.started[0]?.end({});
    await kit.pass();
    assert.equal(running().length, 2);
    for (let index = 1; index < 6; index += 1) {
      kit.started[index]?.end({});
      await kit.pass();
      assert.ok(running().length <= 2);
    }
    assert.deepEqual(new Set(kit.states()), new Set(['complete']));
  });

  it('stop at once when their share goes, stay due, and go on with the next mount', async () => {
    const kit = createKit(['photos'], [photos], { auto: false });
    kit.station.wantRules();
    kit.last().counts('caching', { total: 9, cached: 4 });
    kit.share('photos').mount = undefined;
    await kit.pass();
    assert.deepEqual([kit.last().isStopped, kit.states(), kit.station.rules[0]?.counts.cached], [true, ['pending'], 4]);
    newMount(kit.share('photos'), 'photos');
    await kit.pass(5_000);
    assert.deepEqual([kit.started.length, kit.states()], [2, ['listing']]);
  });

  it('wait while the remote does not answer, whoever notices it first', async () => {
    const kit = createKit(['photos'], [photos]);
    kit.last().end({ outcome: 'away', reason: 'no route' });
    await kit.pass();
    assert.deepEqual([kit.states(), kit.started.length], [['pending'], 1]);
    kit.share('photos').remoteAnswers = false;
    await kit.pass(60_000);
    assert.equal(kit.started.length, 1);
    kit.share('photos').remoteAnswers = true;
    await kit.pass(0);
    assert.equal(kit.started.length, 2);
    kit.share('photos').remoteAnswers = false;
    await kit.pass();
    assert.deepEqual([kit.last().isStopped, kit.states()], [true, ['pending']]);
  });

  it('fail with a state and no reason, and are not tried again by themselves', async () => {
    const kit = createKit(['photos'], [photos]);
    kit.last().end({ outcome: 'failed', reason: 'internal' });
    await kit.pass(60_000);
    assert.deepEqual([kit.states(), kit.started.length], [['failed'], 1]);
    assert.doesNotMatch(JSON.stringify(kit.saved), /internal/);
  });

  it('stop at once when they are taken out; new ones begin at once', async () => {
    const kit = createKit(['photos'], [photos]);
    kit.config.rules = [{ share: 'photos', path: '2025' }];
    kit.config.concurrency = 3;
    kit.station.configure();
    assert.equal(kit.started[0]?.isStopped, true);
    await kit.pass(5_000);
    assert.deepEqual([kit.station.rules.map(({ target }) => target.path), kit.last().order.path, kit.last().order.concurrency], [['2025'], '2025', 3]);
    kit.config.concurrency = 9;
    kit.station.configure();
    assert.deepEqual([kit.last().concurrency, kit.last().isStopped], [9, false]);
  });

  it('are ended by a cancel until the next occasion', async () => {
    const kit = createKit(['photos'], [photos]);
    assert.equal(kit.station.cancel('photos'), 1);
    await kit.pass(60_000);
    assert.deepEqual([kit.started.length, kit.last().isStopped, kit.states()], [1, true, ['pending']]);
    assert.equal(kit.station.cancel('photos'), 0);
    kit.station.wantRules();
    assert.equal(kit.started.length, 2);
  });

  it('go on in the next daemon where they were cut off, and keep what they came to otherwise', async () => {
    const kit = createKit(['photos'], [photos, { share: 'photos', path: 'done' }], { auto: false });
    kit.station.wantRules();
    kit.last().counts('caching', { total: 9, cached: 4 });
    const tasks = kit.saved.at(-1) ?? [];
    const former = new Map(tasks.map((task, index) => {
      const known = new Task(task.target, { state: index === 0 ? 'caching' : 'complete', counts: { ...task.counts, cached: 5 }, isWanted: false, isFull: false });
      return [known.key, known] as const;
    }));
    const next = createKit(['photos'], kit.config.rules, { auto: false, former });
    assert.deepEqual([next.states(), next.started.length, next.last().order.path], [['listing', 'complete'], 1, '2024']);
    assert.equal(next.station.rules[1]?.counts.cached, 5);
    await next.station.close();
    assert.deepEqual([next.states(), next.station.rules[0]?.isWanted], [['pending', 'complete'], true]);
  });

  it('are joined by what somebody asks for, which is forgotten when the share is not', async () => {
    const kit = createKit(['photos'], [], { auto: false });
    kit.station.ask({ share: 'photos', path: 'x', newerThan: null, isDryRun: true });
    assert.deepEqual([kit.last().order.isDryRun, kit.station.rules.length, kit.station.of('photos').length], [true, 0, 1]);
    kit.last().end({});
    await kit.pass();
    for (let index = 0; index < 80; index += 1) {
      kit.station.ask({ share: 'photos', path: String(index), newerThan: null, isDryRun: false });
      kit.last().end({});
      await kit.pass(3_000);
    }
    assert.ok(kit.station.of('photos').length <= 51, String(kit.station.of('photos').length));
    assert.equal(kit.station.of('photos').at(-1)?.state, 'complete');
  });
});
