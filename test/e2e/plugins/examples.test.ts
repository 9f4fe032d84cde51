// @load loud
/** The five example plugins, all at once in one daemon: each shows what it does to a client of its own kind. */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { pathToFileURL } from 'node:url';
import type { Browser } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { EXAMPLES, exampleFile, layExample } from '../../support/plugins/examples.ts';
import { inState, notices, place, source } from '../../support/plugins/strangers.ts';
import { SKIPS } from '../../runner/skips.ts';

const MIB = 1_048_576;
const ROOM = '!garden:example.org';
const TOKEN = 'syt_token_of_the_garden';
/** 2 MiB at this rate take longer than 2 s, however large the first gulp is. */
const SLOW = '256K';

/** Says what every plugin that delivers notifications is to hear. */
const TELLER = source(
  'teller',
  `const event = { type: 'garden.flood', severity: 'warning',
    message: 'The cellar is full.', data: {}, key: 'flood' };
  const tell = async () => { await ctx.send('notify', event); return {}; };
  ctx.route({ method: 'GET', path: '/ext/teller/tell', handler: tell });`,
);

interface Homeserver {
  readonly url: string;
  readonly requests: readonly { readonly url: string; readonly status?: number }[];
  messages(): readonly string[];
  close(): Promise<void>;
}
interface SshServer {
  readonly settings: Readonly<Record<string, string | number>>;
  close(): Promise<void>;
}
const helper = <T>(example: string, file: string): Promise<T> =>
  import(pathToFileURL(exampleFile(example, file)).href) as Promise<T>;

