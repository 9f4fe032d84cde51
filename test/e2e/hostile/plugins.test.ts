// @load loud
/**
 * Third parties' plugins that give nonsense, throw where nobody catches, end the process or leave things
 * open: the daemon goes on.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { place, plugin } from '../../support/plugins/strangers.ts';

/** An effect that does something a moment later, where nobody catches. */
function later(what: string): string {
  return `ctx.effect('timer', () => { setTimeout(() => { ${what}; }, 300); return () => undefined; });`;
}

/** What stands in `register`, by the plugin's name. */
const PLUGINS: Readonly<Record<string, string>> = {
  // One plugin each where one fault would hide another: every plugin is tried in a process of its own before
  // it is loaded.
  odd: `const endless = {}; endless.self = endless; ctx.status('odd', () => endless);
    ctx.status('huge', { default: 'small', read: () => Array(40).fill('x'.repeat(60_000)) + [] });
    const late = () => { for (const end = Date.now() + 400; Date.now() < end;) {} return 1; };
    ctx.status('late', { default: 0, read: late });
    ctx.status('thrown', { default: null, read: () => { throw new Error('no figure'); } });
    ctx.status('sound', { default: 0, read: () => 42 });
    ctx.shareStatus(() => ({ own: endless, mounted: false, dirtyCount: 9, health: 'failed', name: 'x' }));
    const notices = [{ level: 'loud', message: 'x' }, { level: 'info', message: 'a good one' }];
    ctx.tap('collectNotices', () => [null, 1, ...notices]);
    ctx.tap('resolveBandwidth', () => ({ up: NaN, down: -1 }));
    ctx.every({ name: 'meddle', ms: () => 500, run: async () => { ctx.use('status').publish = () => undefined; } });
    ctx.every({ name: 'reach', ms: () => 500, run: async () => {
      Object.getPrototypeOf(ctx.use('status')).publish = () => undefined; } });`,
  'core-status': "ctx.status('allSynced', () => true);",
  'throws-later':
    "ctx.effect('timer', () => { setTimeout(() => { throw new Error('out of a timer'); }, 300); " +
    'return () => undefined; });',
  'rejects-later':
    "ctx.effect('timer', () => { setTimeout(() => { " +
    "void Promise.reject(new Error('out of a promise')); }, 300); " +
    'return () => undefined; });',
  'ends-all':
    "ctx.effect('timer', () => { setTimeout(() => process.exit(0), 300); return () => undefined; });",
  'bare-socket': later('connect(1, "127.0.0.1")'),
  'bare-file': later('void readFile("/nowhere/at/all")'),
  'bare-null': later('throw null'),
  'bare-undefined': later('void Promise.reject()'),
  'bare-proxy': later('throw new Proxy(new Error(), { get: trap, getPrototypeOf: trap })'),
  'core-clock':
    "ctx.effect('timer', () => ctx.use('clock').after(300, () => { throw new Error('by the clock'); }));",
  'in-route':
    "ctx.route({ method: 'GET', path: '/', handler: () => { " +
    "setImmediate(() => { throw 'by a route'; }); return 'lit'; } });",
  'in-cycle': "ctx.tap('afterCycle', () => { setImmediate(() => { throw 'by a hook'; }); });",
  again:
    "ctx.effect('timer', () => { setInterval(() => { throw new Error('again and again'); }, 700); " +
    'return () => undefined; });',
  'by-module': '',
  leaks:
    "ctx.effect('leaks', () => { setInterval(() => undefined, 1000); " +
    "createServer().listen(0, '127.0.0.1'); return () => undefined; });",
  // Of both ends; the server itself keeps nobody.
  'leaves-socket': `ctx.effect('a line', () => { const server = createServer().listen(0, '127.0.0.1', () => {
    const { port } = server.address(); connect(port, '127.0.0.1', () => ctx.log.info('connected')); server.unref(); });
    return () => undefined; });`,
};
/** Those that break off, and how it is said of each. */
const BREAK_OFF: Readonly<Record<string, RegExp>> = {
  'throws-later': /caused an uncaught error: .*out of a timer/,
  'rejects-later': /caused an uncaught error: .*out of a promise/,
  'ends-all': /caused an uncaught error: .*process\.exit\(0\)/,
  'bare-socket': /caused an uncaught error: connect ECONNREFUSED 127\.0\.0\.1:1; /,
  'bare-file': /caused an uncaught error: ENOENT: .*\/nowhere\/at\/all/,
  'bare-null': /caused an uncaught error: it threw null, which is no error; /,
  'bare-undefined': /caused an uncaught error: it threw undefined, which is no error; /,
  'bare-proxy': /caused an uncaught error: it threw something that cannot be put into words; /,
  'core-clock': /caused an uncaught error: by the clock \(at index\.js:4:\d+\); /,
  'in-route': /caused an uncaught error: by a route; /,
  'in-cycle': /caused an uncaught error: by a hook; /,
  'by-module': /caused an uncaught error: connect ECONNREFUSED 127\.0\.0\.1:1; /,
  again: /caused an uncaught error: again and again(?: \(at index\.js:\d+:\d+\))?; /,
};

