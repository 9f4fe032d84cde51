// @load quiet
/** A stranger's plugin in a process of its own: what it declares works as inside the daemon. */
import assert from 'node:assert/strict';
import { mkdir, readFile, readdir, readlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getPriority } from 'node:os';
import { after, before, describe, it } from 'node:test';
import { PLUGINS_USER, serviceUser } from '../../../core/platform/processes/rights.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { allProcesses, isAlive } from '../../support/platform/processes.ts';
import { rightsOf } from '../../support/platform/rights.ts';
import { until as untilWithin } from '../../support/platform/wait.ts';
import { inState, notices, place, runnersOf, source } from '../../support/plugins/strangers.ts';

/** Found again among all processes of the machine: no other run of these tests has the same. */
const MARK = `97531.${process.pid}`;

const until = <T>(what: string, look: () => Promise<T>): Promise<NonNullable<T>> =>
  untilWithin(what, look, { timeoutMs: 60_000 });

const GOOD = source(
  'garden',
  `let ticks = 0; const seen = [];
    ctx.status('garden', () => ({ ticks, sawShares: ctx.use('status').snapshot.record.shares.length }));
    ctx.tap('collectNotices', () => [{ level: 'info', message: 'the garden says ' + ctx.config.word }]);
    ctx.webhookFormat({ name: 'card', render: ({ event }) => ({ body: 'in ' + process.pid + ': ' + event.type }) });
    ctx.tap('collectShareTroubles', () => [{ share: 'files', message: 'the beds are dry' }]);
    ctx.tap('notification', (event) => { seen.push(event.message); });
    ctx.tap('resolveBandwidth', (budget) => ({ up: budget.up === 0 ? 1234567 : budget.up / 2, down: budget.down }));
    const watered = ctx.event({ name: 'garden:watered', summary: 'A bed was watered.',
      value: Joi.object({ litres: Joi.number().max(9).required() }) });
    const heard = [];
    ctx.on('garden:watered', ({ litres }) => { heard.push(litres); });
    ctx.on('nas-watch:changed', () => undefined);
    ctx.route({ method: 'POST', path: '/water', handler: ({ payload }) => {
      for (const litres of payload) watered({ litres });
      return {}; } });
    ctx.route({ method: 'GET', path: '/heard/all', handler: () => heard });
    const early = ctx.log.child({ early: true });
    ctx.every({ name: 'tick', ms: () => 200, run: async () => { ticks += 1; early.debug('a quiet tick'); } });
    ctx.effect('a bed', () => { ctx.log.warn({ beds: 3 }, 'the garden is up'); return () => undefined; });
    ctx.tab({ id: 'garden', title: 'Garden', place: 'card',
      texts: { en: { ticked: '{count, plural, other {# ticks}}' } },
      render: (view) => h('p', { class: 'of-' + view.bytes(2048) }, 'the beds: ', view.t('ticked', { count: 3 })) });
    ctx.metric({ name: 'garden_ticks', help: 'Ticks.', read: () => ticks });
    ctx.route({ method: 'GET', path: '/{bed}', handler: (request) => ({
      bed: request.params.bed, q: request.query.q ?? null, word: ctx.config.word, ticks,
      env: Object.keys(process.env).sort(), pid: process.pid,
      authorization: request.headers.authorization ?? null }) });
    ctx.route({ method: 'POST', path: '/ext/garden', handler: (request, h) =>
      h.response({ got: request.payload }).code(201).header('x-garden', 'yes') });
    ctx.route({ method: 'POST', path: '/hang', handler: () => {
      setTimeout(() => { spawn('sleep', ['${MARK}'], { stdio: 'ignore' }); for (;;); }, 100);
      return {}; } });
    ctx.route({ method: 'POST', path: '/ext/garden/die', handler: () => {
      setTimeout(() => process.exit(3), 50);
      return {}; } });
    ctx.route({ method: 'POST', path: '/ext/garden/tell', handler: async () => {
      const event = { type: 'garden.flood', severity: 'warning', message: 'It is wet.', data: {}, key: 'wet' };
      await ctx.send('notify', event);
      return { seen }; } });`,
  `requires: ['status'],
  config: { schema: Joi.object({
    word: Joi.string().pattern(/^[a-z]+$/).default('hello').description('A word.').meta({ tier: 'live' }) }) },`,
);

