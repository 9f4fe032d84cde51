// @load quiet
/** The page to sign in, in real Chromium: in the dashboard's colours, and in the theme that was chosen there. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { SKIPS } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const PASSWORD = 'the long way in';

/** What the eye sees of a page's ground, letters, card and main button. */
const LOOKS = `(() => {
  const style = (one) => getComputedStyle(document.querySelector(one));
  const primary = document.querySelector('button.primary') ?? document.querySelector('main button');
  return [
    getComputedStyle(document.documentElement).colorScheme.split(' ')[0],
    style(document.querySelector('.top') ? 'html' : 'body').backgroundColor,
    style('body').color,
    getComputedStyle(primary).backgroundColor,
    getComputedStyle(primary).borderRadius,
  ];
})()`;

describe('the page to sign in', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let browser: Browser;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;

  before(async () => {
    scratch = await createScratch('sign-in-page');
    daemon = await Daemon.create(scratch, { connections: [], shares: [] });
    await daemon.writeConfig(`connections = []\n${daemon.text()}`);
    await daemon.start();
    await daemon.submit(`connections = []\n${daemon.text({ sections: { web: { password: PASSWORD } } })}`);
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  it('looks as the dashboard does, whatever the system prefers', async () => {
    for (const [theme, colorScheme] of [
      ['dark', 'light'],
      ['light', 'dark'],
    ] as const)
      for (const locale of ['en', 'zh-CN']) {
        const watched = await WatchedPage.open(browser, origin(), {
          colorScheme,
          locale,
          viewport: { width: 360, height: 700 },
        });
        const { page, context } = watched;
        await page.goto(`${origin()}/tabs/setup`);
        const looksOf = async (): Promise<readonly string[]> => {
          // With its style sheet.
          await page.waitForLoadState('load');
          return page.evaluate<readonly string[]>(LOOKS);
        };
        const system = await looksOf();
        await watched.signIn(PASSWORD);
        await page.locator('button.primary').first().waitFor();
        assert.deepEqual(system.slice(1), (await looksOf()).slice(1), 'the system’s');
        await page.click(`footer button[value=${theme}]`);
        await page.locator(`html[data-theme=${theme}]`).waitFor();
        const dashboard = await looksOf();
        await context.clearCookies({ name: /(?<!language|theme)$/ });
        await page.goto(`${origin()}/sign-in`);
        const looks = await looksOf();
        assert.deepEqual(looks, dashboard, `${theme} on a system that prefers ${colorScheme}`);
        assert.notDeepEqual(looks, system);
        await watched.assertAccessible(`sign-in, ${theme}`);
        await watched.signIn('wrong');
        await page.locator('[role=alert]').waitFor();
        await watched.assertAccessible(`refused, ${theme}`);
        watched.takeFaults();
        await context.close();
      }
  });

  it('is listed in short, on narrow screens as well; one’s own is marked and ended after a question', async () => {
    const others = await WatchedPage.open(browser, origin());
    await others.page.goto(`${origin()}/tabs/setup`);
    await others.signIn(PASSWORD);
    await others.page.locator('.top').waitFor();
    for (const [width, locale] of [
      [360, 'en'],
      [768, 'zh-CN'],
    ] as const) {
      const watched = await WatchedPage.open(browser, origin(), {
        locale,
        viewport: { width, height: 800 },
        userAgent: `Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0.0.0 Safari/537.36 ${'long '.repeat(20)}`,
      });
      const { page, context } = watched;
      await page.goto(`${origin()}/tabs/sign-ins`);
      await watched.signIn(PASSWORD);
      const own = page.locator('tbody tr', { has: page.locator('.badge') });
      await own.waitFor();
      assert.match(await own.innerText(), /Chrome 120, Linux/);
      assert.doesNotMatch(await own.innerText(), /Mozilla/);
      assert.equal(await page.locator('tbody .badge').count(), 1);
      const { x = 0, width: wide = 0 } = (await own.locator('button').boundingBox()) ?? {};
      assert.ok(x > 0 && x + wide <= width, `the button ends at ${x + wide} of ${width} px`);
      await watched.assertAccessible(`sign-ins at ${width} px`);
      page.once('dialog', (dialog) => void dialog.dismiss());
      await own.locator('button').click();
      await page.reload();
      await own.waitFor();
      watched.assertClean();
      page.once('dialog', (dialog) => void dialog.accept());
      await own.locator('button').click();
      await page.waitForURL(/\/sign-in\?/);
      await context.close();
    }
    await others.page.reload();
    assert.equal(await others.page.locator('.top').count(), 1);
    await others.context.close();
  });
});
