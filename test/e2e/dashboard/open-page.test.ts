// @load loud
/** What an open page does while what it shows goes and comes: plugins, what they draw, answers to clicks, daemons. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Browser, Route } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { press } from '../../support/dashboard/keyboard.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { sleep, until, within } from '../../support/platform/wait.ts';

/** A poll cycle of this daemon, and a second. */
const SOON_MS = 2_500;

describe('an open page', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let browser: Browser;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;

  before(async () => {
    scratch = await createScratch('open-page');
    const nas = await Nas.create(scratch, { files: { 'a.txt': 500, 'sub/b.txt': 700 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [
        { name: 'files', connection: 'nas' },
        { name: '团队 team', connection: 'nas', remote_path: 'sub' },
      ],
      sections: {
        webdav: { enabled: true, port: await freePort() },
        warmup: { auto: false, rules: ['files', '团队 team'].map((share) => ({ share, path: '' })) },
      },
    });
    await daemon.start();
    await daemon.healthy();
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  const shows = (what: string, condition: () => Promise<boolean>, timeoutMs = SOON_MS): Promise<boolean> =>
    until(what, condition, { timeoutMs, everyMs: 20 });

  it('switches a plugin off and on, keeps notes in the file, and its tab goes and comes', async () => {
    const text = `# Ada's notes\n${daemon.text()}\n[plugins.warmup] # mine\n# it is on\nenabled = true\n`;
    const version = async (): Promise<string | null> =>
      (await fetch(`${origin()}/api/config`)).headers.get('etag');
    const before = await version();
    await daemon.writeConfig(text);
    await until('it is in force', async () => (await version()) !== before, { timeoutMs: 10_000 });
    const page = await WatchedPage.open(browser, origin());
    await page.page.goto(`${origin()}/tabs/plugins`);
    const card = page.page.locator('#plugin-warmup');
    page.page.on('dialog', (dialog) => void dialog.accept());
    const click = async (label: string): Promise<void> => {
      await until(
        `the page offers: ${label}`,
        async () => {
          await press(card.locator('button', { hasText: label }));
          return true;
        },
        { timeoutMs: 15_000 },
      );
    };
    const home = await WatchedPage.open(browser, origin());
    await home.page.goto(`${origin()}/`);
    /** What an open page offers of the plugin: its tab, and a button at each share. */
    const offered = async (): Promise<readonly number[]> => [
      await home.page.locator('header nav a[href="/tabs/warmup"]').count(),
      await home.page.locator('.shares form[action^="/dashboard/do/warmup"]').count(),
    ];
    assert.deepEqual(await offered(), [1, 2]);
    await click('Switch off');
    await shows('it is off', async () => /^Off$/.test(await card.locator('.badge').innerText()), 10_000);
    await shows('it is nowhere on an open page', async () => (await offered()).join() === '0,0');
    const link = page.page.locator('header nav a[href="/tabs/warmup"]');
    await shows('nor in the links of this one', async () => (await link.count()) === 0);
    assert.equal(
      await page.page.locator('header nav a[aria-current=page]').getAttribute('href'),
      '/tabs/plugins',
    );
    assert.equal((await daemon.get('/tabs/warmup')).status, 404);
    assert.equal(
      await readFile(daemon.configFile, 'utf8'),
      text.replace('# it is on\nenabled = true', '# it is on\nenabled = false'),
    );
    await click('Switch on');
    await shows('it is on', async () => /^On$/.test(await card.locator('.badge').innerText()), 10_000);
    await shows('an open page has it again', async () => (await offered()).join() === '1,2');
    home.assertClean();
    await home.context.close();
    await page.page.goto(`${origin()}/tabs/warmup`);
    assert.match(await page.page.locator('main').innerText(), /The whole share/);
    page.assertClean();
    await page.context.close();
  });

  it('says of a server whose plugin is switched off that it is off, though its section stays', async () => {
    const before = daemon.text();
    const page = await WatchedPage.open(browser, origin());
    await page.page.goto(`${origin()}/`);
    const card = page.page.locator('#frame-servers li', { hasText: 'WebDAV' });
    await daemon.writeConfig(`${before}\n[plugins.webdav]\nenabled = false\n`);
    await shows('it is off', async () => /WebDAV\s*Off/.test(await card.innerText()), 15_000);
    await daemon.writeConfig(before);
    await shows('it serves again', async () => /Serving/.test(await card.innerText()), 15_000);
    page.assertClean();
    await page.context.close();
  });

  it('has no error in the console while the plugin of its log is off', async () => {
    const before = daemon.text();
    const page = await WatchedPage.open(browser, origin());
    const answers: number[] = [];
    page.page.on('response', (response) => {
      if (response.url().includes('/parts/logs/more')) answers.push(response.status());
    });
    await page.page.goto(`${origin()}/tabs/logs`);
    await shows('new lines are asked for', async () => answers.includes(200), 10_000);
    await daemon.writeConfig(`${before}\n[plugins.logs]\nenabled = false\n`);
    await shows('the part is gone', async () => answers.includes(286), 15_000);
    page.assertClean();
    await page.page.getByText('The plugin of this page is switched off.').waitFor({ timeout: 10_000 });
    await daemon.writeConfig(before);
    await page.page.locator('#log-lines li').first().waitFor({ timeout: 10_000 });
    page.assertClean();
    await page.context.close();
  });

  it('says at the button that was pressed when what it does is gone, or nobody answers', async () => {
    for (const [locale, gone, unanswered] of [
      ['en', 'That is not there any more; load the page again.', /Mountkeeper did not answer/],
      ['zh-CN', '它已不存在，请重新加载页面。', /没有应答/],
    ] as const) {
      const page = await WatchedPage.open(browser, origin(), { locale });
      await page.page.goto(`${origin()}/`);
      const form = page.page.locator('.shares form[action^="/dashboard/do/warmup"]').first();
      page.page.on('dialog', (dialog) => void dialog.accept());
      let answer: (route: Route) => Promise<void> = (route) => route.abort();
      await page.page.route('**/dashboard/do/warmup-share/*', (route) => answer(route));
      const says = async (what: string, text: RegExp, then: typeof answer): Promise<void> => {
        answer = then;
        // What was said of the click before must not be taken for this one's answer.
        await form.locator('output').evaluate((one) => void Object.assign(one, { textContent: '' }));
        await form.locator('button').click();
        await shows(what, async () => text.test(await form.locator('output').innerText()));
      };
      const isGone = new RegExp(`^${gone}$`);
      await says('no connection', unanswered, (route) => route.abort());
      await says('an action that is not there', isGone, (route) =>
        route.continue({ url: `${origin()}/dashboard/do/gone/start` }),
      );
      await says("a proxy's own page", unanswered, (route) =>
        route.fulfill({ status: 502, contentType: 'text/html', body: '<h1>Bad Gateway</h1>' }),
      );
      for (const status of [403, 413, 429])
        await says(`a proxy's own page with ${status}`, unanswered, (route) =>
          route.fulfill({ status, contentType: 'text/html', body: '<h1>Slow down</h1>' }),
        );
      await says('JSON that is cut off', unanswered, (route) =>
        route.fulfill({ status: 502, contentType: 'application/json', body: '{"message":"Bad' }),
      );
      await says(
        'a refusal with a name that turns the text round',
        /^no \u27e8U\+202E\u27e9gpj\.exe\u240a$/,
        (route) => route.fulfill({ status: 409, json: { message: 'no \u202Egpj.exe\n' } }),
      );
      await says('a page without the dashboard', isGone, (route) =>
        route.fulfill({ status: 404, json: { message: 'Not Found' } }),
      );
      const faults = page.takeFaults();
      // The browser's own line of each.
      assert.deepEqual(
        faults.filter((fault) => !fault.startsWith('console: Failed to load resource')),
        [],
      );
      await page.context.close();
    }
  });

  it('keeps charts and the opened folder when a plugin with a panel goes and comes', async () => {
    const text = `${daemon.text()}\n[plugins.warmup]\nenabled = `;
    const { context, page } = await WatchedPage.open(browser, origin());
    await page.goto(`${origin()}/shares/files`);
    await shows('charts', async () => (await page.locator('.chart canvas').count()) === 3, 5_000);
    await press(page.locator('button', { hasText: '7 days' }));
    await page.locator('.browser').scrollIntoViewIfNeeded();
    await shows(
      'the root',
      async () => (await page.locator('.browser tr', { hasText: 'a.txt' }).count()) === 1,
      15_000,
    );
    const panels = await page.locator('section.panel').count();
    for (const [isOn, count] of [
      [false, panels - 1],
      [true, panels],
    ] as const) {
      await daemon.writeConfig(`${text}${isOn}\n`);
      await shows('the panel', async () => (await page.locator('section.panel').count()) === count, 20_000);
      assert.equal(await page.locator('.chart canvas').count(), 3);
      assert.equal(await page.locator('[data-choose=week]').getAttribute('aria-pressed'), 'true');
      assert.equal(await page.locator('.browser tr', { hasText: 'a.txt' }).count(), 1);
    }
    await daemon.writeConfig(daemon.text());
    await context.close();
  });

  it('keeps an outcome beside the button that was clicked, whatever moves around it', async () => {
    const page = await WatchedPage.open(browser, origin());
    await page.page.goto(`${origin()}/`);
    const form = (path: string, said = ''): string =>
      `<form class="act" hx-post="/x"><input type="hidden" name="path" value="${path}"><button>Go</button>` +
      `<output>${said && `<span class="outcome">${said}</span>`}</output></form>`;
    const after = await page.page.evaluate<readonly string[]>(`(() => {
      const card = document.querySelector('#frame-limit');
      const slot = card.querySelector('.slot');
      slot.innerHTML = ${JSON.stringify(`<p>${form('a', 'a goes')}</p><p>${form('b', 'b goes')}</p>`)};
      const update = (markup) => Idiomorph.morph(slot, markup, { morphStyle: 'innerHTML' });
      const said = () => [slot, card.querySelector('.told')].map((one) => one.innerText.replace(/\\s+/g, ' ').trim());
      update(${JSON.stringify(`<p>${form('a')}</p><p>${form('b')}</p>`)});
      const first = said();
      update(${JSON.stringify(`<p>${form('c')}</p>`)});
      return [...first, ...said()];
    })()`);
    assert.deepEqual(after, ['Go a goes Go b goes', '', 'Go', 'b goes'], 'it stays, or is told below');
    await page.context.close();
  });

  /** It ends the daemon, and comes last. */
  describe('and its line to the daemon', () => {
    let watched: WatchedPage;

    before(async () => {
      watched = await WatchedPage.open(browser, origin());
      await watched.page.goto(`${origin()}/`);
    });

    it('says that it has lost the daemon instead of showing old figures, and goes on by itself', async () => {
      await watched.listen();
      daemon.signal('SIGSTOP');
      const banner = watched.page.locator('#lost');
      await banner.waitFor({ state: 'visible', timeout: 15_000 });
      await until(
        'it says what is wrong',
        async () => /No word from Mountkeeper for 1[5-9] seconds/.test(await banner.innerText()),
        { timeoutMs: 8_000 },
      );
      assert.match(
        (await watched.aloud()).join(' | '),
        /^No word from Mountkeeper for 1\d seconds\.[^|]*$/,
        'once',
      );
      assert.equal(await watched.page.locator('html').getAttribute('data-stale'), '');
      daemon.signal('SIGCONT');
      await banner.waitFor({ state: 'hidden', timeout: 15_000 });
      await shows(
        'it is said aloud',
        async () => /heard again/.test((await watched.aloud()).at(-1) ?? ''),
        6_000,
      );
      // The line itself is cut: what has changed meanwhile is there when it is back.
      await watched.context.setOffline(true);
      await daemon.request('POST', '/api/bwlimit', { up: '7M', down: '0' });
      await sleep(500);
      await watched.context.setOffline(false);
      await shows(
        'what was missed',
        async () => /7\.0 MiB\/s/.test(await watched.page.locator('#card-limit').innerText()),
        15_000,
      );
      watched.takeFaults();
    });

    it('withdraws what it has said last as soon as the daemon was killed', async () => {
      const isStale = async (): Promise<boolean> =>
        (await watched.page.locator('html').getAttribute('data-stale')) === '';
      assert.equal(await isStale(), false);
      await daemon.end();
      await shows('that it is old', isStale, 5_000);
      assert.match(
        await watched.page.locator('#lost').innerText(),
        /No word from Mountkeeper for \d seconds?/,
      );
      await daemon.start();
      await daemon.healthy();
      await shows('that it is heard again', async () => !(await isStale()), 15_000);
      watched.takeFaults();
    });

    it('says that the shares are taken down when the daemon stops, not that they start', async () => {
      await watched.page.evaluate(`(() => {
        window.said = [];
        const look = () => window.said.push(document.querySelector('.sentence').innerText + document.querySelector(
          '.cards').innerText);
        new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
      })()`);
      const lineEnds = new Promise<void>((resolve) => {
        const look = (request: { url(): string }): void => {
          if (request.url().includes('/dashboard/events')) resolve();
        };
        watched.page.on('requestfinished', look);
        watched.page.on('requestfailed', look);
      });
      daemon.signal('SIGTERM');
      await daemon.exit(60_000);
      await within('all that it has said is on the page', 15_000, lineEnds);
      const said = (await watched.page.evaluate('window.said.join("\\n")')) as string;
      assert.match(said, /Being taken down; not known yet whether all is saved/);
      assert.doesNotMatch(said, /Starting|Waiting to start|Looking for the NAS/);
      watched.takeFaults();
    });
  });
});
