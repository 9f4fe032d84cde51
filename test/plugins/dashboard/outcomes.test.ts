/** What is said of a click, for as long as it is true: in real Chromium, with the page's own script. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Page } from 'playwright-core';
import { SKIPS } from '../../runner/skips.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

const ORIGIN = 'http://127.0.0.1:1';
const CLIENT = join(PROJECT, 'dist/plugins/dashboard/client');
const MORPH = fileURLToPath(new URL('../dist/idiomorph.js', import.meta.resolve('idiomorph')));
const READ_MS = 15_000;

const form = (id: string): string =>
  `<form id="${id}" hx-post="/${id}"><button>${id}</button><output></output></form>`;
const BODY = `<!doctype html><main>
  <article class="card"><div class="slot">${form('row')}</div><div class="told"></div>
    ${form('pause')}${form('on')}</article>
  <article class="card"><div class="slot actions"></div><div class="told"></div></article>
  <article class="card">${form('other')}</article></main>`;

/** As htmx does: the request, and its answer. */
const CLICK = `window.answer = (id, said) => {
  const elt = document.getElementById(id);
  const tell = (name) => elt.dispatchEvent(new CustomEvent('htmx:' + name, { bubbles: true, detail: { elt } }));
  tell('beforeRequest');
  elt.querySelector('output').innerHTML = said;
  tell('afterRequest');
}`;

describe('what came of a click', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let page: Page;
  before(async () => {
    scratch = await createScratch('outcomes');
    page = await (await openBrowser(scratch)).newPage();
    await page.clock.install();
    await page.route(`${ORIGIN}/**`, async (route) => {
      const name = new URL(route.request().url()).pathname;
      if (name === '/') await route.fulfill({ body: BODY, contentType: 'text/html' });
      else await route.fulfill({ path: join(CLIENT, name) });
    });
  });
  beforeEach(async () => {
    await page.goto(`${ORIGIN}/`);
    await page.addScriptTag({ path: MORPH });
    await page.addScriptTag({ url: `${ORIGIN}/outcomes.js`, type: 'module' });
    await page.evaluate(CLICK);
  });
  after(() => scratch.close());

  const outcome = (tone: string, text: string): string =>
    `<span class="outcome" data-tone="${tone}">${text}</span>`;
  const click = (id: string, said: string): Promise<void> =>
    page.evaluate(`answer(${JSON.stringify(id)}, ${JSON.stringify(said)})`);
  const said = (): Promise<string> =>
    page.evaluate(`[...document.querySelectorAll('output, .told')].map((one) => one.textContent)
      .filter((text) => text !== '').join('; ')`);

  it('goes with the next click on its card, and on no other card', async () => {
    await click('other', outcome('good', 'another card'));
    await click('pause', outcome('good', 'paused'));
    await click('on', outcome('bad', 'refused'));
    assert.equal(await said(), 'refused; another card');
    await click('pause', outcome('good', 'paused'));
    assert.equal(await said(), 'paused; another card');
  });

  it('goes by itself once it is read, unless it is a failure', async () => {
    await click('pause', outcome('good', 'paused'));
    await click('other', outcome('bad', 'refused'));
    await page.clock.fastForward(READ_MS - 1_000);
    assert.equal(await said(), 'paused; refused');
    await page.clock.fastForward(1_000);
    assert.equal(await said(), 'refused');
    await page.clock.fastForward(100 * READ_MS);
    assert.equal(await said(), 'refused');
  });

  it('waits for its reader while the page is behind another window', async () => {
    await click('pause', outcome('good', 'paused'));
    await page.evaluate(`Object.defineProperty(document, 'hidden', { get: () => window.isBehind, configurable: true });
      window.isBehind = true;`);
    await page.clock.fastForward(READ_MS);
    await page.evaluate('window.isBehind = false');
    await page.clock.fastForward(READ_MS - 1_000);
    assert.equal(await said(), 'paused');
    await page.clock.fastForward(1_000);
    assert.equal(await said(), '');
  });

  it('stays at the end of its panel when an update takes its button away, a failure until the next click', async () => {
    const emptied = `Idiomorph.morph(document.querySelector('.slot'), '<p>none</p>', { morphStyle: 'innerHTML' })`;
    await click('row', outcome('bad', 'refused'));
    await page.clock.fastForward(10 * READ_MS);
    await page.evaluate(emptied);
    await page.clock.fastForward(10 * READ_MS);
    assert.equal(await said(), 'refused');
    await click('on', outcome('good', 'goes on'));
    assert.equal(await said(), 'goes on');
    await page.clock.fastForward(READ_MS);
    assert.equal(await said(), '');
  });

  it('goes with its button where it is true no longer than that is there', async () => {
    await click('row', '<span class="outcome" data-tone="good" data-ends>it goes up next</span>');
    await page.evaluate(`Idiomorph.morph(document.querySelector('.slot'), '', { morphStyle: 'innerHTML' })`);
    assert.equal(await said(), '');
  });

  it('stays below a share’s buttons until there are others again', async () => {
    const shows = (...ids: readonly string[]): Promise<void> =>
      page.evaluate(`Idiomorph.morph(document.querySelector('.actions'),
        ${JSON.stringify(ids.map(form).join(''))}, { morphStyle: 'innerHTML' });
        document.dispatchEvent(new CustomEvent('htmx:sseMessage'))`);
    await shows('send', 'stop');
    await click('stop', outcome('good', 'paused'));
    await shows('resume');
    assert.equal(await said(), 'paused');
    await shows('resume');
    assert.equal(await said(), 'paused');
    await shows('send', 'stop');
    assert.equal(await said(), '', 'somebody has resumed elsewhere');
  });

  it('is not taken away where it is more than a sentence, as what is shown once alone', async () => {
    const token = `${outcome('good', 'made')}<code> t0ken</code>`;
    await click('pause', token);
    await click('on', outcome('good', 'goes on'));
    await page.clock.fastForward(10 * READ_MS);
    assert.equal(await said(), 'made t0ken');
  });
});
