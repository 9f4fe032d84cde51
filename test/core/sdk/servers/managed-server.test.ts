import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { createClock } from '../../../../core/platform/clock.ts';
import { manageServer } from '../../../../core/sdk/servers/managed-server.ts';
import type { ManagedServer, ManagedServerOptions } from '../../../../core/sdk/servers/managed-server.ts';
import { createProcesses } from '../../../../core/platform/processes/processes.ts';
import { isAlive } from '../../../support/platform/processes.ts';
import { until } from '../../../support/platform/wait.ts';

const KEY = 'test/server';
const PATIENCE = { timeoutMs: 30_000, everyMs: 10 };
const clock = createClock();
const log = pino({ level: 'silent' });

describe('a server that is kept running', () => {
  let stateDir: string;
  let processes: ReturnType<typeof createProcesses>;
  const kept: ManagedServer[] = [];

  before(async () => {
    stateDir = await mkdtemp(join(tmpdir(), 'mountkeeper-kept-'));
    processes = createProcesses({ stateDir, clock, log });
  });
  after(async () => {
    await Promise.all(kept.map((server) => server.stop()));
    processes.releaseAll();
    await rm(stateDir, { recursive: true, force: true, maxRetries: 5 });
  });

  function keep(changes: Partial<ManagedServerOptions> & { fingerprint?: () => string } = {}): ManagedServer {
    const { fingerprint = () => 'one', ...rest } = changes;
    const server = manageServer({
      clock,
      log,
      processes,
      key: KEY,
      graceMs: 2_000,
      plan: async () => ({ key: KEY, command: 'sleep', args: ['60'], fingerprint: fingerprint() }),
      ready: async () => undefined,
      cleanUp: async () => undefined,
      ...rest,
    });
    kept.push(server);
    server.start();
    return server;
  }
  const up = (server: ManagedServer) =>
    until('it serves', () => (server.problem === undefined ? server.process : undefined), PATIENCE);

  it('comes back when it is killed, after it was cleaned up behind', async () => {
    let cleanUps = 0;
    const server = keep({
      cleanUp: async () => {
        cleanUps += 1;
      },
    });
    const first = (await up(server)).pid;
    const before = cleanUps;
    process.kill(first, 'SIGKILL');
    await until(
      'another runs',
      () => server.problem === undefined && server.process && server.process.pid !== first,
      PATIENCE,
    );
    assert.ok(cleanUps > before);
    await server.stop();
    assert.equal(server.process, undefined);
  });

  it('says why it does not run, and runs as soon as it can', async () => {
    let isThere = false;
    const plan = async () => {
      if (!isThere) throw new Error('install the package sleep');
      return { key: KEY, command: 'sleep', args: ['60'], fingerprint: 'one' };
    };
    const server = keep({ plan });
    await until('the reason is said', () => server.problem === 'install the package sleep', PATIENCE);
    isThere = true;
    server.renew();
    await up(server);
    await server.stop();
  });

  it('tells and logs no line that is noise, whether it ended at once or later', async () => {
    const script = "echo 'no such interface'; echo 'noise: geheim'; sleep 0.3; exit 1";
    const plan = async () => ({ key: KEY, command: 'sh', args: ['-c', script], fingerprint: 'noise' });
    const isNoise = (line: string): boolean => line.startsWith('noise');
    const logged: unknown[] = [];
    const told = Object.assign(Object.create(log) as typeof log, {
      warn: (fields: unknown) => void logged.push(fields),
    });
    const never = keep({ plan, isNoise, ready: () => new Promise(() => undefined) });
    await until('it says why', () => never.problem === 'it ended at once (no such interface)', PATIENCE);
    await never.stop();
    const later = keep({ plan, isNoise, log: told });
    await until('its end is logged', () => logged.length > 0, PATIENCE);
    await later.stop();
    assert.match(JSON.stringify(logged), /"lastLines":\["no such interface"\]/);
  });

  it('is adopted when it is wanted as it is, and replaced when it is wanted otherwise', async () => {
    let fingerprint = 'one';
    const first = keep({ fingerprint: () => fingerprint });
    const { pid } = await up(first);
    await first.release();
    assert.ok(isAlive(pid));
    const second = keep({ fingerprint: () => fingerprint });
    assert.equal((await up(second)).pid, pid);
    fingerprint = 'two';
    second.renew();
    await until(
      'another runs',
      () => second.problem === undefined && second.process && second.process.pid !== pid,
      PATIENCE,
    );
    assert.equal(isAlive(pid), false);
    await second.stop();
  });

  it('is ended when it does not become ready', async () => {
    let pid = 0;
    const server = keep({
      ready: async (process) => {
        pid = process.pid;
        throw new Error('it answers nobody');
      },
    });
    await until('the reason is said', () => server.problem === 'it answers nobody', PATIENCE);
    await until('it has ended', () => !isAlive(pid), PATIENCE);
    await server.stop();
  });

  it('is said not to answer when it does not, and is started anew after five such looks', async () => {
    let isMute = false;
    const server = keep({
      answerMs: 20,
      ask: (signal) =>
        isMute
          ? new Promise((_, reject) =>
              signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true }),
            )
          : Promise.resolve(),
    });
    const { pid } = await up(server);
    const { signal } = new AbortController();
    await server.look(signal);
    assert.equal(server.isAnswering, true);
    isMute = true;
    for (let look = 0; look < 4; look += 1) await server.look(signal);
    assert.deepEqual([server.isAnswering, server.process?.pid], [false, pid]);
    isMute = false;
    await server.look(signal);
    assert.equal(server.isAnswering, true);
    isMute = true;
    for (let look = 0; look < 5; look += 1) await server.look(signal);
    await until(
      'another runs',
      () => server.isAnswering && server.process && server.process.pid !== pid,
      PATIENCE,
    );
    await server.stop();
    assert.equal(server.isAnswering, false);
  });

  it('ends what a former daemon left when it cannot run as it is wanted now', async () => {
    const former = await processes.start({ key: KEY, command: 'sleep', args: ['60'], fingerprint: 'old' });
    former.release();
    const server = keep({ plan: () => Promise.reject(new Error('there is no such address')) });
    await until('the reason is said', () => server.problem === 'there is no such address', PATIENCE);
    assert.equal(isAlive(former.pid), false);
    await server.stop();
  });

  it('ends what a former daemon left, though it was never started here', async () => {
    const former = await processes.start({ key: KEY, command: 'sleep', args: ['60'], fingerprint: 'old' });
    former.release();
    const server = manageServer({
      clock,
      log,
      processes,
      key: KEY,
      graceMs: 2_000,
      plan: () => Promise.reject(new Error('off')),
      ready: async () => undefined,
      cleanUp: async () => undefined,
    });
    await server.stop();
    assert.equal(isAlive(former.pid), false);
  });
});
