// @load loud
/** Shares on the pages in real Chromium: many in tabs behind, their QR codes, and what each offers. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { SKIPS } from '../../runner/skips.ts';

/** A tab that was opened in the background, until `show`. */
const BEGINS_HIDDEN = `(() => {
  let hidden = true;
  Object.defineProperty(document, 'hidden', { get: () => hidden });
  window.show = () => {
    hidden = false;
    document.dispatchEvent(new Event('visibilitychange'));
  };
})()`;

/** The colours of texts in charts, as they were drawn. */
const INKS = `(() => {
  window.inks = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (...args) {
    window.inks.push(this.fillStyle);
    return fillText.apply(this, args);
  };
})()`;

describe('shares on the pages', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let browser: Browser;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;

  before(async () => {
    scratch = await createScratch('share-pages');
    const nas = await Nas.create(scratch, { files: { 'a.txt': 500, 'sub/b.txt': 700 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [
        { name: 'files', connection: 'nas' },
        { name: '团队 team', connection: 'nas', remote_path: 'sub', read_only: true },
      ],
      sections: { webdav: { enabled: true, port: await freePort(), listen: '0.0.0.0' } },
    });
    await daemon.start();
    await daemon.healthy();
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  it('opens many in tabs behind, of which each is up to date once it is looked at', async () => {
    const context = await browser.newContext({ locale: 'en' });
    await context.addInitScript(BEGINS_HIDDEN);
    // A browser opens six connections to a server.
    for (let opened = 0; opened < 7; opened += 1)
      await (await context.newPage()).goto(`${origin()}/shares/files`, { timeout: 10_000 });
    const last = await context.newPage();
    await last.goto(`${origin()}/`, { timeout: 10_000 });
    await daemon.request('POST', '/api/bwlimit', { up: '3M', down: '0' });
    await last.evaluate('show()');
    await until(
      'what has changed behind',
      async () => /3\.0 MiB\/s/.test(await last.locator('#card-limit').innerText()),
      { timeoutMs: 10_000 },
    );
    await until('the figures are new', async () => !(await last.locator('#lost').isVisible()), {
      timeoutMs: 5_000,
    });
    await context.close();
  });

  it('says whom it hits before a plugin is switched off, on its page and in the difference of settings', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    await page.goto(`${origin()}/tabs/plugins`);
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.message());
      void dialog.dismiss();
    });
    const question = async (name: string): Promise<string> => {
      await page.locator(`#plugin-${name}`).getByRole('button', { name: 'Switch off' }).click();
      await until('it is asked', () => asked.length > 0, { timeoutMs: 5_000 });
      return asked.splice(0).join();
    };
    const names = 'files, 团队 team.';
    assert.ok((await question('webdav')).endsWith(`these 2 shares over WebDAV is cut off: ${names}`));
    assert.ok((await question('mount')).endsWith(`not mounted again when anything ends them: ${names}`));
    assert.match(await question('uploads'), /This share goes on [^]* ends it: files\.$/);
    for (const name of ['warmup', 'smb'])
      assert.match(await question(name), /until it is switched on again\.$/);
    watched.assertClean();
    await watched.context.close();
    const verdict = async (name: string): Promise<string> => {
      const toml = `${daemon.text()}\n[plugins.${name}]\nenabled = false\n`;
      return (await daemon.request('POST', '/api/config/check', { toml })).text;
    };
    assert.match(await verdict('webdav'), /"servers":true[^]*clients may have to connect again/);
    assert.match(await verdict('warmup'), /Interrupts nobody/);
  });

  it('offers a warmup where there is a rule, as soon as there is one', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    const button = page.getByRole('button', { name: 'Warm up', exact: true });
    const offered = (what: string, count: number): Promise<unknown> =>
      until(what, async () => (await button.count()) === count, { timeoutMs: 15_000 });
    await page.goto(`${origin()}/`);
    await offered('there is no rule', 0);
    await daemon.writeConfig(`${daemon.text()}\n[[warmup.rules]]\nshare = "files"\npath = "sub"\n`);
    await offered('one share has a rule', 1);
    await button.click();
    await until(
      'it begins',
      async () => /begins/.test(await page.locator('.shares output').allInnerTexts().then(String)),
      {
        timeoutMs: 5_000,
      },
    );
    await daemon.writeConfig(daemon.text());
    await offered('the rule is gone', 0);
    watched.assertClean();
    await watched.context.close();
  });

  it('counts and fetches any folder of a share, without a rule', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    await page.goto(`${origin()}/tabs/warmup`);
    await page.getByText('Fetch or count another folder').click();
    const form = page
      .locator('form[action="/dashboard/do/warmup/run"]')
      .filter({ has: page.getByRole('combobox') });
    const says = (what: string, words: RegExp): Promise<unknown> =>
      until(what, async () => words.test(await form.locator('output').innerText()), { timeoutMs: 5_000 });
    const row = page.locator('tbody tr', { hasText: 'sub' }).first();
    const shows = (what: string, words: RegExp): Promise<unknown> =>
      until(what, async () => words.test((await row.allInnerTexts()).join()), { timeoutMs: 20_000 });
    await form.getByLabel('Newer than').fill('soon');
    await form.getByRole('button', { name: 'Run now' }).click();
    await says('a word that is no time', /takes a time such as 12h or 30d/);
    await form.getByLabel('Folder').fill('../sub');
    await form.getByRole('button', { name: 'Count only' }).click();
    await says('a folder elsewhere', /no folder in the share/);
    await form.getByLabel('Folder').fill('/sub/');
    await form.getByLabel('Newer than').fill('');
    await form.getByRole('button', { name: 'Count only' }).click();
    await says('it counts', /Counting begins/);
    await shows('what there is', /Complete[^]*Only counting[^]*0 of 1[^]*0\sB \/ 700\sB/);
    await form.getByLabel('Newer than').fill('1h');
    await form.getByRole('button', { name: 'Run now' }).click();
    await says('it fetches', /warmup begins/);
    await until(
      'it is fetched',
      async () => /1h[^]*Complete[^]*1 of 1/.test(await page.locator('tbody').innerText()),
      {
        timeoutMs: 20_000,
      },
    );
    watched.assertClean();
    await watched.context.close();
  });

  it('draws QR codes on a card when somebody opens them, and leaves them open while the card changes', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    let asked = 0;
    page.on('request', (request) => (asked += request.url().includes('/parts/share-qr/') ? 1 : 0));
    await page.goto(`${origin()}/`);
    const card = page.locator('.share[data-share="团队 team"]');
    const codes = card.locator('.phone svg.qr');
    await until('the address', async () => (await card.locator('.addresses li').count()) === 1, {
      timeoutMs: 10_000,
    });
    assert.equal(await page.locator('svg.qr').count(), 0);
    assert.equal(asked, 0);
    await card.locator('summary').click();
    await until('its code', async () => (await codes.count()) === 1, { timeoutMs: 5_000 });
    assert.match(await card.locator('.phone').innerText(), /WebDAV http:\/\/(?!127\.)[^/]+:\d+\/团队 team\//);
    assert.equal(await page.locator('svg.qr').count(), 1);
    assert.equal(asked, 1);
    await watched.assertAccessible('an open code');
    // Its reason is part of the card's markup.
    await daemon.writeConfig(`${daemon.text()}\n[plugins.mount]\nenabled = false\n`);
    await until('the card is drawn anew', async () => (await card.locator('.reason').count()) === 1, {
      timeoutMs: 15_000,
    });
    assert.equal(await codes.count(), 1);
    await daemon.writeConfig(daemon.text());
    await until('and once more', async () => (await card.locator('.reason').count()) === 0, {
      timeoutMs: 15_000,
    });
    assert.equal(await codes.count(), 1);
    const port = await freePort();
    await daemon.writeConfig(
      daemon.text({ sections: { webdav: { enabled: true, port, listen: '0.0.0.0' } } }),
    );
    await until('another address', async () => (await card.innerText()).includes(`:${port}/`), {
      timeoutMs: 15_000,
    });
    assert.equal(await codes.count(), 0, 'no code of the former address');
    await card.locator('summary').click();
    await until('its code', async () => (await codes.count()) === 1, { timeoutMs: 5_000 });
    assert.ok((await card.locator('.phone').innerText()).includes(`:${port}/`));
    watched.assertClean();
    await watched.context.close();
    await daemon.writeConfig(daemon.text());
  });

  it('draws charts in the colours of the theme when the system turns dark, and keeps the opened folder', async () => {
    const watched = await WatchedPage.open(browser, origin(), { colorScheme: 'light' });
    const { page } = watched;
    await page.addInitScript(INKS);
    await page.goto(`${origin()}/shares/files`);
    const charts = (): Promise<unknown> =>
      until('charts', async () => (await page.locator('.chart canvas').count()) === 3, { timeoutMs: 10_000 });
    const ink = async (): Promise<string | undefined> =>
      (await page.evaluate<readonly string[]>('inks')).at(-1);
    await charts();
    await page.locator('.browser').scrollIntoViewIfNeeded();
    const row = (name: string) => page.locator('.browser tr', { hasText: name });
    await row('sub').locator('button').click({ timeout: 15_000 });
    await row('b.txt').waitFor({ timeout: 15_000 });
    const light = await ink();
    await page.emulateMedia({ colorScheme: 'dark' });
    await until('another ink', async () => (await ink()) !== light, { timeoutMs: 10_000 });
    await charts();
    assert.equal(await row('b.txt').count(), 1, 'the folder is open');
    watched.assertClean();
    await watched.context.close();
  });

  it('names the day in a chart where the day begins for the reader', async () => {
    const { context, page } = await WatchedPage.open(browser, origin(), { timezoneId: 'Asia/Shanghai' });
    const begin = Date.UTC(2026, 10, 20) / 1_000;
    // Nothing is known of the first two days: they are part of what is asked for all the same.
    const points = Array.from({ length: 24 }, (_, hour) => [begin + (hour + 48) * 3_600, 1, 1, 1]);
    const [from, end] = [begin, begin + 72 * 3_600];
    await page.route('**/dashboard/charts/**', (route) =>
      route.fulfill({ json: { stepSeconds: 3_600, from, until: end, points } }),
    );
    await page.addInitScript(`(() => {
      window.written = [];
      const { fillText } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.fillText = function (...args) {
        window.written.push(args[0]);
        return fillText.apply(this, args);
      };
    })()`);
    await page.goto(`${origin()}/shares/files`);
    const written = (): Promise<readonly string[]> => page.evaluate('window.written');
    await until('charts', async () => (await page.locator('.chart canvas').count()) === 3, {
      timeoutMs: 5_000,
    });
    await until('the days', async () => (await written()).includes('Nov 21'), { timeoutMs: 5_000 });
    assert.deepEqual(
      (await written()).filter((label) => /^0?12:00.AM$/.test(label)),
      [],
    );
    await context.close();
  });

  it('leads to every file that waits, also where there are hundreds, and keeps each portion up to date', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    await page.goto(`${origin()}/shares/files`);
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Pause for 1 hour' }).click();
    const panel = page.locator('#frame-uploads');
    const write = (from: number, to: number): Promise<unknown> =>
      Promise.all(
        Array.from({ length: to - from }, (_, at) =>
          writeFile(`${daemon.mountPoint('files')}/n${from + at}.txt`, 'x'),
        ),
      );
    const rows = panel.locator('tbody tr');
    const says = (text: string): Promise<unknown> =>
      until(text, async () => (await panel.innerText()).includes(text), { timeoutMs: 30_000 });
    await says('Uploads are paused until');
    await write(0, 260);
    await says('1–200 of 260');
    const first = await rows.locator('th').allInnerTexts();
    await panel.getByRole('link', { name: 'Show the next 60' }).click();
    await says('201–260 of 260');
    assert.equal(new Set([...first, ...(await rows.locator('th').allInnerTexts())]).size, 260);
    await write(260, 261);
    await says('201–261 of 261');
    await panel.getByRole('link', { name: 'Show the 200 before' }).click();
    await says('1–200 of 261');
    await watched.assertAccessible('a long queue');
    watched.assertClean();
    await watched.context.close();
  });
});
