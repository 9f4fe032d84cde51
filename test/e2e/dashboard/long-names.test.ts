// @load quiet
/**
 * The dashboard with the longest names, on a narrow screen and on a wall, in real Chromium: nothing is out of sight,
 * and what is pressed there happens.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { SKIPS } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { press } from '../../support/dashboard/keyboard.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { WebhookReceiver } from '../../support/webhooks/webhook-receiver.ts';

const LONGEST = 'photographs-of-the-whole-family-and-of-all-journeys-since-1987-'
  .slice(0, 63)
  .replace(/-$/, 'x');
const NARROW = { width: 360, height: 800 };
const WIDE = { width: 1440, height: 900 };
const SOON = { timeoutMs: 15_000 };

/** Every text that a canvas shows, with where it begins and ends. */
const WATCH_CANVAS = `
  const drawn = (window.drawn = []);
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...rest) {
    const { a, e, d, f } = this.getTransform();
    const { actualBoundingBoxLeft: left, actualBoundingBoxRight: right } = this.measureText(text);
    drawn.push({ text, from: a * (x - left) + e, to: a * (x + right) + e, y: Math.round(d * y + f) });
    return fillText.call(this, text, x, y, ...rest);
  };`;

interface Drawn {
  readonly text: string;
  readonly from: number;
  readonly to: number;
}

describe('the dashboard with long names', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let receiver: WebhookReceiver;
  let browser: Browser;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;

  before(async () => {
    scratch = await createScratch('long-names');
    const nas = await Nas.create(scratch, { files: { 'a.txt': 500, 'sub/b.txt': 700 } });
    receiver = await WebhookReceiver.start(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: LONGEST, connection: 'nas' }],
      sections: {
        notifications: { webhook_url: receiver.url, allow_private: true, cache_threshold_pct: 0 },
        warmup: { auto: false, rules: [{ share: LONGEST, path: '' }] },
        webdav: { enabled: true, port: await freePort() },
        'plugins.dashboard': { status_page: true },
      },
    });
    await daemon.start();
    await daemon.healthy();
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  const tooWide = (page: Page): Promise<number> =>
    page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
  /** Whether all of it can be seen without scrolling sideways. */
  const isInSight = async (page: Page, text: string): Promise<boolean> => {
    const button = page.locator('main button', { hasText: text }).first();
    const { x = -1, width = 0 } = (await button.boundingBox()) ?? {};
    return x >= 0 && x + width <= NARROW.width;
  };

  it('is no wider than a narrow screen, on any page', async () => {
    const watched = await WatchedPage.open(browser, origin(), { viewport: NARROW });
    const { page } = watched;
    await page.goto(`${origin()}/`);
    const paths = await page
      .locator('.top nav a')
      .evaluateAll((links) =>
        links.map((link) => new URL((link as unknown as { href: string }).href).pathname),
      );
    assert.ok(paths.includes('/tabs/logs'), paths.join());
    for (const path of [...paths, `/shares/${LONGEST}`, '/status']) {
      await page.goto(`${origin()}${path}`);
      assert.ok((await tooWide(page)) <= 0, `${path} is ${await tooWide(page)} px too wide`);
    }
    watched.assertClean();
    await watched.context.close();
  });

  it('sends a test notification and sends it again, both in sight and said in the reader’s language', async () => {
    const watched = await WatchedPage.open(browser, origin(), { viewport: NARROW, locale: 'zh-CN' });
    const { page } = watched;
    await page.goto(`${origin()}/tabs/notifications`);
    const says = (what: RegExp) =>
      until(`${what}`, async () => what.test(await page.locator('main').innerText()), SOON);
    await press(page.locator('main button', { hasText: '发送测试' }));
    await says(/已送达。/);
    await says(/这是一条测试通知。/);
    assert.equal(await page.locator('tbody .badge').innerText(), '已送达');
    assert.deepEqual(
      receiver.taken.map(({ body }) => body.type),
      ['test'],
    );
    assert.ok(await isInSight(page, '重新发送'));
    await watched.assertAccessible('notifications');
    await press(page.locator('tbody button', { hasText: '重新发送' }));
    await until('it comes once more', () => receiver.taken.length === 2, SOON);
    assert.deepEqual(new Set(receiver.taken.map(({ body }) => body.id)).size, 1, 'the same one');
    receiver.manner = { kind: 'status', status: 500 };
    await press(page.locator('main button', { hasText: '发送测试' }));
    await says(/未送达：接收者应答 500；将再次尝试/);
    receiver.manner = { kind: 'good' };
    watched.assertClean();
    await watched.context.close();
  });

  it('counts what a warmup would fetch, and fetches nothing', async () => {
    const watched = await WatchedPage.open(browser, origin(), { viewport: NARROW });
    const { page } = watched;
    await page.goto(`${origin()}/tabs/warmup`);
    const row = page.locator('tbody tr', { hasText: LONGEST }).first();
    assert.ok(await isInSight(page, 'Count only'));
    await press(row.locator('button', { hasText: 'Count only' }));
    const counted = page.locator('tbody tr', { hasText: 'Only counting, nothing is fetched' });
    await until(
      'what it has counted',
      async () => (await counted.count()) === 1 && /Complete[^]*0 of 2/.test(await counted.innerText()),
      SOON,
    );
    const { shares } = (await daemon.request<{ shares: { cache_bytes: number }[] }>('GET', '/api/status'))
      .body;
    assert.deepEqual(
      shares.map(({ cache_bytes }) => cache_bytes),
      [0],
    );
    watched.assertClean();
    await watched.context.close();
  });

  it('is large on the wall', async () => {
    const watched = await WatchedPage.open(browser, origin(), { viewport: WIDE });
    await watched.page.goto(`${origin()}/status`);
    const sizes = await watched.page
      .locator('.headline, .share h3, .figures dd')
      .evaluateAll((all) => all.map((one) => parseFloat(getComputedStyle(one as never).fontSize)));
    assert.ok(Math.max(...sizes) >= 40 && Math.min(...sizes) >= 20, sizes.join());
    assert.ok((await tooWide(watched.page)) <= 0);
    await watched.assertAccessible('/status');
    watched.assertClean();
    await watched.context.close();
  });

  it('keeps the times below its charts apart', async () => {
    const watched = await WatchedPage.open(browser, origin(), { viewport: WIDE });
    const { page } = watched;
    await page.addInitScript(WATCH_CANVAS);
    const noon = new Date(2026, 5, 1, 12, 20).getTime() / 1_000;
    for (const minutes of [6, 12, 25, 60]) {
      const points = Array.from({ length: minutes * 4 }, (_, at) => [noon + at * 15, at, at, at]);
      await page.route('**/dashboard/charts/**', (route) =>
        route.fulfill({ json: { from: noon, until: noon + minutes * 60, stepSeconds: 15, points } }),
      );
      await page.goto(`${origin()}/shares/${LONGEST}`);
      const times = async (): Promise<readonly Drawn[]> =>
        (await page.evaluate<readonly Drawn[]>('drawn')).filter(({ text }) => /\d:\d\d/.test(text));
      await until('the charts', async () => (await times()).length >= 6, SOON);
      const drawn = await times();
      drawn.forEach(({ text, from }, at) => {
        const before = drawn[at - 1];
        if (before && before.from < from)
          assert.ok(before.to + 4 <= from, `${minutes} minutes: ${before.text} runs into ${text}`);
      });
      await page.unroute('**/dashboard/charts/**');
    }
    watched.assertClean();
    await watched.context.close();
  });
});
