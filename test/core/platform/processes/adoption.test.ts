import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createClock } from '../../../../core/platform/clock.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import type { ProcessRecord } from '../../../../core/platform/processes/record.ts';
import type { ManagedProcess, ProcessSpec } from '../../../../core/contract/platform.ts';
import { isAlive, processesNaming } from '../../../support/platform/processes.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { until, within } from '../../../support/platform/wait.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const DAEMON = fileURLToPath(new URL('../../../support/platform/doomed-daemon.js', import.meta.url));
const KEY = 'mount/照片';
const clock = createClock();

describe('adoption', () => {
  let scratch: Scratch;
  let count = 0;
  before(async () => {
    scratch = await createScratch('adoption');
  });
  after(() => scratch.close());

  const spec = (given: Partial<ProcessSpec> = {}): ProcessSpec => ({
    key: KEY,
    command: 'sleep',
    args: ['600'],
    fingerprint: 'f1',
    env: { SCRATCH: scratch.root },
    ...given,
  });
  const shell = (script: string): Partial<ProcessSpec> => ({ command: 'sh', args: ['-c', script] });
  const newState = (): string => scratch.path(`state-${(count += 1)}`);

  function startDaemon(
    stateDir: string,
    specs: readonly ProcessSpec[],
  ): { child: ChildProcess; line: () => Promise<string> } {
    const child = spawn(process.execPath, [DAEMON, stateDir, JSON.stringify(specs)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    return { child, line: async () => String((await lines.next()).value) };
  }

  async function kill(child: ChildProcess): Promise<void> {
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** Starts processes from a daemon that is then killed. */
  async function orphans(stateDir: string, ...specs: ProcessSpec[]): Promise<number[]> {
    const { child, line } = startDaemon(stateDir, specs);
    await line();
    const pids = JSON.parse(await line()) as number[];
    await kill(child);
    return pids;
  }

  function open(stateDir: string) {
    const { log, messages } = collectLog();
    const processes = createProcesses({ stateDir, clock, log });
    const adopt = async (key = KEY): Promise<ManagedProcess | undefined> => {
      const adopted = await processes.adopt(key);
      if (adopted !== undefined) scratch.defer(() => adopted.stop({ graceMs: 0 }));
      return adopted;
    };
    return { processes, adopt, messages };
  }

  async function recordFile(stateDir: string): Promise<string> {
    const names = (await readdir(`${stateDir}/processes`)).filter((name) => name.endsWith('.json'));
    assert.equal(names.length, 1);
    return `${stateDir}/processes/${names[0]}`;
  }

  async function change(
    stateDir: string,
    changes: Partial<Record<keyof ProcessRecord, unknown>>,
  ): Promise<void> {
    const file = await recordFile(stateDir);
    await writeFile(
      file,
      JSON.stringify({ ...(JSON.parse(await readFile(file, 'utf8')) as ProcessRecord), ...changes }),
    );
  }

  it('keeps its lock on a folder when its daemon is killed, and lets go when it ends itself', async () => {
    const lock = { folder: scratch.path('locked'), taken: 'somebody else has it' };
    await mkdir(lock.folder);
    const stateDir = newState();
    await orphans(stateDir, spec({ lock }));
    const other = open(newState());
    await assert.rejects(other.processes.start(spec({ lock })), { message: 'somebody else has it' });
    assert.equal(await other.adopt(), undefined, 'nothing was started');
    await (await open(stateDir).adopt())?.stop({ graceMs: 0 });
    const started = await other.processes.start(spec({ lock }));
    await started.stop({ graceMs: 0 });
  });

  it('leaves the process at work when the daemon is killed, and gives it to the next', async () => {
    const stateDir = newState();
    const [pid = 0] = await orphans(
      stateDir,
      spec({
        ...shell('i=0; while :; do i=$((i+1)); echo "tick $i" || exit 9; sleep 0.02; done'),
        notes: { rcPort: 5572, rcPass: 'x' },
      }),
    );
    const { adopt, processes } = open(stateDir);
    const adopted = await adopt();
    assert.equal(adopted?.pid, pid);
    assert.equal(adopted.adopted, true);
    assert.deepEqual([adopted.fingerprint, adopted.notes], ['f1', { rcPort: 5572, rcPass: 'x' }]);
    assert.deepEqual(await processes.recorded('mount/'), [KEY]);
    const before = (await adopted.tail(1))[0];
    await until('it writes on', async () => (await adopted.tail(1))[0] !== before, { timeoutMs: 20_000 });
    assert.equal(await processes.adopt(KEY), adopted, 'the same when asked again');
    await assert.rejects(processes.start(spec()), /is still running for mount\/照片/);
  });

  it('notices the end of an adopted process within a second and removes its record', async () => {
    const stateDir = newState();
    const [pid = 0] = await orphans(stateDir, spec(shell('echo last words; sleep 600')));
    const { adopt, processes } = open(stateDir);
    const adopted = await adopt();
    await until('it has spoken', async () => (await adopted?.tail(1))?.[0] === 'last words', {
      timeoutMs: 20_000,
    });
    process.kill(pid, 'SIGKILL');
    // Told by this process's own beats: while it stands still, it can notice nothing.
    let beats = 0;
    const heart = setInterval(() => (beats += 1), 50);
    const exit = await within(
      'exit',
      20_000,
      adopted?.exited ?? Promise.reject(new Error('not adopted')),
    ).finally(() => clearInterval(heart));
    assert.ok(beats < 20, `${beats} beats of 50 ms`);
    assert.deepEqual(exit, { code: null, signal: null, lastLines: ['last words'] });
    assert.equal(adopted?.isAlive(), false);
    assert.deepEqual(await processes.recorded(''), []);
    assert.equal(await adopt(), undefined);
  });

  it('stops an adopted process, also one that SIGSTOP has stopped', async () => {
    const stateDir = newState();
    const [one = 0, two = 0] = await orphans(stateDir, spec({ key: 'a' }), spec({ key: 'b' }));
    process.kill(two, 'SIGSTOP');
    const { adopt } = open(stateDir);
    const [a, b] = [await adopt('a'), await adopt('b')];
    await within('both', 20_000, Promise.all([a?.stop({ graceMs: 2_000 }), b?.stop({ graceMs: 0 })]));
    assert.deepEqual([isAlive(one), isAlive(two)], [false, false]);
  });

  it('adopts a script that is run by its interpreter', async () => {
    const script = scratch.path('fake rclone');
    await writeFile(script, '#!/bin/sh\nwhile :; do sleep 0.1; done\n');
    await chmod(script, 0o755);
    const stateDir = newState();
    const [pid] = await orphans(stateDir, spec({ command: script, args: ['mount', 'nas:/照 片', ''] }));
    assert.equal((await open(stateDir).adopt())?.pid, pid);
  });

  it('does not take another process that has the same number', async () => {
    for (const changes of [{ startTicks: '1' }, { bootId: '00000000-0000-0000-0000-000000000000' }]) {
      const stateDir = newState();
      const [pid = 0] = await orphans(stateDir, spec());
      await change(stateDir, changes);
      const { adopt, processes } = open(stateDir);
      assert.equal(await adopt(), undefined);
      assert.equal(isAlive(pid), true, 'and leaves it alone');
      assert.deepEqual(await processes.recorded(''), [], 'the record names nothing that lives');
    }
  });

  it('does not take a process that runs another command line, nor starts a second beside it', async () => {
    const stateDir = newState();
    await orphans(stateDir, spec());
    await change(stateDir, { argumentsHash: 'other' });
    const { adopt, processes, messages } = open(stateDir);
    assert.equal(await adopt(), undefined);
    assert.deepEqual(messages(), ['recorded process runs another command line; it is not adopted']);
    await assert.rejects(processes.start(spec()), /is still running/);
  });

  it('drops records that cannot be understood and starts anew', async () => {
    for (const content of [
      '',
      '{',
      'null',
      '[]',
      '{"version":2}',
      '{"version":1,"key":"mount/照片","pid":1}',
      '\0\0\0\0',
    ]) {
      const stateDir = newState();
      await orphans(stateDir, spec());
      const { adopt, processes, messages } = open(stateDir);
      await writeFile(await recordFile(stateDir), content);
      assert.deepEqual(await processes.recorded(''), []);
      assert.equal(await adopt(), undefined);
      assert.deepEqual(messages(), ['a process record cannot be understood and is dropped']);
      const started = await processes.start(spec());
      assert.ok(started.isAlive());
      await started.stop({ graceMs: 0 });
    }
  });

  it('never leaves a running process that no record names, whenever the daemon is killed', async () => {
    for (let round = 0; round < 8; round += 1) {
      const stateDir = newState();
      const specs = Array.from({ length: 6 }, (_, index) =>
        spec({ key: `k/${index}`, ...shell(`: ${stateDir}; sleep 600`) }),
      );
      const { child, line } = startDaemon(stateDir, specs);
      await line();
      await clock.sleep(round * 7);
      await kill(child);
      const { adopt, processes } = open(stateDir);
      await until(
        'every process can be adopted',
        async () => {
          const keys = await processes.recorded('k/');
          const known = (await Promise.all(keys.map((key) => adopt(key)))).filter(
            (one) => one?.isAlive() === true,
          );
          const running = await processesNaming(`: ${stateDir};`);
          return running.every(({ pid }) => known.some((one) => one?.pid === pid));
        },
        { timeoutMs: 20_000 },
      );
    }
  });
});
