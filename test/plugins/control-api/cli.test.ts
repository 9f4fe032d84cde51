import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../../core/testing/manual-clock.ts';
import controlApi from '../../../plugins/control-api/index.ts';
import { createApi } from '../../api/fixture.ts';
import type { ApiFixture } from '../../api/fixture.ts';
import { runCommand } from '../../api/cli.ts';
import type { CliOptions, RequestFunction } from '../../api/cli.ts';
import { stepUntil, turn } from '../../support/platform/wait.ts';

describe('the subcommands of the control API', () => {
  let api: ApiFixture;
  before(async () => {
    api = await createApi();
  });
  after(() => api.close());

  const request: RequestFunction = async (method, path, body) => {
    const answer = method === 'GET' ? await api.get(path) : await api.post(path, body);
    return { status: answer.status, body: answer.body };
  };
  const run = (args: readonly string[], options: Partial<CliOptions> = {}) =>
    runCommand(controlApi, args, { request, ...options });

  /** So many half seconds at the most, each after it has asked. */
  const passHalves = async (clock: ManualClock, count: number, isOver: () => boolean): Promise<void> => {
    for (let half = 0; half < count && !isOver(); half += 1) {
      await stepUntil('it waits or has ended', () => clock.pending > 0 || isOver(), turn);
      await clock.advance(500);
    }
    await stepUntil('it waits or has ended', () => clock.pending > 0 || isOver(), turn);
  };

  it('status shows a table and what it comes to', async () => {
    api.publish(
      [
        {
          name: '照片 2024',
          health: 'healthy',
          mounted: true,
          cacheBytes: 2048,
          dirtyCount: 3,
          erroredFiles: 1,
          speed: 1024,
        },
        { name: 'video', health: 'failed', healthMessage: 'the NAS does not answer' },
      ],
      { smbdRunning: true },
    );
    const { code, tables, printed } = await run(['status']);
    assert.equal(code, 0);
    assert.deepEqual(tables[0]?.slice(1), [
      ['照片 2024', 'healthy', 'yes', '2.0 KiB', '3', '1', '1.0 KiB/s', ''],
      ['video', 'failed', 'no', '0 B', '0', '0', '0 B/s', 'the NAS does not answer'],
    ]);
    assert.match(printed.join('\n'), /Not all synced yet\. Exposed over SMB\./);
  });

  it("status --json shows the API's own answer", async () => {
    api.publish([]);
    const { code, printed } = await run(['status'], { json: true });
    assert.equal(code, 0);
    assert.deepEqual(JSON.parse(printed[0] ?? ''), (await api.get('/api/status')).json());
  });

  it('wait returns once all is synced and shows what is left until then', async () => {
    const clock = createManualClock();
    api.publish([
      { name: 'photos', dirtyCount: 2, health: 'healthy' },
      { name: 'b', dirtyCount: 1, health: 'failed' },
    ]);
    let asked = 0;
    const counting: RequestFunction = async (...call) => {
      const answer = await request(...call);
      asked += 1;
      return answer;
    };
    let finished = false;
    const waiting = run(['wait', '--synced'], { clock, request: counting }).finally(() => (finished = true));
    await stepUntil('it has asked', () => asked > 0, turn);
    await passHalves(clock, 10, () => finished);
    api.publish([], { allSynced: true });
    await passHalves(clock, 1, () => finished);
    const { code, progress, printed } = await waiting;
    assert.deepEqual(
      [code, new Set(progress), printed],
      [0, new Set(['3 files left (photos 2, b 1) not reachable: b']), ['All synced.']],
    );
  });

  it('wait does not take a status from before it began for the truth', async () => {
    const clock = createManualClock();
    api.publish([], { allSynced: true });
    let finished = false;
    const waiting = run(['wait', '--synced'], { clock }).finally(() => (finished = true));
    for (let second = 0; second < 4; second += 1) {
      await stepUntil('it waits', () => clock.pending > 0, turn);
      assert.equal(finished, false);
      await clock.advance(500);
    }
    api.publish([{ name: 'photos', dirtyCount: 1, health: 'healthy' }], { allSynced: false });
    await stepUntil('it waits', () => clock.pending > 0, turn);
    await clock.advance(60_000);
    await stepUntil('it waits', () => clock.pending > 0, turn);
    assert.equal(finished, false);
    api.publish([], { allSynced: true });
    await clock.advance(1_000);
    assert.deepEqual([(await waiting).code, finished], [0, true]);
  });

  it('wait does not take it for the end that some files were seen to wait, and others came after', async () => {
    const clock = createManualClock();
    api.publish([{ name: 'photos', dirtyCount: 1, health: 'healthy' }], { allSynced: false });
    let finished = false;
    const waiting = run(['wait', '--synced'], { clock }).finally(() => (finished = true));
    await passHalves(clock, 2, () => finished);
    // Asked before another file was written, and told after.
    api.publish([{ name: 'photos', health: 'healthy' }], { allSynced: true });
    await passHalves(clock, 3, () => finished);
    assert.equal(finished, false);
    api.publish([{ name: 'photos', dirtyCount: 1, health: 'healthy' }], { allSynced: false });
    await passHalves(clock, 20, () => finished);
    assert.equal(finished, false);
    api.publish([{ name: 'photos', health: 'healthy' }], { allSynced: true });
    await passHalves(clock, 1, () => finished);
    assert.deepEqual([(await waiting).code, finished], [0, true]);
  });

  it('wait does not take an answer for a new one that was long on its way', async () => {
    const clock = createManualClock();
    api.publish([], { allSynced: true });
    let [finished, asked] = [false, 0];
    const slow: RequestFunction = async (...call) => {
      asked += 1;
      const answer = await request(...call);
      if (asked === 2) await clock.sleep(6_000);
      return answer;
    };
    const waiting = run(['wait', '--synced'], { clock, request: slow }).finally(() => (finished = true));
    await passHalves(clock, 20, () => finished);
    assert.deepEqual([(await waiting).code, asked], [0, 3]);
  });

  it('wait does not take it for news of files that a share is up at last', async () => {
    const clock = createManualClock();
    api.publish([{ name: 'photos', health: 'pending' }], { allSynced: false });
    let finished = false;
    const waiting = run(['wait', '--synced'], { clock }).finally(() => (finished = true));
    await stepUntil('it waits', () => clock.pending > 0, turn);
    api.publish([{ name: 'photos', health: 'healthy' }], { allSynced: true });
    for (let half = 0; half < 4; half += 1) {
      await clock.advance(500);
      await stepUntil('it waits', () => clock.pending > 0, turn);
      assert.equal(finished, false);
    }
    for (let half = 0; half < 20 && !finished; half += 1) {
      await clock.advance(500);
      await stepUntil('it waits or has ended', () => clock.pending > 0 || finished, turn);
    }
    assert.equal((await waiting).code, 0);
  });

  it('wait does not count the time in which the daemon gave no answer, and thus may not have looked', async () => {
    const clock = createManualClock();
    api.publish([], { allSynced: true });
    let finished = false;
    let answer = (): void => undefined;
    const stood = new Promise<void>((resolve) => (answer = resolve));
    const late: RequestFunction = async (...call) => {
      if (call[1] === '/api/status') await stood;
      return request(...call);
    };
    const waiting = run(['wait', '--synced'], { clock, request: late }).finally(() => (finished = true));
    await clock.advance(60_000);
    answer();
    await stepUntil('it waits or has ended', () => clock.pending > 0 || finished, turn);
    assert.equal(finished, false);
    for (let half = 0; half < 20 && !finished; half += 1) {
      await stepUntil('it waits or has ended', () => clock.pending > 0 || finished, turn);
      await clock.advance(500);
    }
    assert.equal((await waiting).code, 0);
  });

  it('wait exits with 75 when time runs out', async () => {
    api.publish([{ name: 'photos', dirtyCount: 1, health: 'healthy' }], { allSynced: false });
    const { code, errors, printed } = await run(['wait', '--synced', '--timeout', '0'], { json: true });
    assert.equal(code, 75);
    assert.match(errors[0] ?? '', /1 file left \(photos 1\)/);
    assert.deepEqual(printed, ['{"synced":false}']);
  });

  it('wait says so when the time is too short to be sure of what seems to be synced', async () => {
    api.publish([], { allSynced: true });
    const { code, errors } = await run(['wait', '--synced', '--timeout', '0']);
    assert.equal(code, 75);
    assert.match(errors[0] ?? '', /nothing is known to be left, but .*wait longer/);
  });

  it('bwlimit without rates shows what holds now', async () => {
    assert.deepEqual((await run(['bwlimit'])).tables[0], [
      ['', 'up', 'down'],
      ['limit', '8.0 MiB/s', 'unlimited'],
      ['holds now', '4.0 MiB/s', 'unlimited'],
      ['photos', '4.0 MiB/s', 'unlimited'],
    ]);
    assert.deepEqual(
      JSON.parse((await run(['bwlimit'], { json: true })).printed[0] ?? ''),
      (await api.get('/api/bwlimit')).json(),
    );
  });

  it('reconnect and bwlimit send their commands and report the answer', async () => {
    api.sent.length = 0;
    assert.deepEqual((await run(['reconnect', '照片 2024'])).printed, ["Reconnecting share '照片 2024'"]);
    assert.deepEqual((await run(['bwlimit', '10M', '0'])).printed, ['Bandwidth limit updated']);
    assert.deepEqual(
      api.sent.map(({ command, args }) => [command, ...args]),
      [
        ['reconnect', '照片 2024'],
        ['bwlimit', { up: '10M', down: '0' }],
      ],
    );
    const unknown = await run(['reconnect', 'nope']);
    assert.deepEqual([unknown.code, unknown.errors], [1, ["Share 'nope' not found"]]);
    const json = await run(['reconnect', 'nope'], { json: true });
    assert.deepEqual(
      [json.code, JSON.parse(json.printed[0] ?? '')],
      [1, { ok: false, message: "Share 'nope' not found" }],
    );
  });

  it('exit with 64 for what they do not understand, and send nothing', async () => {
    api.sent.length = 0;
    const wrong = [
      ['status', 'x'],
      ['wait'],
      ['wait', '--synced', '--timeout', 'soon'],
      ['wait', '--nonsense'],
      ['reconnect'],
      ['reconnect', 'a', 'b'],
      ['bwlimit', '1M'],
      ['bwlimit', 'fast', '0'],
    ];
    for (const args of wrong) {
      const { code, errors } = await run(args);
      assert.deepEqual([code, errors.length], [64, 1], args.join(' '));
    }
    assert.deepEqual(api.sent, []);
  });

  it('say what the daemon answered when it is not what was asked for', async () => {
    const starting: RequestFunction = async () => ({
      status: 503,
      body: '{"message":"The plugin is just starting."}',
    });
    await assert.rejects(run(['status'], { request: starting }), /just starting/);
    assert.deepEqual(
      (await run(['reconnect', 'a'], { request: async () => ({ status: 502, body: '<html>' }) })).errors,
      ['the daemon answered with status 502'],
    );
  });
});
