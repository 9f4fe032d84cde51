/** The times of a page that count from now, in real Chromium, with the page's own script. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import { SKIPS } from '../../runner/skips.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const ORIGIN = 'http://127.0.0.1:1';
const CLIENT = join(PROJECT, 'dist/plugins/dashboard/client');
const BEGIN = Date.UTC(2026, 5, 1, 12);
/** Between two ticks of the page. */
const AT = BEGIN - 500;

describe('times on a page', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let page: Page;
  const time = (at: number, style = 'ago'): string => `<time data-at="${at}" data-style="${style}">?</time>`;
  const texts = () => page.locator('time').allInnerTexts();
  /** As the page does when a part has been drawn anew. */
  const draw = (id: string, markup: string): Promise<unknown> =>
    page.evaluate(`(() => {
      const part = document.getElementById('${id}');
      part.innerHTML = '${markup}';
      part.dispatchEvent(new CustomEvent('htmx:afterSettle', { bubbles: true }));
    })()`);

  before(async () => {
    scratch = await createScratch('times');
    page = await (await openBrowser(scratch)).newPage();
    await page.clock.install({ time: BEGIN });
    await page.clock.pauseAt(BEGIN + 1_000);
    await page.route(`${ORIGIN}/**`, async (route) => {
      const name = new URL(route.request().url()).pathname;
      const body = `<!doctype html><html lang="en"><p id="a">${time(AT)}</p><p id="b">${time(AT)}</p>`;
      if (name === '/') await route.fulfill({ body, contentType: 'text/html' });
      else await route.fulfill({ path: join(CLIENT, name) });
    });
    await page.goto(`${ORIGIN}/`);
    await page.addScriptTag({ url: `${ORIGIN}/times.js`, type: 'module' });
  });
  after(() => scratch.close());

  it('say the same of the same moment, though one of them was drawn later', async () => {
    for (let step = 0; step < 12; step += 1) {
      await page.clock.runFor(700);
      await draw('b', time(AT));
      await page.clock.runFor(50);
      const [first, second] = await texts();
      assert.equal(second, first, `after ${step + 1} steps`);
    }
    assert.match((await texts())[0] ?? '', /^(9|10|11) seconds ago$/);
  });

  it('go on by themselves', async () => {
    await page.clock.runFor(60_000);
    assert.deepEqual(await texts(), ['1 minute ago', '1 minute ago']);
  });
});
