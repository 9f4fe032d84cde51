/** What a supervisor makes of a process that it cannot begin, and of what it says. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Runner, RunnerOptions } from '../../../../../core/plugins/runner/process/runner-process.ts';
import type { Crashes } from '../../../../../core/plugins/runner/process/runner-supervisor.ts';
import type { ToRunner } from '../../../../../core/plugins/runner/protocol.ts';
import { createManualClock } from '../../../../../core/testing/manual-clock.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { turn, until } from '../../../../support/platform/wait.ts';
import { supervisorOf } from '../../../../support/plugins/supervised-runner.ts';

const places = { entry: '/odd.js', folder: '/', stateDir: '/', packageDir: '/', name: 'odd' };

/** A supervisor over processes that are none. */
function supervised(config: () => object = () => ({}), send: () => Promise<void> = async () => undefined) {
  const clock = createManualClock();
  const { log, entries, messages } = collectLog();
  const [crashes, absences, sent]: [Crashes, (string | undefined)[], ToRunner[]] = [[], [], []];
  const runners: RunnerOptions[] = [];
  const socket = { isFull: false };
  const launch = (options: RunnerOptions): Runner => {
    runners.push(options);
    return {
      hasOurNetwork: false,
      send: (message) => {
        if (!socket.isFull) sent.push(message);
        return !socket.isFull;
      },
      call: () => new Promise(() => undefined),
      end: async () => options.onEnd(undefined),
      kill: (reason) => options.onEnd({ reason }),
    };
  };
  const late: (readonly string[])[] = [];
  const givenUp: string[] = [];
  const supervisor = supervisorOf(
    { log, send },
    { ...places, permissions: ['send-commands'] },
    {
      clock,
      config,
      launch,
      crashes,
      onAbsence: (why) => void absences.push(why),
      onGivenUp: (reason) => void givenUp.push(reason),
      onLate: (lines) => void late.push(lines),
    },
  );
  /** Before it is started, it is looked at what its plugin keeps. */
  const launched = (index: number): Promise<RunnerOptions> =>
    until('it is launched', () => runners[index], { timeoutMs: 5_000 });
  /** The first one, once it is up. */
  const up = async (): Promise<RunnerOptions> => {
    const started = supervisor.start();
    const runner = await launched(0);
    runner.onMessage({ is: 'up' });
    await started;
    return runner;
  };
  return {
    up,
    launched,
    late,
    supervisor,
    clock,
    runners,
    crashes,
    absences,
    givenUp,
    sent,
    entries,
    messages,
    socket,
  };
}