describe('the five example plugins', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let nas: Nas;
  let browser: Browser;
  let homeserver: Homeserver;
  let port: number;
  let ssh: SshServer;

  const rule = { shares: ['slow'], from: '0 0 1 1 *', to: '59 23 31 12 *', down: SLOW };
  const sections = (rules: readonly (typeof rule)[]) => ({
    plugins: { dirs: [scratch.path('plugins')] },
    'plugins.teller': { enabled: true },
    'plugins.matrix': { enabled: true, homeserver: homeserver.url, room: ROOM, token: { env: 'ROOM_TOKEN' } },
    'plugins.quiet-hours': { enabled: true, timezone: 'UTC', rules },
    'plugins.nas-space': { enabled: true, ...ssh.settings, interval: '2s', least: '1B' },
    'plugins.listing': { enabled: true, isolation: 'none', port },
    'plugins.speed-chart': { enabled: true },
  });

  before(async () => {
    scratch = await createScratch('examples');
    mkdirSync(scratch.path('plugins'), { mode: 0o755 });
    for (const name of EXAMPLES) layExample(name, scratch.path('plugins'));
    await place(scratch, 'teller', TELLER);
    const { startHomeserver } = await helper<{ startHomeserver(traits: object): Promise<Homeserver> }>(
      'matrix',
      'homeserver.js',
    );
    const tooMany = [429, { errcode: 'M_LIMIT_EXCEEDED', error: 'Too Many Requests', retry_after_ms: 700 }];
    homeserver = await startHomeserver({ room: ROOM, token: TOKEN, answers: [tooMany] });
    scratch.defer(() => homeserver.close());
    const { startSshd } = await helper<{ startSshd(folder: string): Promise<SshServer> }>(
      'nas-space',
      'sshd.js',
    );
    ssh = await startSshd(scratch.path('ssh'));
    scratch.defer(() => ssh.close());
    port = await freePort();
    nas = await Nas.create(scratch, { files: { 'a/big.bin': 2 * MIB, 'b/big.bin': 2 * MIB } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [
        { name: 'slow', connection: 'nas', remote_path: 'a' },
        { name: 'team', connection: 'nas', remote_path: 'b' },
      ],
      sections: sections([rule]),
      env: { ROOM_TOKEN: TOKEN },
    });
    await daemon.start(60_000);
    await daemon.healthy();
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  const extensions = async (): Promise<Readonly<Record<string, Record<string, unknown>>>> =>
    (await daemon.get<{ extensions: Record<string, Record<string, unknown>> }>('/api/extensions')).body
      .extensions;
  /** Over the fourth protocol. */
  const download = async (share: string): Promise<{ readonly sha256: string; readonly tookMs: number }> => {
    const begin = performance.now();
    const response = await fetch(`http://127.0.0.1:${port}/${share}/big.bin`, {
      signal: AbortSignal.timeout(60_000),
    });
    assert.equal(response.status, 200);
    const sha256 = createHash('sha256')
      .update(Buffer.from(await response.arrayBuffer()))
      .digest('hex');
    return { sha256, tookMs: performance.now() - begin };
  };

  it('are all up, and no notice is there', async () => {
    for (const name of EXAMPLES) await inState(daemon, name, 'active');
    assert.deepEqual(
      (await notices(daemon)).filter((message) =>
        /matrix|nas-space|quiet|has less|does not say/i.test(message),
      ),
      [],
    );
  });

  it('listing and quiet-hours: files come over the fourth protocol, slowly from the limited share', async () => {
    await until(
      'both are shown',
      async () =>
        (
          await Promise.all(['slow', 'team'].map((share) => fetch(`http://127.0.0.1:${port}/${share}/`)))
        ).every(({ status }) => status === 200),
      { timeoutMs: 30_000 },
    );
    await until(
      'the limit is told',
      async () => JSON.stringify((await extensions())['quiet-hours']) === '{"quietShares":["slow"]}',
      { timeoutMs: 30_000 },
    );
    const parts = async (): Promise<Record<string, number>> =>
      Object.fromEntries(
        (await daemon.get<{ shares: { share: string; down: number }[] }>('/api/bwlimit')).body.shares.map(
          ({ share, down }) => [share, down],
        ),
      );
    await until('it holds', async () => (await parts())['slow'] === 256 * 1_024, { timeoutMs: 30_000 });
    const slow = await download('slow');
    assert.equal(slow.sha256, await nas.checksum('a/big.bin'));
    assert.ok(slow.tookMs > 2_000, `${slow.tookMs} ms`);
    assert.equal((await parts())['team'], 0);
    assert.equal((await download('team')).sha256, await nas.checksum('b/big.bin'));
    await daemon.writeConfig(daemon.text({ sections: sections([]) }));
    await until('the limit is gone', async () => (await parts())['slow'] === 0, { timeoutMs: 30_000 });
  });

  it('nas-space and speed-chart: a browser sees both cards, without errors, scripts or barriers', async () => {
    await until(
      'the NAS was asked',
      async () =>
        /mountkeeper_nas_free_bytes\{host="127\.0\.0\.1"\} \d/.test((await daemon.get('/metrics')).text),
      { timeoutMs: 30_000 },
    );
    const origin = `http://127.0.0.1:${daemon.port}`;
    for (const [locale, free] of [
      ['en', /127\.0\.0\.1: .+ of .+ free/],
      ['zh-CN', /可用 .+，共/],
    ] as const) {
      const watched = await WatchedPage.open(browser, origin, { locale });
      await watched.page.goto(`${origin}/`);
      const card = watched.page
        .locator('article, section, .card')
        .filter({ has: watched.page.locator('svg[role="img"]') });
      await card.filter({ hasText: free }).first().waitFor({ timeout: 10_000 });
      const points = await watched.page.locator('svg[role="img"] polyline').first().getAttribute('points');
      assert.match(points ?? '', /^\d+\.\d,\d+\.\d/);
      assert.equal(await card.locator('script').count(), 0);
      await watched.assertAccessible(locale);
      watched.assertClean();
      await watched.context.close();
    }
  });

  it('matrix: the room hears once what people should hear of, though it was asked to wait', async () => {
    assert.equal((await daemon.get('/ext/teller/tell')).status, 200);
    await until('the room hears of it', () => homeserver.messages().length > 0, { timeoutMs: 30_000 });
    assert.deepEqual(homeserver.messages(), ['[warning] teller: The cellar is full.']);
    assert.deepEqual(homeserver.requests.map(({ status }) => status).slice(0, 2), [429, 200]);
    assert.equal(new Set(homeserver.requests.slice(0, 2).map(({ url }) => url)).size, 1, 'one transaction');
    assert.doesNotMatch(await daemon.log(), new RegExp(TOKEN));
    await until('nothing waits', async () => (await extensions())['matrix']?.['matrixWaiting'] === 0, {
      timeoutMs: 30_000,
    });
  });
});
