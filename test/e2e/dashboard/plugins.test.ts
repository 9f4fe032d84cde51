// @load loud
/**
 * The page of plugins in real Chromium: what broke off is switched on again, each plugin has a page with its
 * README as text, its keys stand in the settings, and code is installed at the command line alone.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Browser, Locator } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { inState, place, source } from '../../support/plugins/strangers.ts';
import { SKIPS } from '../../runner/skips.ts';

const README = `# garden <script>document.title = 'taken'</script>

<img src="/nowhere.png" onerror="document.title = 'taken'"> [a link](javascript:alert(1)) & "quotes" 花园
${'a-very-long-word'.repeat(40)}
`;
const WORD = `config: { schema: Joi.object({
  word: Joi.string().default('hello').description('What is said.').meta({ tier: 'live' }) }) },`;
const NAMES = ['garden', 'fragile', 'unlucky'] as const;

describe('the page of plugins', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let browser: Browser;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;

  before(async () => {
    scratch = await createScratch('plugin-page');
    const mended = JSON.stringify(scratch.path('mended'));
    await place(scratch, 'garden', source('garden', "ctx.effect('a bed', () => () => undefined);", WORD));
    await writeFile(scratch.path('plugins/garden/README.md'), README);
    await place(
      scratch,
      'fragile',
      `import { existsSync } from 'node:fs';\n${source(
        'fragile',
        `ctx.effect('timer', () => {
          setTimeout(() => { if (!existsSync(${mended})) process.exit(3); }, 200);
          return () => undefined; });`,
      )}`,
      { permissions: ['files'] },
    );
    await place(
      scratch,
      'unlucky',
      source('unlucky', "ctx.effect('x', () => { throw new Error('no luck'); });"),
    );
    daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      sections: {
        plugins: { dirs: [scratch.path('plugins')] },
        ...Object.fromEntries(NAMES.map((name) => [`plugins.${name}`, { enabled: true }])),
      },
    });
    await daemon.start(60_000);
    await inState(daemon, 'fragile', 'failed', 90_000);
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  const open = async (path: string, locale = 'en'): Promise<WatchedPage> => {
    const watched = await WatchedPage.open(browser, origin(), { locale });
    await watched.page.goto(`${origin()}${path}`);
    return watched;
  };
  const close = async (watched: WatchedPage): Promise<void> => {
    watched.assertClean();
    await watched.context.close();
  };
  const card = ({ page }: WatchedPage, name: string): Locator => page.locator(`#plugin-${name}`);
  const says = (what: Locator, text: RegExp): Promise<unknown> =>
    until(`it says ${text}`, async () => text.test(await what.innerText()), { timeoutMs: 30_000 });

  it('shows why a plugin is off after three deaths, and switches it on again', async () => {
    const watched = await open('/tabs/plugins');
    const fragile = card(watched, 'fragile');
    assert.match(
      await fragile.innerText(),
      /Failed[^]*in a process of its own[^]*ended 3 times within an hour/,
    );
    assert.doesNotMatch(await fragile.innerText(), /It is tried again when/);
    await writeFile(scratch.path('mended'), '');
    await fragile.getByRole('button', { name: 'Switch on again' }).click();
    await inState(daemon, 'fragile', 'active');
    await until('the page says so', async () => (await fragile.locator('.badge').innerText()) === 'On', {
      timeoutMs: 30_000,
    });
    assert.equal(await fragile.getByRole('button', { name: 'Switch on again' }).count(), 0);
    await close(watched);
  });

  it('says of another one that failed when it is tried again', async () => {
    const watched = await open('/tabs/plugins?plugin=unlucky');
    await says(card(watched, 'unlucky'), /It is tried again when its files or its configuration change\./);
    assert.equal(await card(watched, 'unlucky').getByRole('button', { name: 'Switch on again' }).count(), 0);
    await close(watched);
  });

  for (const [locale, words] of [
    [
      'en',
      [
        /runs in a process of its own/,
        /Holds now: a process of its own, a bed/,
        /Its keys, in the settings:/,
      ],
    ],
    [
      'zh-CN',
      [
        // Of a process of its own, what it holds, and its keys.
        /在独立进程中运行/,
        /当前持有： 一个独立进程、a bed/,
        /其配置项在设置中：/,
      ],
    ],
  ] as const) {
    it(`has a page for each plugin, its README as text and nothing else (${locale})`, async () => {
      const watched = await open('/tabs/plugins', locale);
      await card(watched, 'garden').getByRole('link', { name: 'garden' }).click();
      await watched.page.waitForURL(/plugin=garden/);
      const text = await watched.page.locator('main').innerText();
      for (const word of [...words, /\[plugins\.garden\]/]) assert.match(text, word);
      assert.equal(await watched.page.locator('pre.readme').textContent(), README);
      assert.doesNotMatch(await watched.page.title(), /taken/);
      assert.equal(await watched.page.locator('main img, main script').count(), 0);
      await watched.page.setViewportSize({ width: 360, height: 800 });
      assert.ok(
        await watched.page.evaluate<boolean>('document.documentElement.scrollWidth <= window.innerWidth'),
        'nothing sticks out on a phone',
      );
      await watched.assertAccessible(locale);
      await watched.page.goto(`${origin()}/tabs/plugins?plugin=smb`);
      assert.match(await watched.page.locator('pre.readme').innerText(), /^# smb/);
      await close(watched);
    });
  }

  it('has the keys of plugins in the form of the settings', async () => {
    const watched = await open('/tabs/settings');
    const { page } = watched;
    await page
      .locator('details')
      .evaluateAll((all) =>
        all.forEach((one) =>
          (one as unknown as { setAttribute(name: string, value: string): void }).setAttribute('open', ''),
        ),
      );
    const field = page.locator('[data-field="plugins.garden.word"] input');
    await field.fill('good morning');
    await field.press('Tab');
    await page.locator('#settings-verdict [data-verdict="good"]').waitFor({ timeout: 10_000 });
    assert.match(
      await page.locator('#settings-text').inputValue(),
      /\[plugins\.garden\]\n[^[]*word = "good morning"/,
    );
    assert.equal(await page.locator('[data-field="plugins.garden.enabled"]').count(), 0);
    await close(watched);
  });

  it('installs nothing: it shows the command, to be copied', async () => {
    const watched = await open('/tabs/plugins');
    const copy = watched.page.locator('button[data-copy="mountkeeper plugin install PACKAGE"]');
    await copy.click();
    await says(copy, /Copied/);
    const { text } = await daemon.request('POST', '/dashboard/do/plugins/install', 'package=garden', {
      'content-type': 'application/x-www-form-urlencoded',
    });
    assert.match(text, /The configuration file does not allow this: nothing is installed from this page\./);
    await watched.assertAccessible('all plugins');
    await close(watched);
  });
});