describe('a process of a plugin', () => {
  it('tells which of its runs takes long, on short lines and few, and no more once it has ended', async () => {
    const { supervisor, launched, late } = supervised();
    const started = supervisor.start();
    const runner = await launched(0);
    const say = (message: object): void => runner.onMessage(message as never);
    say({ is: 'up' });
    await started;
    const state = { is: 'state', status: [], shareStatus: [], metrics: [] };
    say({
      ...state,
      late: ['one', 7, `two\n${'x'.repeat(1_000)}`, ...Array.from({ length: 20 }, () => 'more')],
    });
    say({ ...state, late: 'nonsense' });
    say(state);
    say({ ...state, late: ['one'] });
    runner.onEnd({ reason: 'it fell over' });
    assert.deepEqual(
      late.map((lines) => lines.map((line) => line.slice(0, 5))),
      [['one', 'two x', 'more', 'more'], [], [], ['one'], []],
    );
    assert.equal(late[0]?.[1]?.length, 300);
    await supervisor.stop('shutdown');
  });

  it('that cannot be told what to run, since that is too long, is no crash of the plugin', async () => {
    let config: object = {};
    const { up, supervisor, clock, runners, launched, crashes, absences } = supervised(() => config);
    const runner = await up();
    config = { long: 'x'.repeat(2_000_000) };
    runner.onEnd({ reason: 'it fell over' });
    for (let time = 0; time < 5; time += 1) {
      const { length } = absences;
      await clock.advance(10_000);
      await until('it was tried', () => absences.length > length, { timeoutMs: 5_000 });
    }
    assert.deepEqual([crashes.length, runners.length], [1, 1]);
    assert.match(
      absences.at(-1) ?? '',
      /^it cannot be told what to run: it is larger than .*; that is tried again after 10 s$/,
    );
    config = {};
    await clock.advance(10_000);
    (await launched(1)).onMessage({ is: 'up' });
    assert.deepEqual([supervisor.isUp, crashes.length, absences.at(-1)], [true, 1, undefined]);
    await supervisor.stop('shutdown');
  });

  it('is answered in few words, whatever it asks to be sent, and only where it says by what number', async () => {
    const { supervisor, launched, sent, entries } = supervised();
    const started = supervisor.start();
    const runner = await launched(0);
    const say = (message: object): void => runner.onMessage(message as never);
    say({ is: 'up' });
    await started;
    const { length } = sent;
    say({ is: 'send', id: 1, command: '\u{fffd}'.repeat(530_000), args: [] });
    say({ is: 'send', id: 2, command: { toString: 1 }, args: [] });
    say({ is: 'send', id: { toString: 1 }, command: 'reconnect', args: ['photos'] });
    say({ is: 'send', id: 3, command: 'reconnect', args: ['photos'] });
    await turn();
    const answers = sent
      .slice(length)
      .map((one) => one as { readonly id: unknown; readonly problem?: string });
    assert.deepEqual(
      answers.map(({ id, problem = '' }) => [id, problem.length < 300 ? problem.length > 0 : 'long']),
      [
        [1, true],
        [2, true],
        [3, false],
      ],
    );
    assert.deepEqual(entries, []);
    await supervisor.stop('shutdown');
  });

  it('is told what is so then once it reads again what it could not take, and nothing twice', async () => {
    let config: object = { beds: 1 };
    const { up, supervisor, clock, sent, socket } = supervised(() => config);
    await up();
    sent.length = 0;
    socket.isFull = true;
    for (const beds of [2, 3]) {
      config = { beds };
      supervisor.send({ is: 'config', config });
    }
    await clock.advance(5_000);
    assert.deepEqual(sent, []);
    config = { beds: 4 };
    socket.isFull = false;
    await clock.advance(5_000);
    assert.deepEqual(sent, [{ is: 'config', config: { beds: 4 } }]);
    socket.isFull = true;
    supervisor.send({ is: 'world', world: {} });
    await clock.advance(9_000);
    assert.equal(supervisor.isUp, true, 'the time begins anew');
    await supervisor.stop('shutdown');
  });

  it('is given up by its third end within an hour; what was longer ago does not count', async () => {
    const { up, supervisor, clock, launched, absences, givenUp, runners } = supervised();
    await up();
    /** The one that runs ends; where another is started, it comes up at once. */
    const end = async (): Promise<void> => {
      const count = runners.length;
      runners[count - 1]?.onEnd({ reason: 'it fell over' });
      const wait = /started anew after (\d+) s$/.exec(absences.at(-1) ?? '')?.[1];
      if (wait === undefined) return;
      await clock.advance(Number(wait) * 1_000);
      (await launched(count)).onMessage({ is: 'up' });
    };
    await end();
    await clock.advance(30 * 60_000);
    await end();
    // The first one is an hour and some seconds old now.
    await clock.advance(30 * 60_000);
    await end();
    assert.deepEqual([givenUp, supervisor.isUp], [[], true]);
    assert.ok(absences.some((why) => why?.endsWith('it is started anew after 10 s')));
    // The second one is not.
    await clock.advance(29 * 60_000);
    await end();
    const sentence = 'its process ended 3 times within an hour, at last because it fell over';
    assert.deepEqual([givenUp, absences.at(-1)], [[sentence], sentence]);
    await supervisor.stop('shutdown');
  });

  it('is ended where it reads nothing for long, however much it says', async () => {
    const { up, supervisor, clock, launched, crashes, absences, socket } = supervised();
    const runner = await up();
    socket.isFull = true;
    for (let second = 0; second < 10; second += 1) {
      supervisor.send({ is: 'world', world: {} });
      assert.equal(supervisor.isUp, true);
      runner.onMessage({ is: 'log', level: 'info', message: 'here', fields: {} });
      await clock.advance(1_000);
    }
    assert.equal(
      absences.at(-1),
      'its process ended (it has not read what it is told for 10 s); it is started anew after 1 s',
    );
    assert.equal(crashes.length, 1);
    socket.isFull = false;
    await clock.advance(1_000);
    (await launched(1)).onMessage({ is: 'up' });
    await clock.advance(20_000);
    assert.deepEqual([supervisor.isUp, crashes.length], [true, 1], 'the next one starts afresh');
    await supervisor.stop('shutdown');
  });

  it('is answered once it reads again what it has sent meanwhile, each command once', async () => {
    const { up, supervisor, clock, sent, socket } = supervised();
    const runner = await up();
    sent.length = 0;
    socket.isFull = true;
    runner.onMessage({ is: 'send', id: 1, command: 'reconnect', args: ['photos'] });
    runner.onMessage({ is: 'send', id: 2, command: 'nonsense', args: [] });
    await clock.advance(5_000);
    assert.equal(sent.length, 0);
    socket.isFull = false;
    await clock.advance(5_000);
    assert.deepEqual(
      sent.toSorted((one, other) => Number('id' in one && one.id) - Number('id' in other && other.id)),
      [
        { is: 'answer', id: 1 },
        {
          is: 'answer',
          id: 2,
          problem: 'ctx.send("nonsense") cannot be carried out of a process of its own',
        },
      ],
    );
    socket.isFull = true;
    runner.onMessage({ is: 'send', id: 3, command: 'reconnect', args: ['photos'] });
    await clock.advance(9_000);
    assert.equal(supervisor.isUp, true, 'the time begins anew');
    await clock.advance(2_000);
    assert.equal(supervisor.isUp, false, 'who never hears the answer is ended');
    await supervisor.stop('shutdown');
  });

  it('is given no answer to what the process before it has sent', async () => {
    let done = (): void => undefined;
    const { up, supervisor, clock, launched, sent } = supervised(
      undefined,
      () => new Promise((resolve) => (done = resolve)),
    );
    const first = await up();
    first.onMessage({ is: 'send', id: 1, command: 'reconnect', args: ['photos'] });
    first.onEnd({ reason: 'it fell over' });
    await clock.advance(1_000);
    (await launched(1)).onMessage({ is: 'up' });
    sent.length = 0;
    done();
    await turn();
    assert.deepEqual(sent, [], 'it may wait for an answer of that number itself');
    await supervisor.stop('shutdown');
  });

  it('costs little when it sends notifications of any size, however often', async () => {
    const { up, supervisor, sent } = supervised();
    const runner = await up();
    const { length } = sent;
    const data = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`key${index}`, index]));
    const event = { type: 'odd', severity: 'info', message: 'x', key: 'k' };
    const from = process.cpuUsage();
    for (let id = 0; id < 10; id += 1)
      runner.onMessage({ is: 'send', id, command: 'notify', args: [{ ...event, data }] });
    for (let id = 10; id < 20; id += 1)
      runner.onMessage({ is: 'send', id, command: 'notify', args: [{ ...event, data: { odd: {} } }] });
    runner.onMessage({ is: 'send', id: 20, command: 'notify', args: [] });
    await turn();
    const { user, system } = process.cpuUsage(from);
    // 2 s before.
    assert.ok(user + system < 700_000, `${(user + system) / 1_000} ms`);
    const answers = sent.slice(length).map((one) => String((one as { readonly problem?: string }).problem));
    assert.equal(answers.length, 21);
    assert.match(answers[0] ?? '', /was given what cannot be sent: holds more than 300 values/);
    assert.match(answers[10] ?? '', /"\[0\].data.odd" must be one of/);
    assert.match(answers[20] ?? '', /comes too often/, 'what was refused counts as well');
    await supervisor.stop('shutdown');
  });
});
