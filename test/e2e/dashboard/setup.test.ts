// @load loud
/**
 * From an empty configuration to a file read over SMB, by the page alone, in real Chromium beside the real
 * daemon.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { smb } from '../../support/exports/client-programs.ts';
import { Nas, NAS_PASSWORD, NAS_USER } from '../../support/nas/nas.ts';
import { press, write } from '../../support/dashboard/keyboard.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { until } from '../../support/platform/wait.ts';

/** A new owner has five minutes; the page and the daemon take none of them away. */
const LONGEST_MS = 60_000;

describe('the first run', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let nas: Nas;
  let browser: Browser;
  let port: number;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;

  before(async () => {
    scratch = await createScratch('first-run');
    nas = await Nas.create(scratch, {
      files: { 'Photos/2024/a.raw': 3_000, 'Team <b>/plan.pdf': 900, 'other/x': 1 },
    });
    port = await freePort();
    daemon = await Daemon.create(scratch, {
      connections: [],
      shares: [],
      sections: { smb: { port, listen: ['127.0.0.1'] } },
    });
    await daemon.writeConfig(`# mine\nconnections = []\n${daemon.text()}`);
    await daemon.start();
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  it('is accessible in both themes and languages, as the guide and as the page without a share', async () => {
    for (const [colorScheme, locale, width] of [
      ['light', 'zh-CN', 1440],
      ['dark', 'en', 360],
    ] as const) {
      const watched = await WatchedPage.open(browser, origin(), {
        colorScheme,
        locale,
        viewport: { width, height: 800 },
      });
      for (const path of ['/?overview=yes', '/tabs/setup']) {
        await watched.page.goto(`${origin()}${path}`);
        await watched.assertAccessible(`${path} ${colorScheme} ${locale}`);
      }
      watched.assertClean();
      await watched.context.close();
    }
  });

  it('leads from the address of a NAS to a file over SMB within a minute, by keyboard alone', async () => {
    const began = performance.now();
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    await page.goto(`${origin()}/`);
    assert.equal(new URL(page.url()).pathname, '/tabs/setup', 'without a share the page is the guide');
    const outcome = page.locator('#guide-outcome');
    const heading = (text: string) =>
      page.locator('#guide h2', { hasText: text }).waitFor({ timeout: 30_000 });
    const sftp = page.locator('input[name=kind][value=sftp]');
    /** From the last step to the first one and back again: no answer is lost, and no password comes to the page. */
    const leadsBackAndForth = async (): Promise<void> => {
      const back = page.locator('#guide button', { hasText: 'Back' });
      const typed = (name: string) => page.locator(`#guide input[name=${name}]`).inputValue();
      const lines = await page.locator('#guide .lines li').allInnerTexts();
      await press(back);
      await heading('Who may use them?');
      assert.deepEqual([await typed('user'), await typed('password')], ['ada', '']);
      await press(back);
      await heading('Which folders?');
      assert.deepEqual(await page.locator('.folders input:checked + bdi').allInnerTexts(), ['2024']);
      assert.match(await page.locator('#guide').innerText(), /Team <b>/);
      await press(back);
      await heading('Where is the NAS?');
      assert.ok(await sftp.isChecked());
      assert.deepEqual(
        [await typed('address'), await typed('user'), await typed('password')],
        [`127.0.0.1:${nas.port}`, NAS_USER, ''],
      );
      await watched.assertAccessible('the first step, come back to');
      for (const next of ['Which folders?', 'Who may use them?', 'Is this right?']) {
        await press(page.locator('#guide button.primary'));
        await heading(next);
      }
      assert.deepEqual(await page.locator('#guide .lines li').allInnerTexts(), lines);
    };
    await press(page.locator('input[name=kind]:checked'), 'ArrowDown');
    assert.ok(await sftp.isChecked());
    await write(page.locator('input[name=address]'), `127.0.0.1:${nas.port}`);
    await write(page.locator('input[name=user]'), NAS_USER);
    await write(page.locator('input[name=password]'), 'wrong');
    await press(page.locator('button.primary'));
    await until(
      'the reason of the refusal',
      async () => /password|auth|login|denied|unable/i.test(await outcome.innerText()),
      { timeoutMs: 30_000 },
    );
    await write(page.locator('input[name=password]'), NAS_PASSWORD);
    await page.keyboard.press('Enter');
    await heading('Which folders?');
    assert.deepEqual(await page.locator('.folders label bdi').allInnerTexts(), [
      'other',
      'Photos',
      'Team <b>',
    ]);
    await watched.assertAccessible('folders');
    await press(page.locator('.folders li', { hasText: 'Team' }).locator('input'), 'Space');
    await press(page.locator('.folders li', { hasText: 'Photos' }).locator('button'));
    await until(
      'the folder below',
      async () => (await page.locator('.folders label bdi').allInnerTexts()).join() === '2024',
      { timeoutMs: 30_000 },
    );
    await press(page.locator('.folders input'), 'Space');
    await press(page.locator('button.primary'));
    await heading('Who may use them?');
    await write(page.locator('input[name=user]'), 'ada');
    await write(page.locator('input[name=password]'), 'love lace');
    await press(page.locator('button.primary'));
    await heading('Is this right?');
    assert.deepEqual(await page.locator('#guide .lines li').allInnerTexts(), [
      `The NAS 127.0.0.1:${nas.port} is connected, signed in as ${NAS_USER}.`,
      'Its folder /Photos/2024 becomes the share 2024.',
      'Its folder /Team <b> becomes the share Team -b-.',
      'Whoever signs in as ada, with the password from the last step, may read and write over SMB (Finder, ' +
        'Explorer, Linux).',
      `They are reached at 127.0.0.1, port ${port}, and nowhere else.`,
    ]);
    assert.equal(await page.locator('#guide .difference').isVisible(), false);
    await press(page.locator('#guide summary'));
    assert.match(await page.locator('#guide .difference').innerText(), /shares\.2024: added/);
    await watched.assertAccessible('review');
    await leadsBackAndForth();
    assert.ok(
      !(await page.content()).includes(NAS_PASSWORD) && !(await page.content()).includes('love lace'),
      'no password comes back',
    );
    await press(page.locator('button.primary'));
    await heading('It is set up');
    assert.equal(await page.locator('main').getByRole('link', { name: 'Overview' }).count(), 1);
    assert.match(await page.locator('#guide').innerText(), new RegExp(`smb://127\\.0\\.0\\.1:${port}/2024`));
    await until(
      'the file over SMB',
      async () => (await smb('2024', 'ls a.raw', { port, user: 'ada%love lace' })).code === 0,
      { timeoutMs: 40_000 },
    );
    const tookMs = performance.now() - began;
    assert.ok(tookMs < LONGEST_MS, `it took ${tookMs} ms`);
    await page.goto(`${origin()}/`);
    assert.deepEqual((await page.locator('.share h3').allInnerTexts()).sort(), ['2024', 'Team -b-']);
    assert.match(await readFile(daemon.configFile, 'utf8'), /^# mine\n/);
    watched.assertClean();
    await watched.context.close();
  });

  it('asks nothing of a NAS that the API may not bring in', async () => {
    const ask = (address: string, kind: string) =>
      daemon.request(
        'POST',
        '/dashboard/do/setup/try',
        new URLSearchParams({ kind, address, user: 'u', password: 'p' }).toString(),
        { 'content-type': 'application/x-www-form-urlencoded' },
      );
    assert.match((await ask('/etc', 'local')).text, /data-tone="bad"/);
    assert.match((await ask('a b', 'sftp')).text, /give a name or an address/);
  });
});
