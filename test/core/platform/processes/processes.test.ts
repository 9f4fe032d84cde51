import assert from 'node:assert/strict';
import { existsSync, statSync } from 'node:fs';
import { mkdir, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import type { ManagedProcess, ProcessSpec } from '../../../../core/contract/platform.ts';
import { isAlive, processesNaming } from '../../../support/platform/processes.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until, within } from '../../../support/platform/wait.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { unlessRoot } from '../../../runner/skips.ts';

const clock = createClock();
/** For what comes within milliseconds where nothing else runs: only a failure takes this long. */
const PATIENT_MS = 20_000;
const PATIENCE = { timeoutMs: PATIENT_MS };

describe('processes', () => {
  let scratch: Scratch;
  let count = 0;
  const { log, messages } = collectLog();
  before(async () => {
    scratch = await createScratch('processes');
  });
  after(() => scratch.close());

  /** A set of processes with a state folder of its own; whatever it started is ended with the test. */
  function open(stateDir = scratch.path(`state-${(count += 1)}`)) {
    const processes = createProcesses({ stateDir, clock, log });
    const start = async (spec: Partial<ProcessSpec>): Promise<ManagedProcess> => {
      const managed = await processes.start({
        key: 'mount/photos',
        command: 'sleep',
        args: ['600'],
        fingerprint: 'f',
        env: { SCRATCH: scratch.root },
        ...spec,
      });
      scratch.defer(() => managed.stop({ graceMs: 0 }));
      return managed;
    };
    return { processes, start, stateDir, folder: `${stateDir}/processes` };
  }

  const shell = (script: string): Pick<ProcessSpec, 'command' | 'args'> => ({
    command: 'sh',
    args: ['-c', script],
  });
  const records = async (folder: string): Promise<string[]> =>
    (await readdir(folder)).filter((name) => name.endsWith('.json'));

  it('starts a process in a session of its own, reading nothing, writing to its log file', async () => {
    const { start } = open();
    const managed = await start(
      shell(
        'echo out; echo err >&2; read x || echo no input; ls -l /proc/self/fd | tail -n +2 | wc -l; sleep 600',
      ),
    );
    const lines = await until(
      'output',
      async () => {
        const tail = await managed.tail(10);
        return tail.length >= 4 ? tail : undefined;
      },
      PATIENCE,
    );
    assert.deepEqual(lines.slice(0, 3), ['out', 'err', 'no input']);
    const fields = (await readFile(`/proc/${managed.pid}/stat`, 'latin1')).split(') ')[1]?.split(' ') ?? [];
    assert.equal(Number(fields[3]), managed.pid, 'leads its session');
    assert.ok(managed.isAlive());
    // Its last line is out before the shell has gone to sleep over `sleep`.
    await until('the shell waits', () => managed.state() === 'S', PATIENCE);
  });

  it('leaves no descriptor of the daemon or of the start open in the process', async () => {
    const { start } = open();
    const managed = await start({ command: 'sleep', args: ['600'] });
    const target = (pid: number | string, descriptor: string): Promise<string> =>
      readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => 'none');
    // It opens libraries at its start; what the test itself was started with goes down to everything.
    await until(
      'nothing is open beside the three',
      async () => {
        const descriptors = (await readdir(`/proc/${managed.pid}/fd`)).filter((one) => Number(one) > 2);
        const inherited = await Promise.all(
          descriptors.map(async (one) => (await target('self', one)) === (await target(managed.pid, one))),
        );
        return (
          (await readFile(`/proc/${managed.pid}/cmdline`, 'utf8')).split('\0')[1] === '600' &&
          inherited.every(Boolean)
        );
      },
      PATIENCE,
    );
    assert.equal(await target(managed.pid, '0'), '/dev/null');
    assert.equal(await target(managed.pid, '1'), managed.logFile);
  });

  it('gives it the variables it asked for and no others of the daemon', async () => {
    process.env['RCLONE_LEAK_TEST'] = 'leaked';
    try {
      const { start } = open();
      const managed = await start({ command: 'env', args: [], env: { GIVEN: 'a b' } });
      const { lastLines } = await managed.exited;
      assert.ok(lastLines.includes('GIVEN=a b'));
      const names = lastLines.map((line) => line.split('=')[0] ?? '');
      assert.deepEqual(
        names.filter((name) => !['PATH', 'HOME', 'LANG', 'TZ', 'GIVEN'].includes(name)),
        [],
      );
    } finally {
      delete process.env['RCLONE_LEAK_TEST'];
    }
  });

  it('tells the end at once, with exit code and last lines', async () => {
    const { start, folder } = open();
    const managed = await start(shell('for i in 1 2 3; do echo "line $i"; done; printf unfinished; exit 7'));
    const exit = await within('exit', PATIENT_MS, managed.exited);
    assert.deepEqual(exit, {
      code: 7,
      signal: null,
      lastLines: ['line 1', 'line 2', 'line 3', 'unfinished'],
    });
    assert.equal(managed.isAlive(), false);
    assert.equal(managed.state(), undefined);
    assert.deepEqual(await records(folder), []);
  });

  it('notices SIGKILL within a second', async () => {
    const { start } = open();
    const managed = await start({});
    // Told by this process's own beats: while it stands still, it can notice nothing.
    let beats = 0;
    const heart = setInterval(() => (beats += 1), 50);
    managed.signal('SIGKILL');
    const exit = await managed.exited.finally(() => clearInterval(heart));
    assert.equal(exit.signal, 'SIGKILL');
    assert.ok(beats < 20, `${beats} beats of 50 ms`);
  });

  it('gives the last lines of this run alone, out of a huge output', async () => {
    const { start } = open();
    await (
      await start(shell('echo former'))
    ).exited;
    const silent = await start(shell('true'));
    assert.deepEqual((await silent.exited).lastLines, []);
    const huge = await start(shell('seq 1000000; echo 照片'));
    const { lastLines } = await huge.exited;
    assert.deepEqual(lastLines.slice(-2), ['1000000', '照片']);
    assert.ok(lastLines.length <= 50);
  });

  it('sets a large log aside at the next start', async () => {
    const { start } = open();
    const first = await start(shell('head -c 3000000 /dev/zero | tr "\\0" x'));
    await first.exited;
    const second = await start(shell('echo new'));
    assert.deepEqual((await second.exited).lastLines, ['new']);
    assert.equal(statSync(second.logFile).size, 4);
    assert.equal(statSync(`${second.logFile}.1`).size, 3_000_000);
  });

  it('keeps records and logs for the owner alone', async () => {
    const { start, folder } = open();
    const managed = await start({ notes: { rcPass: 'hunter2' } });
    assert.equal(statSync(folder).mode & 0o777, 0o700);
    for (const name of await readdir(folder))
      assert.equal(statSync(`${folder}/${name}`).mode & 0o777, 0o600, name);
    assert.equal(existsSync(managed.logFile), true);
  });

  it('never writes the environment into the record', async () => {
    const { start, folder } = open();
    await start({ env: { SCRATCH: scratch.root, RCLONE_CONFIG_NAS_PASS: 'hunter2' } });
    const [name = ''] = await records(folder);
    assert.doesNotMatch(await readFile(`${folder}/${name}`, 'utf8'), /hunter2|RCLONE/);
  });

  it('says that a command was not found, and that it may not be executed', async () => {
    const { start, folder } = open();
    await assert.rejects(start({ command: 'no-such-command' }), {
      message: "command 'no-such-command' was not found",
    });
    await writeFile(scratch.path('plain'), 'x', { mode: 0o644 });
    await assert.rejects(start({ command: scratch.path('plain') }), {
      message: `command '${scratch.path('plain')}' may not be executed`,
    });
    assert.equal(existsSync(folder), false);
  });

  it('refuses a key whose process lives, and takes it again when that has ended', async () => {
    const { start } = open();
    const first = await start({});
    await assert.rejects(start({}), {
      message: `process ${first.pid} is still running for mount/photos; it must end before another can start`,
    });
    await first.stop({ graceMs: 1_000 });
    const second = await start({});
    assert.ok(second.isAlive());
  });

  it('starts one process only when a key is asked for twice at once', async () => {
    const { start } = open();
    const results = await Promise.allSettled([start({}), start({}), start({})]);
    assert.deepEqual(
      results.map((result) => result.status),
      ['fulfilled', 'rejected', 'rejected'],
    );
  });

  it('tells keys of any language apart', async () => {
    const { start, processes } = open();
    const keys = [
      'mount/照片',
      'mount/照 片',
      'mount/é',
      'mount/e\u0301',
      'mount/../../x',
      `mount/${'照'.repeat(63)}`,
      'mount/.',
      'mount/\ud800',
      'other/a',
    ];
    const started = await Promise.all(keys.map((key) => start({ key })));
    assert.equal(new Set(started.map((managed) => managed.logFile)).size, keys.length);
    assert.deepEqual([...(await processes.recorded('mount/'))].sort(), keys.slice(0, -1).sort());
    assert.equal((await processes.adopt('mount/照片'))?.pid, started[0]?.pid);
  });

  it('starts nothing when its record finds the disk full', { skip: unlessRoot }, async () => {
    const { processes, start, stateDir, folder } = open();
    await mkdir(stateDir);
    const mounted = await processes.run({
      command: 'mount',
      args: ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', stateDir],
      timeoutMs: PATIENT_MS,
    });
    assert.equal(mounted.code, 0, mounted.stderr);
    scratch.defer(() => processes.run({ command: 'umount', args: [stateDir], timeoutMs: PATIENT_MS }));
    await (
      await start(shell('true'))
    ).exited;
    await writeFile(`${stateDir}/filler`, Buffer.alloc(1_000_000)).catch(() => undefined);
    const marker = scratch.path('began');
    await assert.rejects(
      start(shell(`: > ${marker}; sleep 600`)),
      /the record of mount\/photos cannot be written, so it was not started: ENOSPC/,
    );
    await until('nothing runs', async () => (await processesNaming(marker)).length === 0, PATIENCE);
    assert.equal(existsSync(marker), false, 'the command never began');
    assert.deepEqual(
      (await readdir(folder)).filter((name) => !name.endsWith('.log')),
      [],
    );
    await rm(`${stateDir}/filler`);
    await (
      await start(shell('true'))
    ).exited;
  });

  it('stops with SIGTERM when that is heeded', async () => {
    const { start } = open();
    const managed = await start(
      shell('trap "echo bye; exit 0" TERM; echo ready; while :; do sleep 0.05; done'),
    );
    await until('ready', async () => (await managed.tail(1))[0] === 'ready', PATIENCE);
    const { code, lastLines } = await managed.stop({ graceMs: PATIENT_MS });
    assert.deepEqual([code, lastLines.at(-1)], [0, 'bye']);
  });

  it('kills the whole session when SIGTERM is not heeded', async () => {
    const { start } = open();
    const pidFile = scratch.path('grandchild');
    const managed = await start(
      shell(`trap "" TERM; sleep 601 & echo $! > ${pidFile}; while :; do sleep 0.05; done`),
    );
    const grandchild = Number(
      await until('grandchild', () => readFile(pidFile, 'utf8').then((text) => text.trim()), PATIENCE),
    );
    const exit = await within('stop', PATIENT_MS, managed.stop({ graceMs: 300 }));
    assert.equal(exit.signal, 'SIGKILL');
    await until('grandchild gone', () => !isAlive(grandchild), PATIENCE);
  });

  it('ends what a process leaves behind when the grace is over', async () => {
    const { start } = open();
    const pidFile = scratch.path('left');
    const managed = await start(
      shell(
        `trap 'exit 0' TERM; sh -c 'trap "" TERM; echo $$ > ${pidFile}; sleep 602; ` +
          "sleep 602' & while :; do sleep 0.05; done",
      ),
    );
    const left = Number(
      await until('left', () => readFile(pidFile, 'utf8').then((text) => text.trim()), PATIENCE),
    );
    const exit = await managed.stop({ graceMs: 3_000 });
    assert.equal(exit.code, 0);
    await until('left gone', () => !isAlive(left), PATIENCE);
  });

  it('ends a process that is stopped by SIGSTOP, by SIGTERM as by SIGKILL', async () => {
    const { start } = open();
    for (const graceMs of [PATIENT_MS + 10_000, 0]) {
      const managed = await start(shell('trap "exit 5" TERM; echo ready; while :; do sleep 0.05; done'));
      await until('ready', async () => (await managed.tail(1))[0] === 'ready', PATIENCE);
      managed.signal('SIGSTOP');
      await until('stopped', () => managed.state() === 'T', PATIENCE);
      assert.ok(managed.isAlive());
      const exit = await within('stop', PATIENT_MS, managed.stop({ graceMs }));
      assert.deepEqual([exit.code, exit.signal], graceMs > 0 ? [5, null] : [null, 'SIGKILL']);
    }
  });

  it('lets a second, impatient stop overtake the first', async () => {
    const { start } = open();
    const managed = await start(shell('trap "" TERM; echo ready; while :; do sleep 0.05; done'));
    await until('ready', async () => (await managed.tail(1))[0] === 'ready', PATIENCE);
    const patient = managed.stop({ graceMs: 60_000 });
    const impatient = managed.stop({ graceMs: 0 });
    assert.equal((await within('both', PATIENT_MS, Promise.all([patient, impatient])))[0].signal, 'SIGKILL');
    assert.equal((await managed.stop({ graceMs: 60_000 })).signal, 'SIGKILL', 'a stop after the end');
  });

  it('leaves a released process and its record alone', async () => {
    const { start, processes, folder } = open();
    const managed = await start({});
    processes.releaseAll();
    assert.ok(managed.isAlive());
    assert.equal((await records(folder)).length, 1);
    managed.signal('SIGKILL');
    await until('ended', () => !managed.isAlive(), PATIENCE);
    assert.equal((await records(folder)).length, 1);
    assert.equal(await processes.adopt('mount/photos'), undefined);
  });

  it('logged nothing that warns', () => {
    assert.deepEqual(
      messages().filter((message) => message !== 'process started'),
      [],
    );
  });
});
