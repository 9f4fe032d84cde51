// @load loud
/**
 * A third party's plugin that uses every verb is loaded, changed and unloaded, over and over: nothing may be
 * left. `MOUNTKEEPER_TURNS` says how often all three are done; `npm run torture` does 334 of them. With
 * `MOUNTKEEPER_TURNS_ISOLATION=none` the plugin is inside the daemon, which never forgets a module: what that costs.
 */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { PluginContext } from '../../../core/contract/plugin.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { holdings, probeEnv } from '../../support/daemon/heap-probe.ts';
import type { Holdings } from '../../support/daemon/heap-probe.ts';
import { Poll } from '../../support/http/poll.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { residentBytes } from '../../support/platform/processes.ts';
import { until } from '../../support/platform/wait.ts';
import { place, plugin, runnersOf, source } from '../../support/plugins/strangers.ts';

/** After these rounds everything is warm, and the first measure is taken. */
const WARM = 3;
const ROUNDS = Number(process.env['MOUNTKEEPER_TURNS'] ?? 4);
const MOST_MEMORY_BYTES = 10_000_000;
/** It goes up and down: by 15 MB within 4 rounds, by 28 MB within 150. */
const MOST_RESIDENT_BYTES = 60_000_000;
/** How often a long run says how far memory has gone. */
const SAMPLE_EVERY = 50;
const ISOLATION = process.env['MOUNTKEEPER_TURNS_ISOLATION'] ?? 'own';
/** In the daemon nothing can end what a plugin does not let go of. */
const LEFT_BEHIND =
  ISOLATION === 'none'
    ? ''
    : `ctx.effect('left behind', () => {
      setInterval(() => undefined, 10); spawn('sleep', ['300']); return () => undefined; });`;
/** A moment's work holds as many. */
const SLACK = 3;
const PATIENCE = { timeoutMs: 60_000, everyMs: 20 };

/** What uses each verb, all of them by the contract; `word` makes it another content. */
function verbs(word: string): Readonly<Record<keyof PluginContext, string>> {
  return {
    tap: `ctx.tap('afterCycle', () => { beats += 1; });
      ctx.tap('collectNotices', () => [{ level: 'info', message: 'the garden says ${word}' }]);
      ctx.tap('resolveBandwidth', (budget) => budget);`,
    handle: "ctx.handle('notify', async () => { beats += 1; });",
    send: `ctx.every({ name: 'tell', ms: () => (hasTold ? 0 : 50), run: async () => {
      hasTold = true;
      await ctx.send('notify', { type: 'grown', severity: 'info', message: '${word}', data: {}, key: '${word}' });
    } });`,
    status: "ctx.status('garden', { default: 0, read: () => beats });",
    shareStatus: `ctx.shareStatus({ defaults: { gardenMood: '' }, read: () => ({ gardenMood: '${word}' }) });`,
    route: `ctx.route({ method: 'GET', path: '/', handler: () => ({ word: '${word}', heard: beats }) });`,
    metric: `ctx.metric({ name: 'garden_beats', help: 'Beats.', read: () => beats });
      const counted = ctx.metric({ type: 'counter', name: 'garden_drops_total', help: 'Drops.' });`,
    tab: `ctx.tab({ id: 'garden', title: 'Garden', place: 'card', render: () => '${word}',
      parts: { bed: () => '${word}' }, actions: { water: () => ({ ok: true, message: '${word}' }) } });`,
    webhookFormat: `ctx.webhookFormat({ name: 'card', render: () => ({ body: '${word}' }) });`,
    event: `const grown = ctx.event({ name: 'garden:grown', summary: 'It has grown.', value: Joi.string() });
      ctx.every({ name: 'grow', ms: () => 100, run: async () => grown('${word}') });`,
    on: "ctx.on('garden:grown', () => { beats += 1; });",
    every: "ctx.every({ name: 'beat', ms: () => 50, run: async () => { beats += 1; counted.add(); } });",
    job: "ctx.job({ name: 'daily', cron: () => '0 3 * * *', run: async () => undefined });",
    onConfigChange: 'ctx.onConfigChange(() => { beats += 1; });',
    config: "ctx.every({ name: 'beds', ms: () => 50 * ctx.config.beds, run: async () => undefined });",
    log: `ctx.effect('a word', () => { ctx.log.debug('${word}'); return () => undefined; });`,
    signal: `ctx.effect('awaited', () => {
      ctx.signal.addEventListener('abort', () => { beats = 0; }); return () => undefined; });`,
    effect: LEFT_BEHIND,
    use: `ctx.effect('a listener', () => ctx.use('status').onPublish(() => { beats += 1; }));
      ctx.effect('kept', async () => {
        const kept = await ctx.use('store').open('words', { version: 1, initial: '' });
        await kept.save('${word}'); return () => undefined; });`,
    find: `ctx.tap('afterCycle', () => { beats += ctx.find('shares')?.list().length ?? 0; });`,
    ...(ISOLATION === 'none' ? IN_DAEMON : NOT_CARRIED),
  };
}

