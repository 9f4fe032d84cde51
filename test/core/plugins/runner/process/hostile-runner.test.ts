/** A real runner under its supervisor; its plugin may write to the socket by itself. */
import assert from 'node:assert/strict';
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { execFile } from 'node:child_process';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { after, before, describe, it } from 'node:test';
import type { Permission } from '../../../../../core/contract/services.ts';
import { readProcStat } from '../../../../../core/platform/processes/proc-stat.ts';
import { packageDir as hostDir } from '../../../../../core/plugins/discovery/stage.ts';
import { RunnerProcess } from '../../../../../core/plugins/runner/process/runner-process.ts';
import type { RunnerOptions } from '../../../../../core/plugins/runner/process/runner-process.ts';
import { quickClock } from '../../../../support/platform/quick-clock.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';
import { until } from '../../../../support/platform/wait.ts';
import { supervisorOf } from '../../../../support/plugins/supervised-runner.ts';
import type { Special } from '../../../../support/plugins/supervised-runner.ts';

/** A plugin's file whose `say` writes a message of any kind to the socket. */
const source = (body: string): string => `import { spawn } from 'node:child_process';
import { ftruncateSync, mkdirSync, openSync, readFileSync, unlinkSync, writeFileSync, writeSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
void [createServer, ftruncateSync, mkdirSync, openSync, unlinkSync, writeFileSync];
const write = (bytes) => {
  for (let at = 0; at < bytes.length;) {
    try {
      at += writeSync(3, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
};
const say = (message) => {
  const body = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const header = Buffer.alloc(4);
  header.writeUInt32BE(body.length);
  write(Buffer.concat([header, body]));
};
void [once, readFileSync, spawn, write, say];
export default { name: 'odd', version: '1.0.0', apiVersion: 1, description: 'Odd.',
  register(ctx) { ${body} } };
`;

/** What these do is meant to reach further than their permissions. */
const ALL: readonly Permission[] = ['send-commands', 'network', 'own-files', 'files', 'processes'];
const PATIENCE = { timeoutMs: 20_000 };
const ABANDONED = 'interval does not stop and is abandoned';
/** How many times as fast the daemon's time goes: what it does after seconds is seen soon. */
const QUICK = 4;

