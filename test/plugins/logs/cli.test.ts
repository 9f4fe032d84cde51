import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from '../../../core/testing/manual-clock.ts';
import logs from '../../../plugins/logs/index.ts';
import { runCommand } from '../../api/cli.ts';
import type { RequestFunction } from '../../api/cli.ts';

/** Answers as the endpoint does, out of lines that a test may change. */
function endpoint(log: { lines: string[] }): RequestFunction {
  return async (_method, path) => {
    const query = new URL(path, 'http://x').searchParams;
    const lines = Number(query.get('lines'));
    const from = Number(query.get('from_line'));
    const skip = from === 0 ? Math.max(log.lines.length - lines, 0) : from;
    return {
      status: 200,
      body: JSON.stringify({ total_lines: log.lines.length, entries: log.lines.slice(skip, skip + lines) }),
    };
  };
}

describe('mountkeeper logs', () => {
  it('shows the last lines', async () => {
    const request = endpoint({ lines: ['a', 'b', 'c'] });
    const run = await runCommand(logs, ['logs', '--lines', '2'], { request });
    assert.deepEqual([run.code, run.printed, run.errors], [0, ['b', 'c'], []]);
    assert.deepEqual((await runCommand(logs, ['logs'], { request, json: true })).printed, [
      '"a"',
      '"b"',
      '"c"',
    ]);
  });

  it('says where to look when there is nothing', async () => {
    const run = await runCommand(logs, ['logs'], { request: endpoint({ lines: [] }) });
    assert.equal(run.code, 0);
    assert.match(run.errors[0] ?? '', /log\.file/);
  });

  it('follows what is appended, and what comes after a rotation', async () => {
    const log = { lines: ['a'] };
    const clock = createManualClock();
    const stop = new AbortController();
    const steps = [
      () => log.lines.push('b', 'c'),
      () => undefined,
      () => (log.lines = ['new']),
      () => (log.lines = []),
      () => log.lines.push('again'),
      () => stop.abort(),
    ];
    const answer = endpoint(log);
    const printedAfter = runCommand(logs, ['logs', '-f'], {
      request: (...call) => answer(...call),
      clock,
      signal: stop.signal,
    });
    for (const step of steps) {
      await clock.advance(0);
      step();
      await clock.advance(1_000);
    }
    assert.deepEqual((await printedAfter).printed, ['a', 'b', 'c', 'new', 'again']);
  });

  it('ends well when it is interrupted in the middle of a question, and says what went wrong otherwise', async () => {
    const clock = createManualClock();
    for (const isInterrupted of [true, false]) {
      const stop = new AbortController();
      const answer = endpoint({ lines: ['a'] });
      let asked = 0;
      const request: RequestFunction = async (...call) => {
        asked += 1;
        if (asked === 1) return answer(...call);
        if (isInterrupted) stop.abort(new Error('interrupted'));
        throw new Error('interrupted');
      };
      const run = runCommand(logs, ['logs', '-f'], { request, clock, signal: stop.signal });
      const end = isInterrupted
        ? run.then(({ code, errors }) => assert.deepEqual([code, errors], [0, []]))
        : assert.rejects(run, /interrupted/);
      await clock.advance(0);
      await clock.advance(1_000);
      await end;
    }
  });

  it('exits with 64 for what it does not understand', async () => {
    for (const args of [['--lines', 'x'], ['--lines'], ['--nonsense'], ['word']]) {
      const run = await runCommand(logs, ['logs', ...args], { request: endpoint({ lines: [] }) });
      assert.deepEqual([run.code, run.errors.length], [64, 1], args.join(' '));
    }
  });
});
