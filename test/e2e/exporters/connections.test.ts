// @load alone
/**
 * Two thousand connections to each port that get nowhere, while a right client asks each of them. Ten
 * seconds, or as many as MOUNTKEEPER_CROWD_SECONDS says.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { allProcesses, openFiles, residentBytes } from '../../support/platform/processes.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until, within } from '../../support/platform/wait.ts';

const SECONDS = Number(process.env['MOUNTKEEPER_CROWD_SECONDS'] ?? 10);
const EACH = 2_000;
const ASK_EVERY_MS = 100;
const LONGEST_ANSWER_MS = 1_000;
const MOST_GROWTH_BYTES = 50 * 1_048_576;
const CROWD = fileURLToPath(new URL('../../support/http/stalled-clients.js', import.meta.url));

interface Question {
  readonly name: 'the API' | 'WebDAV' | 'the remote control';
  readonly url: string;
  readonly method: string;
  readonly authorization: string;
  readonly status: number;
}

function basic(name: string, password: string): string {
  return `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
}

/** The credentials of a mount's remote control, from the record that the daemon keeps for the next one. */
async function remoteControl(
  stateDir: string,
): Promise<{ readonly port: number; readonly authorization: string }> {
  const names = await readdir(stateDir, { recursive: true });
  for (const name of names.filter((one) => one.endsWith('.json'))) {
    const { notes } = JSON.parse(await readFile(join(stateDir, name), 'utf8')) as {
      notes?: Record<string, string>;
    };
    if (notes?.['rcPort'] === undefined) continue;
    return {
      port: Number(notes['rcPort']),
      authorization: basic(notes['rcUser'] ?? '', notes['rcPassword'] ?? ''),
    };
  }
  throw new Error('no mount has a remote control');
}

const rclone = currentRclone();

describe(`${EACH} stalled connections`, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let questions: readonly Question[];
  let ports: readonly number[];

  before(async () => {
    scratch = await createScratch('crowd');
    const nas = await Nas.create(scratch, { files: { 'x.bin': 100_000 } });
    const port = await freePort();
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: { webdav: { enabled: true, port, users: [{ name: 'alice', password: 'wonder:land' }] } },
    });
    await daemon.start();
    await daemon.healthy();
    const control = await remoteControl(daemon.stateDir);
    assert.equal((await daemon.share('files')).rc_port, control.port);
    await daemon.submit(daemon.text({ sections: { web: { password: 'pw' } } }));
    await until('the password is asked for', async () => (await daemon.get('/api/status')).status === 401, {
      timeoutMs: 20_000,
    });
    ports = [daemon.port, port, control.port];
    const url = (to: number, path: string): string => `http://127.0.0.1:${to}${path}`;
    questions = [
      {
        name: 'the API',
        url: url(daemon.port, '/api/status'),
        method: 'GET',
        authorization: basic('admin', 'pw'),
        status: 200,
      },
      {
        name: 'WebDAV',
        url: url(port, '/files/'),
        method: 'PROPFIND',
        authorization: basic('alice', 'wonder:land'),
        status: 207,
      },
      {
        name: 'the remote control',
        url: url(control.port, '/core/pid'),
        method: 'POST',
        authorization: control.authorization,
        status: 200,
      },
    ];
  });
  after(() => scratch.close());

  /** The milliseconds until the right answer was there. */
  const ask = async ({ name, url, method, authorization, status }: Question): Promise<number> => {
    const start = performance.now();
    const headers = { authorization, depth: '0', connection: 'close' };
    const response = await fetch(url, { method, headers, signal: AbortSignal.timeout(10_000) });
    await response.arrayBuffer();
    assert.equal(response.status, status, name);
    return performance.now() - start;
  };
  const crowd = async (): Promise<ChildProcess> => {
    const args = [CROWD, String(EACH), ...ports.map(String)];
    const child = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { PATH: process.env['PATH'] },
    });
    scratch.defer(() => child.kill('SIGKILL'));
    await within('all are opened', 60_000, once(child.stdout as NodeJS.ReadableStream, 'data'));
    return child;
  };
  const processesAsked = async (): Promise<Readonly<Record<Question['name'], number>>> => {
    const front = (await allProcesses()).find(
      ({ args }) =>
        args[1]?.endsWith('/webdav/proxy/main.js') === true && args[2]?.startsWith(daemon.stateDir) === true,
    );
    return {
      'the API': daemon.pid,
      WebDAV: front?.pid ?? 0,
      'the remote control': await daemon.rclonePid('files'),
    };
  };

  it('keep no proper client waiting for a second, and take little memory', async (context) => {
    const pids = await processesAsked();
    for (const question of questions) for (let count = 0; count < 30; count += 1) await ask(question);
    const seen = questions.map((question) => ({
      ...question,
      pid: pids[question.name],
      before: residentBytes(pids[question.name]),
      worstMs: 0,
      grownBytes: 0,
      descriptors: 0,
    }));
    let asked = 0;
    const round = async (): Promise<void> => {
      asked += 1;
      await Promise.all(
        seen.map(async (one) => {
          one.worstMs = Math.max(one.worstMs, await ask(one));
          one.grownBytes = Math.max(one.grownBytes, residentBytes(one.pid) - one.before);
          one.descriptors = Math.max(one.descriptors, openFiles(one.pid));
        }),
      );
    };
    let end = Infinity;
    const opening = crowd().finally(() => (end = performance.now() + SECONDS * 1_000));
    while (performance.now() < end) await Promise.all([round(), sleep(ASK_EVERY_MS)]);
    const child = await opening;
    child.kill('SIGKILL');
    for (const { name, worstMs, grownBytes, descriptors } of seen) {
      const grown = (grownBytes / 1_048_576).toFixed(1);
      context.diagnostic(
        `${name}: asked ${asked} times, ${Math.round(worstMs)} ms at most, ` +
          `${grown} MiB more, ${descriptors} descriptors`,
      );
    }
    assert.ok(asked > SECONDS * 3, `asked ${asked} times`);
    for (const { name, worstMs, grownBytes } of seen) {
      assert.ok(worstMs < LONGEST_ANSWER_MS, `${name} took ${worstMs} ms`);
      assert.ok(grownBytes < MOST_GROWTH_BYTES, `${name} took ${grownBytes} bytes more`);
    }
    assert.deepEqual(await processesAsked(), pids, 'nothing was restarted');
    assert.ok(!(await daemon.log()).includes('figures are not fresh'));
    const { body } = await daemon.request<{ shares: { health: string }[] }>('GET', '/api/status', undefined, {
      authorization: basic('admin', 'pw'),
    });
    assert.deepEqual(
      body.shares.map(({ health }) => health),
      ['healthy'],
    );
    await until('their descriptors are free', () => openFiles(daemon.pid) < 200, { timeoutMs: 20_000 });
  });
});