type Uncarried = Record<'hapi' | 'cli' | 'provide', string>;
const NOT_CARRIED: Uncarried = { hapi: '', cli: '', provide: '' };
const IN_DAEMON: Uncarried = {
  hapi: `ctx.hapi({ name: 'native', register: (server) => {
    server.route({ method: 'GET', path: '/native', handler: () => 'native' }); } }, {});`,
  cli: "ctx.cli({ name: 'garden', summary: 'Shows the garden.', usage: 'garden', run: async () => 0 });",
  provide: "ctx.provide('gardener', () => ({ water() {} }));",
};

function wholePlugin(word: string): string {
  return source(
    'garden',
    `let beats = 0; let hasTold = false; ${Object.values(verbs(word)).join('\n')}`,
    `requires: ['status', 'store', 'shares'], config: { schema: Joi.object({
      beds: Joi.number().default(1).description('How many beds there are.').meta({ tier: 'live' }) }) },`,
  );
}

describe(`${ROUNDS} loads, changes and unloads of a plugin that uses every verb (isolation "${ISOLATION}")`, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let socket: string;

  before(async () => {
    scratch = await createScratch('turnover');
    const nas = await Nas.create(scratch, { files: { 'x.bin': 1000 } });
    socket = scratch.path('probe');
    daemon = await Daemon.create(scratch, {
      env: probeEnv(socket),
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: { plugins: { dirs: [scratch.path('plugins')] } },
    });
    await place(scratch, 'garden', wholePlugin('first'));
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  const switched = (enabled: boolean, beds = 1): Promise<void> =>
    daemon.writeConfig(
      daemon.text({
        sections: {
          plugins: { dirs: [scratch.path('plugins')] },
          'plugins.garden': { enabled, isolation: ISOLATION, beds },
        } as never,
      }),
    );
  const says = (word: string): Promise<unknown> =>
    until(
      `it says ${word}`,
      async () => (await daemon.get<{ word?: string }>('/ext/garden')).body.word === word,
      PATIENCE,
    ).catch(async (error: unknown) => {
      const lines = (await daemon.log())
        .split('\n')
        .filter((line) => !line.includes('/api/'))
        .slice(-12);
      const known = JSON.stringify(await plugin(daemon, 'garden'));
      throw new Error([(error as Error).message, known, ...lines].join('\n'), { cause: error });
    });
  const put = (word: string): Promise<void> =>
    place(scratch, 'garden', wholePlugin(word), {
      permissions: ['read-status', 'send-commands', 'hold-mounts', 'own-files', 'processes'],
    });

  async function round(index: number): Promise<void> {
    await put(`load ${index}`);
    await switched(true);
    await says(`load ${index}`);
    await switched(true, 2);
    await put(`change ${index}`);
    await says(`change ${index}`);
    await switched(false, 2);
    const isOff = async () => (await plugin(daemon, 'garden'))?.state === 'disabled';
    await until(
      'it is off',
      async () => (await isOff()) && (await runnersOf(daemon.pid)).length === 0,
      PATIENCE,
    );
  }

  /** Once everything is at rest. */
  async function settled(): Promise<Holdings> {
    let last = await holdings(socket, daemon.pid);
    await until(
      'the holdings are at rest',
      async () => {
        const former = last;
        last = await holdings(socket, daemon.pid);
        return former.openFiles === last.openFiles && Math.abs(former.heapUsed - last.heapUsed) < 200_000;
      },
      { timeoutMs: 40_000, everyMs: 1_000 },
    );
    return last;
  }

  async function sample(): Promise<string> {
    const { heapUsed, openFiles } = await holdings(socket, daemon.pid);
    const resident = residentBytes(daemon.pid) / 1e6;
    return `heap ${(heapUsed / 1e6).toFixed(1)} MB, resident ${Math.round(resident)} MB, ${openFiles} files`;
  }

  /** What is held beyond what was held first, by more than a moment's work takes. */
  function excess(first: Holdings, last: Holdings): readonly string[] {
    const kinds = Object.keys(last.resources).map(
      (kind) => [kind, first.resources[kind] ?? 0, last.resources[kind] ?? 0] as const,
    );
    return [
      ...[...kinds, ['open files', first.openFiles, last.openFiles] as const].filter(
        ([, was, is]) => is > was + SLACK,
      ),
      ...(last.heapUsed - first.heapUsed < MOST_MEMORY_BYTES
        ? []
        : [['heap', first.heapUsed, last.heapUsed] as const]),
    ].map(([what, was, is]) => `${what} ${was} → ${is}`);
  }

  it('leaves nothing, and no request fails', async (t) => {
    for (let index = 0; index < WARM; index += 1) await round(-index);
    const first = await settled();
    const firstResident = residentBytes(daemon.pid);
    const polls = ['/api/status', '/api/extensions', '/api/plugins'].map(
      (path) =>
        new Poll(async () => {
          const { status } = await daemon.get(path);
          return status === 200 ? undefined : `${path} answered ${status}`;
        }),
    );
    const fromMs = performance.now();
    for (let index = 1; index <= ROUNDS; index += 1) {
      await round(index);
      if (index % SAMPLE_EVERY === 0) console.log(`after ${index} rounds: ${await sample()}`);
    }
    const tookMs = performance.now() - fromMs;
    await Promise.all(polls.map((poll) => poll.end()));
    const failures = polls.flatMap((poll) => poll.failures);
    const answers = polls.reduce((sum, { tookMs: all }) => sum + all.length, 0);
    let last = await settled();
    // Connections that were kept alive for the questions above go after a while.
    await until(
      'no more is held than before',
      async () => excess(first, (last = await holdings(socket, daemon.pid))).length === 0,
      { timeoutMs: 30_000, everyMs: 500 },
    ).catch(() => undefined);
    const megabytes = [first, last].map(({ heapUsed }) => (heapUsed / 1e6).toFixed(1)).join(' → ');
    t.diagnostic(
      `${answers} answers, a round in ${Math.round(tookMs / ROUNDS)} ms; heap ${megabytes} MB; ` +
        `files ${first.openFiles} → ${last.openFiles}`,
    );
    assert.deepEqual(failures.slice(0, 5), []);
    assert.deepEqual(excess(first, last), []);
    const grown = residentBytes(daemon.pid) - firstResident;
    assert.ok(grown < MOST_RESIDENT_BYTES, `resident memory has grown by ${(grown / 1e6).toFixed(1)} MB`);
  });

  it('leaves no route, field, notice, metric, tab, process or copy', async () => {
    assert.equal((await daemon.get('/ext/garden')).status, 404);
    const { body } = await daemon.get<{ extensions: object }>('/api/extensions');
    assert.equal('garden' in body.extensions, false);
    // Notices are those of the last cycle.
    await until(
      'its notice is gone',
      async () => !/garden says/.test((await daemon.get('/api/notices')).text),
      PATIENCE,
    );
    for (const path of ['/metrics', '/'])
      assert.doesNotMatch((await daemon.get(path)).text, /garden says|garden_beats|id="card-garden/);
    const copies = await readdir(`${daemon.stateDir}/plugins`);
    assert.ok(copies.filter((one) => one.startsWith('garden@')).length <= 3, copies.join(', '));
    assert.deepEqual(
      copies.filter((one) => one.startsWith('.')),
      [],
    );
    assert.deepEqual(await readdir(`${daemon.stateDir}/store/garden`), ['words.json']);
  });
});
