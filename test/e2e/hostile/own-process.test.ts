// @load loud
/**
 * Hostile plugins in processes of their own, and in shared ones, that end three times: each is named with its cause,
 * switched off, and gone with the daemon. `strangers.test.ts` has all the others.
 */
import assert from 'node:assert/strict';
import { readFile, readdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { inState, notices, place, source } from '../../support/plugins/strangers.ts';

/** Found again among all processes of the machine: no other run of these tests has the same. */
const MARK = `86421.${process.pid}`;
const THREE_TIMES = /its process ended 3 times within an hour, at last because /;
const soon = (what: string): string =>
  `ctx.effect('timer', () => { setTimeout(() => { ${what} }, 300); return () => undefined; });`;

/** What each does, what becomes of it, and the words that name the cause. */
const HOSTILE: Readonly<Record<string, readonly [body: string, state: string, ...causes: RegExp[]]>> = {
  loops: ["ctx.tap('afterCycle', () => { for (;;); });", 'failed', /it did not answer for 10 s/, THREE_TIMES],
  exits: [soon('process.exit(0);'), 'failed', /it called process\.exit\(0\)/, THREE_TIMES],
  heaps: [
    soon('globalThis.kept = []; for (;;) kept.push({ at: kept.length });'),
    'failed',
    /it took more than 128 MiB of memory|it took \d+ MiB of memory/,
  ],
  breeds: [
    soon(
      `for (let i = 0; i < 50; i += 1) spawn('sleep', ['${MARK}'], { detached: i % 2 === 0, stdio: 'ignore' });`,
    ),
    'failed',
    /it started \d+ processes; 20 is the most/,
  ],
  garbles: [soon("writeSync(3, 'this is no message');"), 'failed', /it sent a message of \d+ bytes/],
  mumbles: [
    soon(`const body = Buffer.from('{"is":"log","level":{},"message":{"toString":1},"fields":{}}');
      writeSync(3, Buffer.concat([Buffer.from([0, 0, 0, body.length]), body]));`),
    'active',
  ],
  leaves: [
    `ctx.effect('child', () => { spawn('sleep', ['${MARK}'], { stdio: 'ignore' }); return () => undefined; });`,
    'active',
  ],
};

/** In two processes, by their permissions: of one it is known who ends it, of the other not. */
const SHARED: Readonly<Record<string, readonly [body: string, state: string, ...causes: RegExp[]]>> = {
  quits: [soon('process.exit(4);'), 'failed', /it called process\.exit\(4\)/, THREE_TIMES],
  stays: ["ctx.route({ method: 'GET', path: '/', handler: () => ({ pid: process.pid }) });", 'active'],
  spins: [
    soon('for (;;);'),
    'failed',
    /one of neighbour, spins, .*: it did not answer for 10 s/,
    THREE_TIMES,
  ],
  neighbour: ['', 'failed', /one of neighbour, spins, .*: it did not answer for 10 s/, THREE_TIMES],
};
const KNOWN: ReadonlySet<string> = new Set(['quits', 'stays']);

describe('hostile plugins in processes of their own, and in shared ones', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  const failures: string[] = [];
  let asked = 0;
  let slowestMs = 0;
  const over = new AbortController();
  let polling: Promise<void>;

  const marked = async (): Promise<readonly string[]> => {
    const lines = await Promise.all(
      (await readdir('/proc')).map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')),
    );
    return lines.filter((line) => line.startsWith(`sleep\0${MARK}`));
  };

  const poll = async (): Promise<void> => {
    for (; !over.signal.aborted; await sleep(100)) {
      const fromMs = performance.now();
      try {
        const { status, body } = await daemon.get<{ shares: { mounted: boolean }[] }>('/api/status');
        if (status !== 200 || body.shares[0]?.mounted !== true) failures.push(JSON.stringify(body));
      } catch (error) {
        failures.push(String(error));
      }
      asked += 1;
      slowestMs = Math.max(slowestMs, performance.now() - fromMs);
    }
  };

  before(async () => {
    scratch = await createScratch('own-hostile');
    // Beside a daemon that is root they have a user of their own, who walks down to the state folder.
    await letOthersEnter(scratch.root);
    const nas = await Nas.create(scratch, { files: { 'a.bin': 1_000 } });
    for (const [name, [body]] of Object.entries(HOSTILE))
      await place(
        scratch,
        name,
        source(name, body).replace('\n', "\nimport { writeSync } from 'node:fs';\nvoid writeSync;\n"),
        { permissions: ['read-status', 'processes'] },
      );
    for (const [name, [body]] of Object.entries(SHARED))
      await place(scratch, name, source(name, body), {
        permissions: KNOWN.has(name) ? ['read-status', 'network'] : ['read-status'],
      });
    const on = Object.fromEntries([
      ...Object.keys(HOSTILE).map((name) => [`plugins.${name}`, { enabled: true, isolation: 'own' }]),
      ...Object.keys(SHARED).map((name) => [`plugins.${name}`, { enabled: true, isolation: 'shared' }]),
    ]) as Record<string, Record<string, unknown>>;
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: { plugins: { dirs: [scratch.path('plugins')] } },
    });
    await daemon.start(60_000);
    await daemon.healthy();
    polling = poll();
    await daemon.writeConfig(
      daemon.text({ sections: { plugins: { dirs: [scratch.path('plugins')] }, ...on } as never }),
    );
  });
  after(() => {
    over.abort();
    return scratch.close();
  });

  for (const [name, [, state, ...causes]] of Object.entries({ ...HOSTILE, ...SHARED })) {
    it(`${name}: is named with its cause`, async () => {
      const { reason } = await inState(daemon, name, state, 150_000);
      for (const cause of causes) assert.match(reason ?? '', cause);
      if (causes.length === 0) return;
      const lines = (await daemon.log())
        .replaceAll('\\"', '"')
        .split('\n')
        .filter((line) => line.includes(` ${name}: `));
      assert.ok(
        lines.some((line) => causes[0]!.test(line)),
        lines.join('\n'),
      );
    });
  }

  it('one in a shared process is mended while the other runs on', async () => {
    const pid = async (): Promise<number> => (await daemon.get<{ pid: number }>('/ext/stays')).body.pid;
    const before_ = await pid();
    await place(scratch, 'quits', source('quits', ''), { permissions: ['read-status', 'network'] });
    await inState(daemon, 'quits', 'active');
    await inState(daemon, 'stays', 'active');
    assert.equal(await pid(), before_);
  });

  it('says so to people, and comes back by its switch', async () => {
    const said = await notices(daemon);
    assert.ok(
      said.some((one) => /^The plugin "exits" is switched off: .*process\.exit\(0\)/.test(one)),
      said.join('\n'),
    );
    const only = (enabled: boolean) =>
      daemon.writeConfig(
        daemon.text({
          sections: {
            plugins: { dirs: [scratch.path('plugins')] },
            'plugins.exits': { enabled, isolation: 'own' },
            'plugins.leaves': { enabled: true, isolation: 'own' },
          } as never,
        }),
      );
    await only(false);
    await inState(daemon, 'exits', 'disabled');
    await only(true);
    await inState(daemon, 'exits', 'active');
    assert.equal(
      (await notices(daemon)).some((one) => one.includes('"exits" is switched off')),
      false,
    );
  });

  it('has kept nobody waiting', async () => {
    over.abort();
    await polling;
    assert.deepEqual(failures, []);
    assert.ok(asked > 200, `asked ${asked} times`);
    assert.ok(slowestMs < 5_000, `the slowest answer took ${slowestMs} ms`);
    console.log(`asked ${asked} times, slowest ${Math.round(slowestMs)} ms`);
  });

  it('leaves nothing when the daemon ends', async () => {
    // What was switched off a moment ago may still be ending.
    await until(
      'nothing is left of those that breed; one is at work',
      async () => (await marked()).length === 1,
      {
        timeoutMs: 30_000,
      },
    );
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
    assert.deepEqual(await marked(), []);
  });
});
