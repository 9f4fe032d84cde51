import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { NO_COUNTS } from '../../../../plugins/warmup/job-description.ts';
import { Task } from '../../../../plugins/warmup/scheduler/task.ts';
import { createKit, newMount } from '../fixture.ts';

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
    assert.deepEqual(
      [kit.states(), kit.last().order.path, kit.last().order.mountPoint],
      [['listing'], '2024', '/mnt/photos'],
    );
    assert.equal(kit.last().order.changedSinceMs, kit.clock.now() - 86_400_000);
    kit.last().counts('caching', { total: 3, skipped: 1 });
    assert.deepEqual(kit.states(), ['caching']);
    kit.last().counts('caching', { total: 3, skipped: 1, cached: 2 });
    kit.last().end({});
    await kit.pass(60_000);
    assert.deepEqual(
      [kit.states(), kit.station.rules[0]?.counts.cached, kit.started.length],
      [['complete'], 2, 1],
    );
  });

  it('have the mount look at folders anew by its own way, also where that fails', async () => {
    const kit = createKit(['photos'], [photos]);
    const mount = kit.share('photos').mount!;
    kit.last().hear({ kind: 'refresh', id: 1, folder: '2024', isDeep: true });
    await kit.pass();
    assert.ok(mount.calls.includes('refresh 2024'));
    mount.refreshDirectories = () => Promise.reject(new Error('nothing can be read'));
    kit.last().hear({ kind: 'refresh', id: 2, folder: '', isDeep: false });
    await kit.pass();
    assert.deepEqual(kit.last().refreshed, [1, 2]);
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
    const kit = createKit(['photos', 'music@attic'], [photos, { share: 'music', path: '' }], { auto: false });
    await kit.pass(10_000);
    assert.deepEqual([kit.states(), kit.started.length], [['pending', 'pending'], 0]);
    assert.equal(kit.station.wantRules('music'), 1);
    assert.deepEqual(kit.states(), ['pending', 'listing']);
    assert.equal(kit.station.wantRules(), 2);
    assert.deepEqual(kit.states(), ['listing', 'listing']);
  });

  it('run one share at a time on a connection, and over two connections at once', async () => {
    const names = ['a', 'b', 'c', 'd', 'e'];
    const kit = createKit(
      ['a@one', 'b@two', 'c@three', 'd@one', 'e@one'],
      names.flatMap((share) => [
        { share, path: 'x' },
        { share, path: 'y' },
      ]),
    );
    const running = (): readonly string[] =>
      kit.station.rules
        .filter((task) => task.isRunning)
        .map(({ target }) => `${target.share}/${target.path}`);
    assert.deepEqual(running(), ['a/x', 'b/x']);
    kit.started[0]?.end({});
    await kit.pass();
    assert.equal(running().length, 2);
    const lineOf = (task: string): string => ({ b: 'two', c: 'three' })[task.slice(0, 1)] ?? 'one';
    for (let index = 1; index < 10; index += 1) {
      kit.started[index]?.end({});
      await kit.pass();
      assert.ok(
        running().length <= 2 && new Set(running().map(lineOf)).size === running().length,
        running().join(),
      );
    }
    assert.deepEqual(new Set(kit.states()), new Set(['complete']));
  });

  it('know the other mounts of their connection, as these come and go', async () => {
    const kit = createKit(['a@one', 'b@one', 'c@two', 'd@one'], [{ share: 'a', path: '' }]);
    const beside = (): unknown[] => kit.last().terms.otherMounts.map(({ parameters }) => parameters['name']);
    assert.deepEqual(beside(), ['b', 'd']);
    kit.share('b').mount = undefined;
    await kit.pass();
    assert.deepEqual([beside(), kit.last().isStopped, kit.started.length], [['d'], false, 1]);
    newMount(kit.share('b'), 'b');
    await kit.pass();
    assert.deepEqual(beside(), ['b', 'd']);
  });

  it('wait for a share below which no rclone has been up, and run for the others meanwhile', async () => {
    const kit = createKit(
      ['a@one', 'b@one'],
      [
        { share: 'a', path: '' },
        { share: 'b', path: '' },
      ],
      { auto: false },
    );
    const { mount } = kit.share('a');
    const { cacheAccess } = mount!;
    mount!.cacheAccess = () => undefined;
    kit.station.wantRules();
    await kit.pass();
    assert.deepEqual([kit.states(), kit.last().terms.otherMounts], [['pending', 'listing'], []]);
    kit.last().end({});
    mount!.cacheAccess = cacheAccess;
    await kit.pass();
    await kit.pass();
    assert.deepEqual(kit.states(), ['listing', 'complete']);
  });

  it('that say the same are one piece of work, and one entry each', async () => {
    const kit = createKit(['photos'], [photos, { share: 'photos', path: 'x' }, photos]);
    assert.deepEqual(
      [kit.station.written.map(({ target }) => target.path), kit.station.rules.length],
      [['2024', 'x', '2024'], 2],
    );
  });

  it('that were taken out while no daemon ran are not taken up, what was asked for is', async () => {
    const cutOff = (path: string, isRule: boolean): readonly [string, Task] => {
      const task = new Task(
        { share: 'photos', path, newerThan: null, isDryRun: false },
        { state: 'caching', counts: NO_COUNTS, isWanted: true, isFull: false, isRule },
      );
      return [task.key, task];
    };
    const kit = createKit(['photos'], [], {
      former: new Map([cutOff('rule', true), cutOff('asked', false)]),
    });
    assert.deepEqual(
      kit.started.map(({ order }) => order.path),
      ['asked'],
    );
    assert.deepEqual(
      kit.station.of('photos').map(({ target }) => target.path),
      ['asked'],
    );
    kit.config.auto = false;
    kit.config.rules = [{ share: 'photos', path: 'late' }];
    kit.station.configure();
    assert.deepEqual(
      kit.saved.at(-1)?.map(({ target, isRule }) => [target.path, isRule]),
      [
        ['late', true],
        ['asked', false],
      ],
    );
  });

  it('stop at once when their share goes, stay due, and go on with the next mount', async () => {
    const kit = createKit(['photos'], [photos], { auto: false });
    kit.station.wantRules();
    kit.last().counts('caching', { total: 9, cached: 4 });
    kit.share('photos').mount = undefined;
    await kit.pass();
    assert.deepEqual(
      [kit.last().isStopped, kit.states(), kit.station.rules[0]?.counts.cached],
      [true, ['pending'], 4],
    );
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
    assert.deepEqual(
      [
        kit.station.rules.map(({ target }) => target.path),
        kit.last().order.path,
        kit.last().order.concurrency,
      ],
      [['2025'], '2025', 3],
    );
    kit.config.concurrency = 9;
    kit.station.configure();
    assert.deepEqual([kit.last().terms.concurrency, kit.last().isStopped], [9, false]);
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
    const former = new Map(
      tasks.map((task, index) => {
        const known = new Task(task.target, {
          state: index === 0 ? 'caching' : 'complete',
          counts: { ...task.counts, cached: 5 },
          isWanted: false,
          isFull: false,
        });
        return [known.key, known] as const;
      }),
    );
    const next = createKit(['photos'], kit.config.rules, { auto: false, former });
    assert.deepEqual(
      [next.states(), next.started.length, next.last().order.path],
      [['listing', 'complete'], 1, '2024'],
    );
    assert.equal(next.station.rules[1]?.counts.cached, 5);
    await next.station.close();
    assert.deepEqual([next.states(), next.station.rules[0]?.isWanted], [['pending', 'complete'], true]);
  });

  it('are joined by what somebody asks for, which is forgotten when the share is not', async () => {
    const kit = createKit(['photos'], [], { auto: false });
    kit.station.ask({ share: 'photos', path: 'x', newerThan: null, isDryRun: true });
    assert.deepEqual(
      [kit.last().order.isDryRun, kit.station.rules.length, kit.station.of('photos').length],
      [true, 0, 1],
    );
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
