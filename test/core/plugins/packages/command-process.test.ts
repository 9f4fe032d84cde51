/** How a command of its own process ends: by itself, asked to, killed with all that it has started, never too late. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { runProgram } from '../../../../core/plugins/packages/command-process.ts';
import type { CommandEnd } from '../../../../core/plugins/packages/command-process.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { allProcesses } from '../../../support/platform/processes.ts';
import { until, within } from '../../../support/platform/wait.ts';

const WAIT = { timeoutMs: 20_000 };
const REASON = new Error('the daemon was stopped');

/** What a script of `sh` says beside its answer tells that it has come so far. */
function begin(t: TestContext, script: string, program = '/bin/sh') {
  const clock = createManualClock();
  const over = new AbortController();
  const lines: string[] = [];
  const options = { clock, signal: over.signal, said: (line: string) => void lines.push(line) };
  const ended: Promise<CommandEnd> = within(
    'it has ended',
    WAIT.timeoutMs,
    runProgram([program, '-c', script], options),
  );
  ended.catch(() => undefined);
  t.after(async () => {
    over.abort(REASON);
    await clock.advance(12_000);
    await ended.catch(() => undefined);
  });
  const said = (line: RegExp) => until(`it says ${line}`, () => lines.find((one) => line.test(one)), WAIT);
  return { clock, ended, lines, said, end: () => over.abort(REASON) };
}

describe('a command in a process of its own', () => {
  it('gives its answer, what it said, and its code', async (t) => {
    const { ended, lines } = begin(t, 'echo answer; echo one >&2; echo two >&2; exit 3');
    assert.deepEqual(await ended, { code: 3, stdout: 'answer\n', stderr: 'one\ntwo\n' });
    assert.equal(lines.at(-1), 'two');
    assert.equal((await begin(t, 'exit 0').ended).code, 0);
    assert.equal((await begin(t, 'kill -9 $$').ended).code, null, 'killed by somebody else');
  });

  it('says so where it cannot be started', async (t) => {
    await assert.rejects(begin(t, '', '/nowhere/program').ended, /^Error: the command could not be started$/);
  });

  it('is kept the end of, whatever it says', async (t) => {
    const flood = (bytes: number): string => `head -c ${bytes} /dev/zero | tr '\\0' x`;
    const { ended } = begin(t, `${flood(3_000_000)}; echo answer; ${flood(200_000)} >&2; echo said >&2`);
    const { stdout, stderr } = await ended;
    assert.deepEqual([stdout.length, stderr.length], [1_048_576, 16_384]);
    assert.deepEqual([stdout.endsWith('xanswer\n'), stderr.endsWith('xsaid\n')], [true, true]);
  });

  it('is asked to end, and has failed then, in the words of who ended it', async (t) => {
    const { ended, said, end } = begin(t, "trap 'exit 1' TERM; echo up >&2; while :; do sleep 0.05; done");
    await said(/up/);
    end();
    await assert.rejects(ended, REASON);
  });

  it('has not failed where it was through when it was ended', async (t) => {
    const script = "trap 'echo answer; exit 0' TERM; echo up >&2; while :; do sleep 0.05; done";
    const { ended, said, end } = begin(t, script);
    await said(/up/);
    end();
    assert.deepEqual(await ended, { code: 0, stdout: 'answer\n', stderr: 'up\n' });
  });

  it('is killed with all that it has started, where it does not end', async (t) => {
    const { clock, ended, said, end } = begin(t, 'trap "" TERM; sleep 30 & echo "$$ $!" >&2; wait');
    const pids = (await said(/^\d+ \d+$/)).split(' ').map(Number);
    const living = async (): Promise<number> =>
      (await allProcesses()).filter(({ pid }) => pids.includes(pid)).length;
    end();
    await clock.advance(11_000);
    assert.equal(await living(), 2);
    await clock.advance(1_000);
    await assert.rejects(ended, REASON);
    await until('both are gone', async () => (await living()) === 0, WAIT);
  });

  it('leaves nothing that keeps its output open behind', async (t) => {
    const script = 'trap "exit 1" TERM; (trap "" TERM; sleep 30) & echo up >&2; while :; do sleep 0.05; done';
    const { clock, ended, said, end } = begin(t, script);
    await said(/up/);
    end();
    await clock.advance(12_000);
    await assert.rejects(ended, REASON);
  });

  it('is ended where it takes too long, and never started once all is over', async (t) => {
    const { clock, ended, said, end } = begin(t, 'echo up >&2; exec sleep 30');
    await said(/up/);
    await clock.advance(900_000);
    await assert.rejects(ended, /the command did not end in time/);
    end();
    const lines: string[] = [];
    const late = { clock, signal: AbortSignal.abort(REASON), said: (line: string) => void lines.push(line) };
    await assert.rejects(runProgram(['/bin/sh', '-c', 'echo up >&2'], late), REASON);
    assert.deepEqual(lines, []);
  });
});
