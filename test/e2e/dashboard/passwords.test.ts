// @load loud
/** The first password, another one, and the page to sign in, in real Chromium beside the real daemon. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { hasBrowser } from '../../support/dashboard/chromium.ts';
import { press, write } from '../../support/dashboard/keyboard.ts';
import { openSettings, put, verdict } from '../../support/dashboard/settings-page.ts';
import type { SettingsPages } from '../../support/dashboard/settings-page.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { sleep, until } from '../../support/platform/wait.ts';

describe('passwords on the dashboard', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let pages: SettingsPages;
  let password = 'a longer "password"';

  before(async () => {
    scratch = await createScratch('passwords');
    pages = await openSettings(scratch);
  });
  after(() => scratch.close());

  it('offers to set a password while there is none, which stays once somebody signs in with it', async () => {
    const watched = await WatchedPage.open(pages.browser, pages.origin);
    const { page } = watched;
    await page.goto(`${pages.origin}/`);
    const card = page.locator('#frame-password');
    // One that is refused leaves the page as it was, with a stream of its own.
    const refusal = '<span class="outcome" data-tone="bad">refused</span>';
    await page.route(
      '**/do/password/set',
      (route) => route.fulfill({ contentType: 'text/html', body: refusal }),
      {
        times: 1,
      },
    );
    const reopened = page.waitForRequest(/\/dashboard\/events/, { timeout: 10_000 });
    await write(card.locator('input'), password);
    await press(card.locator('button'));
    await reopened;
    assert.equal(await page.locator('#lost').isVisible(), false);
    await press(page.locator('.notices a[href="#frame-password"]'));
    await until(
      'the form is in sight',
      async () =>
        page.evaluate<boolean>(
          '(({ top, bottom }) => top >= 0 && bottom <= innerHeight)' +
            '(document.querySelector("#frame-password").getBoundingClientRect())',
        ),
      { timeoutMs: 3_000 },
    );
    assert.match(await card.innerText(), /Everybody with an account on this machine/);
    const [reader, writer] = [
      await WatchedPage.open(pages.browser, pages.origin),
      await WatchedPage.open(pages.browser, pages.origin),
    ];
    await reader.page.goto(`${pages.origin}/tabs/logs`);
    await writer.page.goto(`${pages.origin}/tabs/settings`);
    await put(writer, 'cache.max_size', '7G');
    await verdict(writer, 'good');
    await write(card.locator('input'), password);
    await press(card.locator('button'));
    // Others are told, without an error in their console, and what they have typed stays.
    await reader.page.waitForURL(/\/sign-in\?back=/, { timeout: 20_000 });
    await writer.page.locator('#lost a').waitFor({ timeout: 20_000 });
    assert.match(await writer.page.locator('#lost').innerText(), /not signed in any more/);
    for (const other of [reader, writer]) {
      other.assertClean();
      await other.context.close();
    }
    const way = page.locator('#lost a');
    await way.waitFor({ timeout: 20_000 });
    assert.match(await page.locator('#lost').innerText(), /not signed in any more/);
    assert.equal(await card.locator('input').inputValue(), password, 'what was typed is still there');
    // Longer than a browser waits before it opens a stream anew.
    await sleep(6_000);
    watched.assertClean();
    await press(way);
    await page.waitForURL(`${pages.origin}/sign-in?back=%2F`);
    watched.assertClean();
    await watched.signIn('a shorter one');
    assert.match(await page.locator('[role=alert]').innerText(), /password is wrong/);
    const proved = page.waitForResponse(/\/do\/settings\/reached$/);
    await watched.signIn(password);
    assert.equal((await proved).status(), 200);
    assert.equal(await card.isVisible(), false, 'there is nothing to say any more');
    await page.goto(`${pages.origin}/tabs/settings`);
    assert.equal(await page.locator('#trial').count(), 0, 'no share takes it back');
    assert.ok(!(await pages.file()).includes('********'));
    await watched.context.close();
  });

  it('keeps a password that was changed in the editor, once somebody signs in with it', async () => {
    const watched = await WatchedPage.open(pages.browser, pages.origin);
    const { page } = watched;
    page.on('dialog', (dialog) => void dialog.accept());
    await page.goto(`${pages.origin}/tabs/settings`);
    await watched.signIn(password);
    await page.waitForURL(`${pages.origin}/tabs/settings`);
    password = 'another, longer';
    await put(watched, 'web.password', password);
    await verdict(watched, 'good');
    await page.locator('button.primary').click();
    await page.locator('#lost a').click({ timeout: 20_000 });
    await page.waitForURL(/\/sign-in/);
    const proved = page.waitForResponse(/\/do\/settings\/reached$/);
    await watched.signIn(password);
    assert.equal((await proved).status(), 200);
    await page.locator('#trial').waitFor({ state: 'detached', timeout: 10_000 });
    assert.match(await pages.file(), /another, longer/);
    await watched.context.close();
  });

  it('leads a browser to the page to sign in, back to the page that it asked for, and out again', async () => {
    const small = { locale: 'zh-CN', viewport: { width: 360, height: 740 } };
    const watched = await WatchedPage.open(pages.browser, pages.origin, small);
    const { context, page } = watched;
    const asked = '/tabs/logs?level=warn';
    await page.goto(`${pages.origin}${asked}`);
    const form = `${pages.origin}/sign-in?back=${encodeURIComponent(asked)}`;
    assert.equal(page.url(), form);
    await watched.assertAccessible('the page to sign in');
    const tooWide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    assert.ok((await page.evaluate<number>(tooWide)) <= 0);
    await watched.signIn(password);
    await page.waitForURL(`${pages.origin}${asked}`);
    await page.locator('header nav').waitFor();
    watched.assertClean();
    const other = await context.newPage();
    await other.goto(`${pages.origin}/`);
    await other.locator('form[action="/sign-out"] button').click();
    await other.waitForURL(`${pages.origin}/sign-in`);
    // The first one is told, and has no error in its console.
    await page.waitForURL(form, { timeout: 5_000 });
    watched.assertClean();
    await context.close();
  });
});