function source(
  name: string,
  body: string,
  imports = "import { connect, createServer } from 'node:net'; import { readFile } from 'node:fs/promises';",
): string {
  return (
    `import { definePlugin } from 'mountkeeper';\n${imports}\n` +
    `export default definePlugin({ name: '${name}', version: '1.0.0', apiVersion: 1, ` +
    `description: 'Hostile.',\n  register(ctx) { void [connect, createServer, readFile]; ${body} } });\n` +
    `function trap() { throw new Error('a trap'); }\n`
  );
}

/** At the top of a module: what it leaves behind belongs to no instance, and fails before there is one. */
const BY_MODULE = "connect(1, '127.0.0.1'); setInterval(() => connect(1, '127.0.0.1'), 700);\n";

describe("hostile plugins in the daemon's process", () => {
  let scratch: Scratch;
  let daemon: Daemon;

  const logged = async (name: string, sentence: string): Promise<boolean> =>
    (await daemon.log()).split('\n').some((line) => line.includes(` ${name}: `) && line.includes(sentence));

  before(async () => {
    scratch = await createScratch('hostile');
    const nas = await Nas.create(scratch, { files: { 'a.bin': 1_000 } });
    for (const [name, body] of Object.entries(PLUGINS)) await place(scratch, name, source(name, body));
    await place(scratch, 'by-module', source('by-module', '') + BY_MODULE);
    const on = Object.fromEntries(
      Object.keys(PLUGINS).map((name) => [`plugins.${name}`, { enabled: true, isolation: 'none' }]),
    );
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: { plugins: { dirs: [scratch.path('plugins')] }, ...on },
    });
    await daemon.start(60_000);
    await daemon.healthy();
    // A module has ten seconds to load, which a machine with much else to do may not give it.
    await until(
      'all could be loaded',
      async () => {
        const found = await Promise.all(Object.keys(PLUGINS).map((name) => plugin(daemon, name)));
        const isLate = found.some((one) => one?.reason?.includes('did not finish loading') === true);
        if (isLate) daemon.signal('SIGHUP');
        return !isLate;
      },
      { timeoutMs: 90_000, everyMs: 5_000 },
    );
  });
  after(() => scratch.close());

  it('are survived: the daemon answers with the true status', async () => {
    for (const until_ = performance.now() + 3_000; performance.now() < until_; await sleep(20)) {
      const { status, body } = await daemon.get<{
        all_synced: boolean;
        shares: { name: string; mounted: boolean; health: string; dirty_count: number }[];
      }>('/api/status');
      assert.equal(status, 200);
      assert.deepEqual(
        body.shares.map(({ name, mounted, health, dirty_count: dirty }) => [name, mounted, health, dirty]),
        [['files', true, 'healthy', 0]],
      );
    }
    const { status, body } = await daemon.get<{ message: string }[] | { notices: { message: string }[] }>(
      '/api/notices',
    );
    assert.equal(status, 200);
    const messages = (Array.isArray(body) ? body : body.notices).map(({ message }) => message);
    assert.ok(
      messages.includes('a good one') && messages.every((message) => typeof message === 'string'),
      JSON.stringify(messages),
    );
    const limits = await daemon.get<{ effective?: { up: number } }>('/api/bwlimit').catch(() => undefined);
    assert.ok(limits === undefined || limits.status < 500);
  });

  it('shows what a stranger adds, and its default where that cannot be used', async () => {
    const shown = await daemon.get<{ extensions: Record<string, unknown> }>('/api/extensions');
    assert.deepEqual(shown.body.extensions['odd'], { huge: 'small', late: 0, thrown: null, sound: 42 });
    const lines = (await daemon.log()).split('\n').filter((line) => line.includes(' odd: '));
    for (const reason of ['characters in all', 'takes more than 200 ms', 'no figure'])
      assert.equal(lines.filter((line) => line.includes(reason)).length, 1, `${reason}: ${lines.join('\n')}`);
  });

  it('switches off those that threw outside of their calls, says why, and keeps the others', async () => {
    await daemon.get('/ext/in-route').catch(() => undefined);
    for (const [name, sentence] of Object.entries(BREAK_OFF)) {
      const { state, reason } = await until(
        `${name} is out`,
        async () => {
          const found = await plugin(daemon, name);
          return found !== undefined && found.state !== 'active' ? found : undefined;
        },
        { timeoutMs: 20_000 },
      );
      assert.equal(state, 'failed', name);
      assert.match(reason ?? '', sentence, name);
    }
    assert.equal((await plugin(daemon, 'odd'))?.state, 'active');
    assert.match(
      (await plugin(daemon, 'core-status'))?.reason ?? '',
      /fills the status field "allSynced", which is the core's own/,
    );
  });

  it('are named in the log, each', async () => {
    for (const [name, sentence] of [
      ['odd', 'nested more than'],
      ['odd', "is the core's own"],
      ['odd', 'needs a text as level'],
      ['odd', 'needs up and down'],
      ['odd', 'Cannot assign to read only property'],
      ['odd', 'Cannot add property publish, object is not extensible'],
      ['throws-later', 'out of a timer'],
      ['rejects-later', 'out of a promise'],
      ['ends-all', 'process.exit(0)'],
    ] as const) {
      await until(`${name} is named: ${sentence}`, () => logged(name, sentence), { timeoutMs: 20_000 });
    }
  });

  it('come back without a restart when their files are mended', async () => {
    const { pid } = daemon;
    await place(scratch, 'throws-later', source('throws-later', "ctx.status('mended', () => true);"));
    await until('it is up again', async () => (await plugin(daemon, 'throws-later'))?.state === 'active', {
      timeoutMs: 30_000,
    });
    assert.equal(daemon.pid, pid);
  });

  it('pay for nothing that a former version has left behind', async () => {
    for (const name of ['again', 'by-module']) {
      await place(scratch, name, source(name, "ctx.status('mended', () => true);".replace('mended', name)));
      await until('it is up again', async () => (await plugin(daemon, name))?.state === 'active', {
        timeoutMs: 30_000,
      });
      await until('it is named', () => logged(name, 'has left behind caused an uncaught error'), {
        timeoutMs: 20_000,
      });
      assert.equal((await plugin(daemon, name))?.state, 'active', name);
    }
  });

  it('let the daemon end by a signal, though they left things open, which it names', async () => {
    assert.ok(await logged('leaves-socket', 'connected'));
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
    const [, what = ''] =
      /plugins have left open: (.*); the process ends anyway/.exec(await daemon.output()) ?? [];
    for (const kind of ['Timeout', 'TCPServerWrap', 'TCPSocketWrap'])
      assert.ok(what.split(', ').includes(kind), `${kind}: ${what}`);
  });
});
