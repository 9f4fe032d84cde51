import assert from 'node:assert/strict';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import type { Processes } from '../../../../core/contract/platform.ts';
import { unlessRoot } from '../../../runner/skips.ts';
import { processesNaming } from '../../../support/platform/processes.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until } from '../../../support/platform/wait.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

describe('run', () => {
  let scratch: Scratch;
  let processes: Processes;
  const clock = createClock();
  before(async () => {
    scratch = await createScratch('run');
    processes = createProcesses({ stateDir: scratch.path('state'), clock, log: collectLog().log });
  });
  after(() => scratch.close());

  it('gives output, exit code and signal without judging them', async () => {
    const result = await processes.run({
      command: 'sh',
      args: ['-c', 'cat; echo wrong >&2; exit 3'],
      input: 'grüße 照片',
      timeoutMs: 30_000,
    });
    assert.deepEqual(result, { code: 3, signal: null, stdout: 'grüße 照片', stderr: 'wrong\n' });
    const killed = await processes.run({ command: 'sh', args: ['-c', 'kill -9 $$'], timeoutMs: 30_000 });
    assert.deepEqual([killed.code, killed.signal], [null, 'SIGKILL']);
  });

  it('asks for the input once the command is ready, and never of one that ends before', async () => {
    let asked = 0;
    const input = (): string => `asked ${(asked += 1)}`;
    const said = async (script: string): Promise<string> =>
      (await processes.run({ command: 'sh', args: ['-c', script], input, timeoutMs: 30_000 })).stdout;
    assert.equal(await said('sleep 0.2; printf "ready, "; cat'), 'ready, asked 1');
    assert.equal(await said('exit 1'), '');
    assert.equal(asked, 1);
    const refuses = (): never => {
      throw new Error('not now');
    };
    const spec = { command: 'sh', args: ['-c', 'echo; cat'], input: refuses, timeoutMs: 30_000 };
    await assert.rejects(processes.run(spec), /not now/);
  });

  it(
    'leaves a command with the capabilities that were named, where that is possible',
    { skip: unlessRoot },
    async () => {
      const script = 'grep -E "^(CapEff|CapBnd|NoNewPrivs)" /proc/self/status; echo "$0 $*"; exit 4';
      const said = async (env?: Record<string, string>) =>
        processes.run({
          command: 'sh',
          args: ['-c', script, 'own', '--name', 'a b'],
          capabilities: ['dac_read_search'],
          timeoutMs: 30_000,
          ...(env && { env }),
        });
      const { code, stdout } = await said();
      const left = '0000000000000004';
      assert.deepEqual(
        [code, stdout.split('\n').sort()],
        [4, ['', `CapBnd:\t${left}`, `CapEff:\t${left}`, 'NoNewPrivs:\t1', 'own --name a b']],
      );
      await mkdir(scratch.path('bin'));
      await symlink('/usr/bin/grep', scratch.path('bin', 'grep'));
      await symlink('/bin/sh', scratch.path('bin', 'sh'));
      const withoutSetpriv = await said({ PATH: scratch.path('bin') });
      assert.equal(withoutSetpriv.code, 4);
      assert.doesNotMatch(withoutSetpriv.stdout, new RegExp(left));
    },
  );

  it('says that a command was not found', async () => {
    await assert.rejects(processes.run({ command: 'no-such-command', args: [], timeoutMs: 30_000 }), {
      message: "command 'no-such-command' was not found",
    });
    await assert.rejects(processes.run({ command: '/no/such', args: [], timeoutMs: 30_000 }), {
      message: "command '/no/such' was not found",
    });
    await writeFile(scratch.path('plain'), '', { mode: 0o644 });
    await assert.rejects(
      processes.run({ command: scratch.path('plain'), args: [], timeoutMs: 30_000 }),
      /may not be executed/,
    );
  });

  it('keeps the last bytes of each stream only', async () => {
    const result = await processes.run({
      command: 'sh',
      args: ['-c', 'head -c 30000000 /dev/zero | tr "\\0" a; echo end; seq 100000 >&2'],
      timeoutMs: 60_000,
      maxOutputBytes: 1_000,
    });
    assert.equal(result.stdout.length, 1_000);
    assert.ok(result.stdout.endsWith('aaaend\n'));
    assert.ok(result.stderr.endsWith('99999\n100000\n'));
    assert.equal(result.stderr.length, 1_000);
  });

  it('kills the whole process group at the deadline and does not wait for it', async () => {
    const start = clock.monotonic();
    const hanging = processes.run({
      command: 'sh',
      args: ['-c', 'trap "" TERM; sleep 61 & sleep 62'],
      env: { SCRATCH: scratch.root },
      timeoutMs: 200,
    });
    await assert.rejects(
      hanging,
      (error: Error) => error.name === 'TimeoutError' && error.message === 'sh did not end within 200 ms',
    );
    assert.ok(clock.monotonic() - start < 20_000);
    await until('its processes are gone', async () => (await processesNaming(scratch.root)).length === 0, {
      timeoutMs: 20_000,
    });
  });

  it('ends with the reason of the signal', async () => {
    const controller = new AbortController();
    const running = processes.run({
      command: 'sleep',
      args: ['60'],
      timeoutMs: 60_000,
      signal: controller.signal,
    });
    controller.abort(new Error('no longer wanted'));
    await assert.rejects(running, /no longer wanted/);
    await assert.rejects(
      processes.run({ command: 'sleep', args: ['60'], timeoutMs: 60_000, signal: controller.signal }),
      /no longer wanted/,
    );
  });

  it('does not wait for a descendant that keeps the pipes open', async () => {
    const start = clock.monotonic();
    const result = await processes.run({
      command: 'sh',
      args: ['-c', 'sleep 20 & echo done'],
      env: { SCRATCH: scratch.root },
      timeoutMs: 30_000,
    });
    assert.equal(result.stdout, 'done\n');
    assert.ok(clock.monotonic() - start < 15_000);
  });

  it('survives a command that does not read its input', async () => {
    const result = await processes.run({
      command: 'true',
      args: [],
      input: 'x'.repeat(10_000_000),
      timeoutMs: 30_000,
    });
    assert.equal(result.code, 0);
  });

  it("passes nothing of the daemon's environment but what every command needs", async () => {
    process.env['RCLONE_LEAK_TEST'] = 'leaked';
    try {
      const { stdout } = await processes.run({
        command: 'env',
        args: [],
        env: { GIVEN: 'yes' },
        timeoutMs: 30_000,
      });
      const names = stdout
        .trim()
        .split('\n')
        .map((line) => line.split('=')[0] ?? '');
      assert.ok(names.includes('GIVEN') && names.includes('PATH'));
      assert.deepEqual(
        names.filter((name) => !['PATH', 'HOME', 'LANG', 'TZ', 'GIVEN'].includes(name)),
        [],
      );
    } finally {
      delete process.env['RCLONE_LEAK_TEST'];
    }
  });
});