/** Tries, by a program that Node's permission model does not hold, what it is asked to. */
const HOSTILE = source(
  'hostile',
  `ctx.route({ method: 'POST', path: '/ext/hostile', handler: async (request) => Promise.all(
    request.payload.map((deed) => new Promise((resolve) => {
      spawn('sh', ['-c', deed], { stdio: 'ignore' }).on('exit', resolve); }))) });`,
);

const REFUSED: Readonly<Record<string, readonly [body: string, sentence: RegExp]>> = {
  native: ["ctx.hapi({ name: 'x', register: () => undefined }, {});", /ctx\.hapi\(\) cannot be carried/],
  exporting: ["ctx.provide('exporter:x', () => ({}));", /ctx\.provide\(\) cannot be carried/],
};

interface Rates {
  readonly limit: { readonly up: number };
  readonly effective: { readonly up: number };
}

describe('a plugin in a process of its own', () => {
  let scratch: Scratch;
  let daemon: Daemon;

  const sections = (word: string): Record<string, Record<string, unknown>> => ({
    plugins: { dirs: [scratch.path('plugins')] },
    'plugins.garden': { enabled: true, word },
    notifications: {
      webhook_url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
      webhook_format: 'garden/card',
      allow_private: true,
    },
    ...Object.fromEntries(Object.keys(REFUSED).map((name) => [`plugins.${name}`, { enabled: true }])),
  });

  /** What came to the receiver of webhooks. */
  const got: string[] = [];
  const receiver = createServer((request, response) => {
    request.setEncoding('utf8').on('data', (text: string) => got.push(text));
    request.on('end', () => response.end());
  });

  before(async () => {
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    scratch = await createScratch('own');
    // As on a machine of its own: whoever has a folder below may walk down to it.
    await letOthersEnter(scratch.root);
    const nas = await Nas.create(scratch, { files: { 'a.bin': 1_000 } });
    await place(scratch, 'hostile', HOSTILE, { permissions: ['files', 'network', 'processes'] });
    await place(scratch, 'garden', GOOD, { permissions: ['read-status', 'send-commands', 'processes'] });
    for (const [name, [body]] of Object.entries(REFUSED)) await place(scratch, name, source(name, body));
    // As on a machine where the daemon can make no network of its own for a process.
    await mkdir(scratch.path('bin'));
    const refusing =
      '#!/bin/sh\ncase "$*" in *--net*) exit 1 ;; esac\nPATH=/usr/bin:/bin exec unshare "$@"\n';
    await writeFile(scratch.path('bin', 'unshare'), refusing, { mode: 0o755 });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: sections('hello') as never,
      env: {
        GARDEN_SECRET: 'not for strangers',
        PATH: `${scratch.path('bin')}:${process.env['PATH'] ?? ''}`,
      },
    });
    await daemon.start(60_000);
    await daemon.healthy();
    await inState(daemon, 'garden', 'active');
  });
  after(async () => {
    receiver.close();
    await scratch.close();
  });

  it('says what it holds', async () => {
    const { effects } = await inState(daemon, 'garden', 'active');
    assert.deepEqual(effects, ['a process of its own', 'a bed', 'every tick']);
    await until('its line is in the log', async () =>
      (await daemon.log())
        .split('\n')
        .some((line) => line.includes('garden: ') && line.includes('the garden is up')),
    );
  });

  it('answers its routes, without the environment and the passwords of the daemon', async () => {
    const { status, body } = await daemon.request<{
      bed: string;
      q: string;
      word: string;
      env: string[];
      pid: number;
      authorization: string | null;
    }>('GET', '/ext/garden/roses?q=1', undefined, { authorization: 'Basic eDp5' });
    assert.equal(status, 200);
    assert.deepEqual([body.bed, body.q, body.word], ['roses', '1', 'hello']);
    assert.notEqual(body.pid, daemon.pid);
    assert.deepEqual(
      body.env.filter(
        (name) =>
          !['HOME', 'LANG', 'PATH', 'PWD', 'TZ', 'OLDPWD', '_', 'SHLVL', 'MOUNTKEEPER_RUNNER'].includes(name),
      ),
      [],
    );
    assert.equal(body.authorization, null);
    const posted = await daemon.request<{ got: { a: number } }>('POST', '/ext/garden', { a: 1 });
    assert.deepEqual([posted.status, posted.body], [201, { got: { a: 1 } }]);
    assert.equal((await daemon.get('/ext/garden')).status, 404);
  });

  it('gives events to those who listen, in their order, and hears them', async () => {
    assert.equal((await daemon.request('POST', '/ext/garden/water', [3, 1, 99, 2])).status, 200);
    const heard = await until('three have come', async () => {
      const { body } = await daemon.get<number[]>('/ext/garden/heard/all');
      return body.length >= 3 ? body : undefined;
    });
    assert.deepEqual(heard, [3, 1, 2], 'one did not fit its schema');
  });

  it('has low priority and no capability, also where the daemon is root', async () => {
    const [pid = 0] = await runnersOf(daemon.pid);
    assert.equal(getPriority(pid), 10);
    const status = await readFile(`/proc/${pid}/status`, 'utf8');
    for (const set of ['CapInh', 'CapPrm', 'CapEff', 'CapAmb'])
      assert.match(status, new RegExp(`^${set}:\\s+0+$`, 'm'));
    assert.match(status, /^NoNewPrivs:\s+1$/m);
  });

  it('is told of where this machine does not keep it from the network', async () => {
    const sentence = /can use the network though it has no permission for it: /;
    assert.match((await inState(daemon, 'garden', 'active')).reason ?? '', sentence);
    const said = await notices(daemon);
    assert.ok(
      said.some((one) => one.startsWith('The plugin "garden": ') && sentence.test(one)),
      said.join('\n'),
    );
    const { stdout } = await daemon.cli('doctor', '--json');
    const checks = JSON.parse(stdout) as { title: string; result: string; detail: string }[];
    const check = checks.find(({ title }) => title === 'permissions of garden');
    assert.equal(check?.result, 'warning');
    assert.match(check.detail, sentence);
    assert.deepEqual(
      checks.filter(({ title }) => title === 'plugin processes').map(({ detail }) => detail),
      process.geteuid?.() === 0 ? [`run as ${PLUGINS_USER}`] : [],
    );
  });

  it('has no descriptor that the daemon has opened', async () => {
    const opened = async (pid: number): Promise<readonly string[]> =>
      Promise.all(
        (await readdir(`/proc/${pid}/fd`)).map((fd) => readlink(`/proc/${pid}/fd/${fd}`).catch(() => '')),
      );
    const [pid = 0] = await runnersOf(daemon.pid);
    // What whoever began all this has left open comes down to each process.
    const passedOn = await opened(process.pid);
    const isItsOwn = (name: string): boolean => /^$|^anon_inode:|^\/dev\/null$/.test(name);
    const theirs = (await opened(pid)).filter((name) => !isItsOwn(name) && !passedOn.includes(name));
    assert.ok(theirs.some((name) => name.startsWith('socket:')));
    const ours = await opened(daemon.pid);
    assert.ok(ours.some((name) => name.startsWith(daemon.stateDir)));
    assert.deepEqual(
      theirs.filter((name) => ours.includes(name) || name.startsWith('/')),
      [],
    );
  });

  it('may nothing that root or the WebDAV proxy may, by the kernel', { skip: unlessRoot }, async () => {
    const webdav = { enabled: true, port: await freePort(), users: [{ name: 'a', password: 'wonder:land' }] };
    const on = { ...sections('hello'), webdav, 'plugins.hostile': { enabled: true } };
    await daemon.writeConfig(daemon.text({ sections: on as never }));
    await inState(daemon, 'hostile', 'active');
    const proxy = await until('the proxy runs', async () =>
      (await allProcesses()).find(
        ({ args }) => args[1]?.endsWith('/proxy/main.js') === true && args[2]?.startsWith(daemon.stateDir),
      ),
    );
    const { uid, gid } = (await serviceUser(undefined, PLUGINS_USER)) ?? {};
    for (const pid of await runnersOf(daemon.pid)) {
      const { users, groups } = await rightsOf(pid);
      assert.equal(users, Array(4).fill(uid).join(' '));
      assert.ok(groups.endsWith(` and ${gid}`), groups);
    }
    // Nobody is asked for a password here.
    const asking = (path: string): string => {
      const code = `fetch('http://127.0.0.1:${daemon.port}${path}').then((r) => process.exit(r.ok ? 0 : 1))`;
      return `${process.execPath} -e "${code}"`;
    };
    const deeds = [
      asking('/api/status'),
      `cat /etc/shadow`,
      `cat /proc/${proxy.pid}/environ`,
      `: </proc/${proxy.pid}/mem`,
      `kill -0 ${proxy.pid}`,
      `kill -0 ${daemon.pid}`,
      `test -e ${daemon.stateDir}/command.sock`,
      `test -e ${daemon.stateDir}/store/garden`,
      `test -e ${daemon.mountPoint('files')}/a.bin`,
      `: >>${daemon.configFile}`,
      `: >>${daemon.stateDir}/store/x`,
      `: >>/etc/mountkeeper-hostile`,
    ];
    const own = [`: >${daemon.stateDir}/store/hostile/x`, asking('/healthz')];
    const { body } = await daemon.request<number[]>('POST', '/ext/hostile', [...own, ...deeds]);
    assert.equal(body.length, deeds.length + own.length);
    assert.deepEqual(
      [...own, ...deeds].filter((_, index) => body[index] === 0),
      own,
    );
    await daemon.writeConfig(daemon.text({ sections: sections('hello') as never }));
    await until('it is gone', async () => (await runnersOf(daemon.pid)).length === 1);
  });

  it('has its field in the status', async () => {
    const garden = async () =>
      (
        await daemon.get<{ extensions: { garden?: { garden: { ticks: number; sawShares: number } } } }>(
          '/api/extensions',
        )
      ).body.extensions.garden?.garden;
    await until('it is read, and goes on', async () => ((await garden())?.ticks ?? 0) > 5);
    assert.equal((await garden())?.sawShares, 1);
  });

  it('has its metric, and its say in the bandwidth', async () => {
    const metrics = async (): Promise<string> => (await daemon.get('/metrics')).text;
    await until('its metric is read', async () => /^\S*garden_ticks [1-9]/m.test(await metrics()));
    await until('its limit holds', async () => (await metrics()).includes('{direction="up"} 1234567'));
    // What it answers depends on what it is asked, and it was asked something else before.
    for (const rate of ['8M', '3M', '0']) {
      const { code, stderr } = await daemon.cli('bwlimit', rate, '0');
      assert.equal(code, 0, stderr);
      await until(`its limit holds beside ${rate}`, async () => {
        const { limit, effective } = (await daemon.get<Rates>('/api/bwlimit')).body;
        const expected = rate === '0' ? 1234567 : (Number.parseInt(rate, 10) * 1024 * 1024) / 2;
        return effective.up === expected && limit.up === (rate === '0' ? 0 : expected * 2);
      });
    }
  });

  it('has its card on the dashboard', async () => {
    const page = async (): Promise<string> => (await daemon.get('/')).text;
    await until('it is drawn', async () => (await page()).includes('the beds: 3 ticks'));
    assert.match(await page(), /class="of-2(?:\.0)? KiB"/);
  });

  it('has its notice and what it says of a share shown, its interval run and hears of events', async () => {
    await until('its notice', async () => (await notices(daemon)).includes('garden: the garden says hello'));
    await until('its word on the share', async () => {
      const { health, health_message: message } = (await daemon.status()).shares[0] ?? {};
      return health === 'healthy' && message === 'garden: the beds are dry';
    });
    const ticks = async (): Promise<number> =>
      (await daemon.get<{ ticks: number }>('/ext/garden/x')).body.ticks;
    const before_ = await ticks();
    await until('its interval goes on', async () => (await ticks()) > before_);
    await until('it heard', async () =>
      JSON.stringify((await daemon.request('POST', '/ext/garden/tell', {})).body).includes('It is wet.'),
    );
  });

  it('makes what the receiver of webhooks is sent', async () => {
    const { body } = await daemon.request<{ message: string }>('POST', '/api/webhooks/test');
    assert.match(body.message, /^Delivered/);
    const { pid } = (await daemon.get<{ pid: number }>('/ext/garden/x')).body;
    assert.ok(got.includes(`in ${pid}: test`), got.join());
  });

  it('takes over its changed configuration without another process', async () => {
    const pid = async (): Promise<number> => (await daemon.get<{ pid: number }>('/ext/garden/x')).body.pid;
    const before_ = await pid();
    await daemon.writeConfig(daemon.text({ sections: sections('bonjour') as never }));
    await until(
      'the new word',
      async () => (await daemon.get<{ word: string }>('/ext/garden/x')).body.word === 'bonjour',
    );
    assert.equal(await pid(), before_);
    const logs = async (text: string): Promise<boolean> => (await daemon.log()).includes(text);
    assert.equal(await logs('a quiet tick'), false);
    const { code, stdout, stderr } = await daemon.cli('plugin', 'log-level', 'garden', 'debug');
    assert.deepEqual([code, stdout.trim()], [0, "The plugin 'garden' logs from 'debug' on"], stderr);
    await until('it logs more', () => logs('garden: a quiet tick'));
    assert.equal(await pid(), before_);
    await daemon.writeConfig(daemon.text({ sections: sections('NO') as never }));
    await until('it is refused', async () =>
      (await daemon.log()).includes('fails to match the required pattern'),
    );
    await daemon.writeConfig(daemon.text({ sections: sections('hello') as never }));
  });

  it('is refused with a sentence when it declares what cannot be carried', async () => {
    for (const [name, [, sentence]] of Object.entries(REFUSED))
      assert.match((await inState(daemon, name, 'invalid')).reason ?? '', sentence, name);
    const { code, stdout } = await daemon.cli('check');
    assert.equal(code, 0, 'the daemon goes on without them');
    assert.match(stdout, /the plugin "native" is not used: .*ctx\.hapi\(\).*set isolation = "none"/);
    assert.doesNotMatch(stdout, /"garden"/);
  });

  it('is listed with the process it runs in, and with what it may', async () => {
    const process_ = async (name: string): Promise<unknown> =>
      (
        await daemon.get<{ name: string; isolation: string; permissions: string[] | null }[]>('/api/plugins')
      ).body
        .filter((plugin) => plugin.name === name)
        .map(({ isolation, permissions }) => [isolation, permissions])[0];
    assert.deepEqual(
      [await process_('garden'), await process_('mount')],
      [
        ['own', ['read-status', 'send-commands', 'processes']],
        ['none', null],
      ],
    );
    const { stdout } = await daemon.cli('plugin', 'list');
    assert.match(
      stdout,
      /^garden \*\s+\S+\s+active\s+its own\s.*\(it may read the status, limit the bandwidth, .*, start processes\)/m,
    );
    assert.match(stdout, /^mount\s+\S+\s+active\s+daemon\s/m);
  });

  it('is off after its third end within an hour, and comes back by plugin enable', async () => {
    // Seconds until it is started anew; the third time, it is not.
    for (const again of [1, 10, 0]) {
      const pid = await until('it runs', async () => (await runnersOf(daemon.pid))[0]);
      await until(
        'it dies',
        async () => (await daemon.request('POST', '/ext/garden/die', {})).status === 200,
      );
      await until('it is gone', async () => !(await runnersOf(daemon.pid)).includes(pid));
      // Within a second nobody may have looked.
      if (again !== 10) continue;
      const { reason } = await inState(daemon, 'garden', 'waiting');
      const said = `its process ended (it called process.exit(3)); it is started anew after ${again} s`;
      assert.equal(reason, said);
      const { stdout } = await daemon.cli('plugin', 'list');
      assert.ok(
        stdout.split('\n').some((line) => /^garden \*\s+\S+\s+waiting\s/.test(line) && line.includes(said)),
        stdout,
      );
      await inState(daemon, 'garden', 'active');
    }
    const { reason } = await inState(daemon, 'garden', 'failed');
    assert.match(
      reason ?? '',
      /3 times within an hour.*bring it back with 'mountkeeper plugin enable garden'/,
    );
    const isTold = async (): Promise<boolean> =>
      (await notices(daemon)).some((one) => one.startsWith('The plugin "garden" is switched off: '));
    await until('people are told', isTold);
    const back = await daemon.cli('plugin', 'enable', 'garden');
    assert.deepEqual([back.code, back.stdout], [0, "Bringing back the plugin 'garden'\n"]);
    await inState(daemon, 'garden', 'active');
    await until('nobody is told any more', async () => !(await isTold()));
    const again = await daemon.cli('plugin', 'enable', 'garden');
    assert.deepEqual([again.code, again.stderr], [1, "Plugin 'garden' did not break off, it is active\n"]);
    const native = await daemon.cli('plugin', 'enable', 'native');
    assert.match(
      native.stderr,
      /'native' did not break off, it is invalid: .*ctx\.hapi\(\) cannot be carried/,
    );
    assert.equal((await daemon.cli('plugin', 'enable', 'nobody')).stderr, "Plugin 'nobody' not found\n");
  });

  it('goes with its switch, and comes back into the daemon when it is told to', async () => {
    const off = { ...sections('hello'), 'plugins.garden': { enabled: false } };
    await daemon.writeConfig(daemon.text({ sections: off as never }));
    await inState(daemon, 'garden', 'disabled');
    await until('its process is gone', async () => (await runnersOf(daemon.pid)).length === 0);
    const inside = {
      ...sections('hello'),
      'plugins.garden': { enabled: true, isolation: 'none', word: 'x' },
    };
    await daemon.writeConfig(daemon.text({ sections: inside as never }));
    await inState(daemon, 'garden', 'active');
    assert.equal((await daemon.get<{ pid: number }>('/ext/garden/x')).body.pid, daemon.pid);
    await daemon.writeConfig(daemon.text({ sections: sections('hello') as never }));
    await until('it is out again', async () => {
      const { status, body } = await daemon.get<{ pid: number }>('/ext/garden/x');
      return status === 200 && body.pid !== daemon.pid;
    });
  });

  it('ends with all that it started when the daemon is killed, though it hangs', async () => {
    const children = async (): Promise<number> => {
      const lines = await Promise.all(
        (await readdir('/proc')).map((pid) => readFile(`/proc/${pid}/cmdline`, 'latin1').catch(() => '')),
      );
      return lines.filter((line) => line.startsWith(`sleep\0${MARK}`)).length;
    };
    const runners = await runnersOf(daemon.pid);
    assert.equal(runners.length, 1);
    assert.equal((await daemon.request('POST', '/ext/garden/hang', {})).status, 200);
    // It starts its child in the turn in which it begins to hang.
    await until('it has a child', async () => (await children()) === 1);
    await daemon.end();
    await until('both are gone', async () => (await children()) === 0 && !runners.some(isAlive));
  });
});
