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
    assert.match((await texts())[0] ?? '', /^(8|9|10|11) seconds ago$/);
  });

  it('go on by themselves', async () => {
    await page.clock.runFor(60_000);
    assert.deepEqual(await texts(), ['1 minute ago', '1 minute ago']);
  });

  it('are looked at again only when their text is another one, with all of the same moment', async () => {
    const begin = await page.evaluate<number>('Date.now()');
    const at = begin - 110_000;
    await draw('a', time(at));
    await draw('b', time(begin));
    await page.clock.runFor(50);
    await page.evaluate("document.querySelector('#a time').firstChild.data = 'not looked at'");
    await page.clock.runFor(8_000);
    assert.deepEqual((await texts())[0], 'not looked at');
    assert.match((await texts())[1] ?? '', /^[678] seconds ago$/);
    await page.clock.runFor(4_000);
    await draw('b', time(at));
    await page.clock.runFor(50);
    assert.deepEqual(await texts(), ['2 minutes ago', '2 minutes ago']);
  });

  it('go on with new figures, and by themselves every 2 seconds, since each time the page is drawn', async () => {
    const begin = await page.evaluate<number>('Date.now()');
    await draw('a', time(begin));
    await page.evaluate(`(async () => {
      window.frames = 0;
      new MutationObserver(() => (window.frames += 1))
        .observe(document.querySelector('#a'), { characterData: true, childList: true, subtree: true });
      window.tick = (await import('/times.js')).tick;
    })()`);
    await page.clock.runFor(12_000);
    const frames = await page.evaluate<number>('window.frames');
    assert.ok(frames >= 5 && frames <= 7, `${frames} in 12 seconds`);
    for (let cycle = 0; cycle < 4; cycle += 1) {
      await page.clock.runFor(700);
      const passed = await page.evaluate<number>('(window.tick(), Date.now())');
      assert.equal((await texts())[0], `${Math.floor((passed - begin) / 1_000)} seconds ago`);
    }
  });

  it('are to the second where what they tell of ends within a minute', async () => {
    await draw('a', time(Date.UTC(2026, 5, 1, 12, 34, 56), 'second'));
    await draw('b', time(Date.UTC(2026, 5, 1, 12, 34, 56), 'time'));
    await page.clock.runFor(50);
    const [first, second] = await texts();
    assert.match(first ?? '', /^\d+:34:56\s[AP]M$/);
    assert.match(second ?? '', /^\d+:34\s[AP]M$/);
  });

  it('go on where a script has copied them', async () => {
    const begin = await page.evaluate<number>('Date.now()');
    await draw('a', time(begin));
    await page.evaluate(
      "document.querySelector('#b').replaceChildren(document.querySelector('#a time').cloneNode(true))",
    );
    await page.clock.runFor(5_000);
    const [first, second] = await texts();
    assert.equal(second, first);
    assert.match(second ?? '', /^[345] seconds ago$/);
  });
});