describe('a runner, whatever its plugin does', { timeout: 300_000 }, () => {
  let scratch: Scratch;
  let made = 0;
  before(async () => {
    scratch = await createScratch('runner');
  });
  after(() => scratch.close());

  async function supervised(
    body: string,
    config: () => object = () => ({}),
    permissions = ALL,
    { processor, ...special }: Pick<RunnerOptions, 'processor'> & Special = {},
  ) {
    const packageDir = scratch.path(`plugin-${(made += 1)}`);
    const entry = `${packageDir}/index.js`;
    await mkdir(dirname(entry));
    await writeFile(`${packageDir}/package.json`, '{ "type": "module" }');
    await writeFile(entry, source(body));
    const collected = collectLog();
    const { log } = collected;
    let [commands, launched] = [0, 0];
    const told: unknown[] = [];
    const ctx = {
      log,
      send: async (_name: string, value?: unknown) => {
        commands += 1;
        told.push(value);
      },
    };
    const supervisor = supervisorOf(
      ctx,
      {
        permissions,
        entry,
        folder: packageDir,
        name: 'odd',
        stateDir: scratch.root,
        packageDir: hostDir,
      },
      {
        config,
        launch: (options) => {
          launched += 1;
          return new RunnerProcess({ ...options, ...(processor && { processor }) });
        },
        ...special,
      },
    );
    scratch.defer(() => supervisor.stop('shutdown'));
    const started = supervisor.start();
    return { supervisor, started, told, commands: () => commands, launched: () => launched, ...collected };
  }

  it('may send no text where a text belongs', async () => {
    const odd = '{ toString: 1 }';
    const { supervisor, started, messages } = await supervised(`ctx.tap('afterCycle', (what) => {
      if (what === 'log') say({ is: 'log', level: ${odd}, message: ${odd}, fields: {} });
      if (what === 'deep')
        say('{"is":"log","level":"info","fields":{},"message":' + '['.repeat(2e5) + ']'.repeat(2e5) + '}');
      if (what === 'answer') say({ is: 'answer', id: 3, problem: ${odd} });
      if (what === 'fail') say({ is: 'failed', reason: ${odd} });
      return new Promise((resolve) => setTimeout(resolve, what === 'fail' ? 20_000 : 100, what));
    });`);
    await started;
    assert.equal(await supervisor.call('tap', 0, ['log']), 'log');
    assert.equal(await supervisor.call('tap', 0, ['deep']), 'deep');
    await assert.rejects(supervisor.call('tap', 0, ['answer']), /it gave no text/);
    await assert.rejects(supervisor.call('tap', 0, ['fail']), /its process has ended/);
    assert.deepEqual(messages().slice(0, 2), ['it gave no text', 'it gave no text']);
    assert.match(messages().at(-1) ?? '', /has ended \(it gave no text\) and is started anew/);
  });

  const TOO_MUCH = /more than the daemon can take/;
  const FLOODS: Readonly<Record<string, readonly [flood: string, end: RegExp]>> = {
    'small messages': ["for (;;) say({ is: 'pong' });", TOO_MUCH],
    'large messages': [
      `for (const status = ['x'.repeat(1e6)];;)
      say({ is: 'state', status, shareStatus: [], metrics: [] });`,
      TOO_MUCH,
    ],
    'single bytes': [
      `write(Buffer.from([0, 16, 0, 0]));
      for (let left = 1_048_576; left > 0; left -= 1) write(Buffer.from(' '));`,
      // A busy machine hands over many at once, which costs little; then it goes by its silence.
      /more than the daemon can take|it did not answer for 10 s/,
    ],
  };
  for (const [what, [flood, end]] of Object.entries(FLOODS))
    it(`is ended when it floods, before that costs the daemon much: ${what}`, async () => {
      const { started } = await supervised(
        `ctx.effect('floods', () => { ${flood} return () => undefined; });`,
      );
      const from = process.cpuUsage();
      await assert.rejects(started, end);
      const { user, system } = process.cpuUsage(from);
      const spentMs = (user + system) / 1_000;
      // 0.1 to 0.3 s where nothing else runs.
      assert.ok(spentMs < 2_000, `${spentMs} ms`);
    });

  it('says less often what is long', async () => {
    const { supervisor, started } = await supervised(`let reads = 0;
      ctx.status('reads', { default: 0, read: () => (reads += 1) });
      for (const field of 'abcdefghi') ctx.status(field, { default: '', read: () => 'x'.repeat(90_000) });`);
    await started;
    const reads = (): unknown => supervisor.value(({ status }) => status[0]);
    const fromMs = performance.now();
    await until('it has read once more', async () => supervisor.state && Number(reads()) > 1, PATIENCE);
    assert.equal(reads(), 2);
    assert.ok(performance.now() - fromMs > 2_500, `after ${performance.now() - fromMs} ms`);
  });

  it('is ended when it goes on sending much, though never much at once', async () => {
    const { supervisor, started, messages } = await supervised(`const status = [{ value: 'x'.repeat(1e6) }];
      ctx.effect('goes on', () => {
        const timer = setInterval(() => say({ is: 'state', status, shareStatus: [], metrics: [] }), 150);
        return () => clearInterval(timer);
      });`);
    await started;
    await until('it is ended', async () => !supervisor.isUp, PATIENCE);
    assert.match(messages().at(-1) ?? '', /it sent more within a minute than the daemon can take/);
  });

  it('is said to have left lines out, also when it says nothing after them', async () => {
    const { supervisor, started, messages } = await supervised(`ctx.tap('afterCycle', () => {
      for (let i = 0; i < 500; i += 1) say({ is: 'log', level: 'info', message: 'x', fields: {} });
      say({ is: 'failed', reason: 'enough' });
      return new Promise(() => undefined);
    });`);
    await started;
    await assert.rejects(supervisor.call('tap', 0, []), /its process has ended/);
    await until('it is said', () => messages().some((one) => /lines were left out/.test(one)), PATIENCE);
  });

  it('is ended soon when it says that it broke off and lives on', async () => {
    const { supervisor, started, messages } = await supervised(
      // Its answer comes by another way, and might come first.
      `ctx.tap('afterCycle', () => new Promise(() => say({ is: 'broke', reason: 'thorns' })));`,
    );
    await started;
    const saidAt = performance.now();
    await assert.rejects(supervisor.call('tap', 0, []), /its process has ended/);
    const tookMs = performance.now() - saidAt;
    assert.ok(tookMs < 5_000, `${tookMs} ms`);
    assert.match(messages().at(-1) ?? '', /has ended \(thorns\) and is started anew/);
  });

  it('is up once, however often it says so', async () => {
    let told = 0;
    const onNetwork = (): void => void (told += 1);
    const { supervisor, started } = await supervised(
      `ctx.tap('afterCycle', () => { for (let i = 0; i < 50; i += 1) say({ is: 'up' }); });`,
      undefined,
      ALL,
      { onNetwork },
    );
    await started;
    await supervisor.call('tap', 0, []);
    // What it says after these has been heard later.
    await supervisor.call('tap', 0, []);
    assert.equal(told, 1);
  });

  for (const [what, deed] of Object.entries({
    'a large file': "writeFileSync(folder + '/large', Buffer.alloc(3_000_000, 1));",
    'many files': "for (let i = 0; i < 60; i += 1) writeFileSync(folder + '/' + i, '');",
    'deep folders': "mkdirSync(folder + '/a'.repeat(80), { recursive: true });",
  }))
    it(`is ended when it keeps more than there is room for: ${what}`, async () => {
      const folder = scratch.path('store', 'odd');
      await mkdir(folder, { recursive: true });
      await symlink('/usr', `${folder}/elsewhere`);
      const { supervisor, started, messages } = await supervised(
        `const folder = ${JSON.stringify(folder)};
        ctx.effect('fills', () => { ${deed} return () => undefined; });`,
        undefined,
        ALL,
        { space: { mostBytes: 2_097_152, mostFiles: 50, everyMs: 1 } },
      );
      await started;
      await until('it has ended', () => messages().length > 0, PATIENCE);
      assert.match(messages()[0] ?? '', /it keeps more than 2 MiB or 50 files in .*store\/odd, or folders/);
      await supervisor.stop('shutdown');
      await rm(folder, { recursive: true });
    });

  /** A look at its time would come too late. */
  const FILLING = { mostBytes: 2_097_152, mostFiles: 1_000, everyMs: 3_600_000 };
  for (const [what, deed, said] of [
    ['in its folder', '', /it keeps more than 2 MiB or 1000 files in .*store\/odd, or folders/],
    [
      'in files that have no name any more',
      'unlinkSync(name);',
      /it keeps more than 2 MiB .* in .*store\/odd \(\d+ MiB in open files that have no name any more\), or/,
    ],
  ] as const)
    it(`is ended as soon as it fills the disk: ${what}`, async () => {
      const folder = scratch.path('store', 'odd');
      await mkdir(folder, { recursive: true });
      const { supervisor, started, messages } = await supervised(
        `ctx.effect('fills', () => {
          setTimeout(() => {
            for (let i = 0; i < 20; i += 1) {
              const name = ${JSON.stringify(folder)} + '/' + i;
              const file = openSync(name, 'w');
              ${deed}
              writeSync(file, Buffer.alloc(1_048_576, 1));
            }
          }, 500);
          return () => undefined;
        });`,
        undefined,
        ['own-files'],
        { space: FILLING },
      );
      await started;
      await until('it has ended', () => messages().length > 0, PATIENCE);
      assert.match(messages()[0] ?? '', said);
      await supervisor.stop('shutdown');
      await rm(folder, { recursive: true });
    });

  it('is not started again to fill the disk some more, until there is room', async () => {
    const folder = scratch.path('store', 'odd');
    await mkdir(folder, { recursive: true });
    let fills = true;
    const { supervisor, started, messages, launched } = await supervised(
      `ctx.effect('fills', () => {
        if (ctx.config.fills) writeFileSync(${JSON.stringify(folder)} + '/large', Buffer.alloc(3_000_000, 1));
        return () => undefined;
      });`,
      () => ({ fills }),
      ['own-files'],
      { space: { ...FILLING, everyMs: 1 } },
    );
    await started;
    await until('it was to be started anew', () => messages().length > 1, PATIENCE);
    for (const message of messages()) assert.match(message, /has ended \(it keeps more than 2 MiB/);
    assert.equal(launched(), 1);
    fills = false;
    await rm(folder, { recursive: true });
    await supervisor.start();
    assert.equal(launched(), 2);
  });

  it('cannot make one file fill the disk, also where that has no name', async () => {
    // What it may write to is said when it starts.
    await mkdir(scratch.path('store', 'odd'), { recursive: true });
    const { supervisor, started } = await supervised(
      `ctx.tap('afterCycle', () => {
        const file = openSync(${JSON.stringify(scratch.path('store'))} + '/odd/nameless', 'w');
        unlinkSync(${JSON.stringify(scratch.path('store'))} + '/odd/nameless');
        try { ftruncateSync(file, 600_000_000); return 'done'; } catch (error) { return error.code; }
      });`,
      undefined,
      ['own-files'],
    );
    await started;
    assert.equal(await supervisor.call('tap', 0, []), 'EFBIG');
  });

  it('sends so many commands and no more', async () => {
    const { started, messages, commands } = await supervised(`ctx.effect('commands', () => {
      const all = Array.from({ length: 500 }, () => ctx.send('reconnect', 'team').then(() => '', String));
      void Promise.all(all).then((said) => ctx.log.info(said.find((one) => one !== '') ?? 'all were sent'));
      return () => undefined;
    });`);
    await started;
    await until('it has heard of all', () => messages().length > 0, PATIENCE);
    assert.match(messages()[0] ?? '', /ctx\.send\("reconnect"\) comes too often: 20 commands a second/);
    assert.ok(commands() >= 20 && commands() <= 40, `${commands()} commands`);
  });

  it('tells people what it has to tell under its own name, a few times a minute', async () => {
    const { started, told, messages } = await supervised(`ctx.effect('tells', () => {
      const event = { type: 'share.healed', severity: 'info', message: 'The share works again.', data: {}, key: 'k' };
      const large = { ...event, data: Object.fromEntries(Array.from({ length: 9 }, (_, n) => [n, 'x'.repeat(4000)])) };
      void (async () => {
        const said = [];
        for (const one of [large, { ...event, type: 'odd.own', message: 'odd: dry' }, ...Array(30).fill(event)])
          said.push(await ctx.send('notify', one).then(() => 'sent', String));
        ctx.log.info([said[0], said[1], said.at(-1)].join('|'));
      })();
      return () => undefined;
    });`);
    await started;
    await until('it has heard of all', () => messages().length > 0, PATIENCE);
    assert.match(messages()[0] ?? '', /takes data of 16384 characters at the most\|sent\|.*comes too often/);
    const { length } = told;
    assert.ok(length >= 15 && length < 25, `${length} notifications`);
    assert.deepEqual(told.slice(0, 2), [
      { type: 'odd.own', severity: 'info', message: 'odd: dry', data: {}, key: 'odd k' },
      {
        type: 'odd.share.healed',
        severity: 'info',
        message: 'odd: The share works again.',
        data: {},
        key: 'odd k',
      },
    ]);
  });

  it('is told of when it did not answer for a while, once it does again', async () => {
    const { supervisor, started, entries } = await supervised(
      `ctx.tap('afterCycle', (ms) => {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms); return 'back'; });`,
      undefined,
      ALL,
      { clock: quickClock(2) },
    );
    await started;
    const noted = (): readonly unknown[] => entries.flatMap(({ reason }) => reason ?? []);
    assert.equal(await supervisor.call('tap', 0, [1_000 / 2]), 'back');
    assert.equal(await supervisor.call('tap', 0, [0]), 'back');
    assert.deepEqual(noted(), []);
    assert.equal(await supervisor.call('tap', 0, [7_500 / 2]), 'back');
    await until('it is said', () => noted().length > 0, PATIENCE);
    assert.match(
      String(noted()),
      /^it did not answer for about ([4-9]|1\d) s: something in it loops or blocks$/,
    );
    assert.equal(supervisor.isUp, true);
  });

  it('is told of when it does not go, and has to be ended', async () => {
    const { supervisor, started, entries } = await supervised(
      "ctx.effect('stays', () => () => new Promise(() => undefined));",
      undefined,
      ALL,
      { clock: quickClock(QUICK) },
    );
    await started;
    // As the daemon does: by the signal, and by the release of what holds it.
    await Promise.all([supervisor.stop('disable'), supervisor.stop('disable')]);
    assert.equal(entries.length, 1);
    assert.match(
      String(entries.at(-1)?.['reason']),
      /^it did not go within 5 s and was ended: a release or a run/,
    );
  });

  it('says which run of it, and which release, did not end, and each once', async () => {
    const never = 'new Promise(() => undefined)';
    for (const [verb, said] of [
      [
        `ctx.effect('bed', () => () => ${never});`,
        /^1 effects were not released: release "bed": did not finish within 4 s$/,
      ],
      [
        `ctx.every({ name: 'tick', ms: () => 50, run: () => { ctx.log.info('runs'); return ${never}; } });`,
        undefined,
      ],
    ] as const) {
      const { supervisor, started, entries, messages } = await supervised(verb);
      await started;
      if (said === undefined) await until('it runs', () => messages().includes('runs'), PATIENCE);
      await Promise.all([supervisor.stop('disable'), supervisor.stop('disable')]);
      const last = entries.filter(({ msg }) => msg !== 'runs');
      assert.equal(last.length, 1, messages().join('|'));
      if (said) assert.match(String((last[0]?.['err'] as Partial<Error> | undefined)?.message), said);
      else assert.deepEqual([last[0]?.['msg'], last[0]?.['interval']], [ABANDONED, 'tick']);
    }
  });

  it('is told of when it goes and has left something open, and not when it has closed all', async () => {
    const opens = `const timer = setInterval(() => undefined, 10); const child = spawn('sleep', ['60']);
      const server = createServer().listen(0, '127.0.0.1');`;
    const closes = 'clearInterval(timer); child.kill(); server.close();';
    for (const [release, open] of [
      ['', ['a child process, a server, a timer']],
      [closes, []],
    ] as const) {
      const { supervisor, started, entries } = await supervised(
        `ctx.effect('opens', () => { ${opens} return () => { ${release} }; });`,
      );
      await started;
      await supervisor.stop('disable');
      assert.deepEqual(
        entries.flatMap((entry) => entry['open'] ?? []),
        open,
      );
    }
  });

  it('is read at a pace when it prints', async () => {
    const { supervisor, started, entries } = await supervised(`ctx.effect('prints', () => {
      const child = spawn('yes', ['x'.repeat(100)], { stdio: ['ignore', 'inherit', 'ignore'] });
      return () => void child.kill();
    });`);
    await started;
    await until('it prints', () => entries.length > 0, PATIENCE);
    const former = entries.length;
    const from = process.cpuUsage();
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    const { user, system } = process.cpuUsage(from);
    assert.ok(user + system < 1_000_000, `${user + system} µs of 3 s went into reading it`);
    assert.ok(entries.length > former, 'it is read on, nevertheless');
    assert.equal(supervisor.isUp, true);
  });

  it('hears what has changed while it started', async () => {
    let config = { beds: 1 };
    const { supervisor, started } = await supervised(
      `ctx.effect('slow', () => new Promise((resolve) => setTimeout(resolve, 500, () => undefined)));
      ctx.tap('afterCycle', () => ctx.config.beds);`,
      () => config,
    );
    config = { beds: 2 };
    supervisor.send({ is: 'config', config });
    await started;
    assert.equal(await supervisor.call('tap', 0, []), 2);
  });

  it('is the first process that the kernel ends when memory runs out', async () => {
    const { supervisor, started } = await supervised(
      "ctx.tap('afterCycle', () => readFileSync('/proc/self/oom_score_adj', 'latin1').trim());",
    );
    await started;
    assert.equal(await supervisor.call('tap', 0, []), '1000');
  });

  it('is ended when it takes too much of a processor, though it answers', async () => {
    const { started, messages } = await supervised(
      `ctx.effect('spins', () => {
        const spin = () => {
          for (const until = performance.now() + 100; performance.now() < until;);
          setImmediate(spin);
        };
        spin();
        return () => undefined;
      });`,
      () => ({}),
      ALL,
      // However busy the machine is with others.
      { processor: { mostShare: 0.01, windowMs: 1_000 } },
    );
    await started;
    await until('it has ended', () => messages().length > 0, PATIENCE);
    assert.match(
      messages()[0] ?? '',
      /has ended \(it took \d+ % of a processor core over \d+ s; 1 % is the most\) and is started anew/,
    );
  });

  it('is heard, and hears, though the plugin replaces what reads and writes messages', async () => {
    const { supervisor, started } = await supervised(`ctx.tap('afterCycle', (what) => {
      globalThis.JSON.parse = () => ({});
      globalThis.JSON.stringify = () => '{}';
      return what;
    });`);
    await started;
    for (const what of ['first', 'second', 'third'])
      assert.equal(await supervisor.call('tap', 0, [what]), what);
  });

  it('is nothing where the daemon can open no more files, and the daemon lives', async () => {
    const at = (file: string): string => new URL(`../../../../../core/${file}`, import.meta.url).href;
    const script = `
      import { openSync } from 'node:fs';
      import { RunnerProcess } from ${JSON.stringify(at('plugins/runner/process/runner-process.js'))};
      import { createClock } from ${JSON.stringify(at('platform/clock.js'))};
      process.stdout.write('');
      const clock = createClock();
      const nothing = () => undefined;
      const onEnd = ({ reason }) => console.log(reason);
      const places = { entry: '', folder: '/', stateDir: '/', packageDir: '/' };
      const confinement = { ...places, permissions: ['files', 'network'], name: '' };
      const heard = { onMessage: nothing, onLine: nothing, onNote: nothing };
      const runner = new RunnerProcess({ clock, confinement, ...heard, onEnd });
      try { for (;;) openSync('/dev/null'); } catch {}
      try { new RunnerProcess({ clock, confinement }); } catch (error) { console.log(error.message); }
      setTimeout(() => runner.kill('it was looked at'), 3_000);
      setTimeout(() => console.log('lives'), 4_000);`;
    const node = [process.execPath, '--input-type=module', '-e', script];
    const { stdout } = await promisify(execFile)('/bin/sh', ['-c', 'ulimit -n 60; exec "$@"', 'sh', ...node]);
    assert.equal(
      stdout,
      'it could not be started: the daemon can open no more files\nit was looked at\nlives\n',
    );
  });

  it('leaves nothing that it has started, however soon it ends and whoever its parent is by then', async () => {
    const child = "sh -c 'echo \\$\\$; exec sleep 60.4'";
    const { supervisor, started } = await supervised(`ctx.effect('children', async () => {
      const shell = spawn('sh', ['-c', "${child} & setsid ${child} & (setsid ${child} &) ; wait"], {
        detached: true, stdio: ['ignore', 'pipe', 'ignore'] });
      let text = '';
      while (text.split('\\n').length < 4) text += String((await once(shell.stdout, 'data'))[0]);
      globalThis.children = text.trim().split('\\n').map(Number);
      return () => undefined;
    });
    ctx.tap('afterCycle', () => globalThis.children);`);
    await started;
    const children = (await supervisor.call('tap', 0, [])) as number[];
    const living = () => children.filter((pid) => ![undefined, 'Z', 'X'].includes(readProcStat(pid)?.state));
    assert.equal(new Set(living()).size, 3);
    await supervisor.stop('disable');
    await until('all have ended', () => living().length === 0, { timeoutMs: 5_000 });
  });
});
