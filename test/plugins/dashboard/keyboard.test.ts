/** Updates that redraw what has the focus: in real Chromium, with the page's own scripts. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { SKIPS } from '../../runner/skips.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { hasFocus, press } from '../../support/dashboard/keyboard.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const ORIGIN = 'http://127.0.0.1:1';
const CLIENT = join(PROJECT, 'dist/plugins/dashboard/client');
const MORPH = fileURLToPath(new URL('../dist/idiomorph.js', import.meta.resolve('idiomorph')));
const BODY = `<!doctype html>
  <a href="#main">skip</a><main id="main" tabindex="-1"><div class="slot" id="slot">
  <article class="card"><button>One</button><button>Two</button></article></div></main>`;

describe('somebody without a mouse', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let page: Page;
  before(async () => {
    scratch = await createScratch('keyboard');
    page = await (await openBrowser(scratch)).newPage();
    await page.route(`${ORIGIN}/**`, async (route) => {
      const name = new URL(route.request().url()).pathname;
      if (name === '/') await route.fulfill({ body: BODY, contentType: 'text/html' });
      else await route.fulfill({ path: join(CLIENT, name) });
    });
    await page.goto(`${ORIGIN}/`);
  });
  after(() => scratch.close());

  it('stays at the panel whose button an update has taken away, whatever is drawn in it later', async () => {
    await page.addScriptTag({ path: MORPH });
    for (const name of ['outcomes.js', 'focus.js'])
      await page.addScriptTag({ url: `${ORIGIN}/${name}`, type: 'module' });
    const draw = (text: string): Promise<unknown> =>
      page.evaluate(`new Promise((resolve) => {
        Idiomorph.morph(document.getElementById('slot'), '<article class="card"><p>${text}</p></article>',
          { morphStyle: 'innerHTML' });
        // As htmx does.
        setTimeout(() => {
          document.dispatchEvent(new CustomEvent('htmx:afterSettle'));
          requestAnimationFrame(() => requestAnimationFrame(resolve));
        }, 20);
      })`);
    const card = page.locator('.card');
    await press(page.locator('button', { hasText: 'Two' }), 'Shift');
    for (const text of ['done', 'one file', 'two files']) {
      await draw(text);
      assert.ok(await hasFocus(card), text);
    }
  });
});
