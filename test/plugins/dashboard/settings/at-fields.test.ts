/** Problems at the fields of the form: in real Chromium, with the page's own script. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { Page } from 'playwright-core';
import type { ConfigKey } from '../../../../core/contract/config.ts';
import { SKIPS } from '../../../runner/skips.ts';
import { PROJECT } from '../../../runner/test-files.ts';
import { hasBrowser, openBrowser } from '../../../support/dashboard/chromium.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { CATALOGUES } from '../../../../plugins/dashboard/languages.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { fieldsPanel } from '../../../../plugins/dashboard/settings/fields.ts';

const ORIGIN = 'http://127.0.0.1:1';
const CLIENT = join(PROJECT, 'dist/plugins/dashboard/client');
const KEY: ConfigKey = {
  path: 'web.hostnames',
  type: 'array of string',
  description: '',
  translations: {},
  default: [],
  tier: 'live',
  secret: false,
  fileOnly: false,
  owner: 'core',
};
const KEYS: readonly ConfigKey[] = [
  KEY,
  { ...KEY, path: 'web.tokens[].name', type: 'string' },
  { ...KEY, path: 'connections[].options', type: 'table' },
  { ...KEY, path: 'groups', type: 'table' },
];
const DOCUMENT = {
  web: { tokens: [{ name: 'a' }, { name: 'b' }] },
  connections: [{ name: 'nas', options: { host: 'h' } }],
  groups: { 'my team': ['anna'], 'a.b': [], a_b: [] },
};

describe('problems at the fields of the form', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let page: Page;
  before(async () => {
    await loadLibraries();
    const tab = { id: 'settings', title: 'Settings', texts: CATALOGUES, render: () => null };
    const form = toHtml(fieldsPanel(DOCUMENT, KEYS, createView({ language: 'en', host: 'h', tab })));
    scratch = await createScratch('at-fields');
    page = await (await openBrowser(scratch)).newPage();
    await page.route(`${ORIGIN}/**`, async (route) => {
      const name = new URL(route.request().url()).pathname;
      const body = `<!doctype html><main>${form}<div id="settings-verdict"></div></main>`;
      if (name === '/') await route.fulfill({ body, contentType: 'text/html' });
      else await route.fulfill({ path: join(CLIENT, name) });
    });
    await page.goto(`${ORIGIN}/`);
    await page.addScriptTag({ url: `${ORIGIN}/settings.js`, type: 'module' });
  });
  after(() => scratch.close());

  /** As the answer to a check brings them. */
  const found = (problems: Readonly<Record<string, string>>): Promise<void> =>
    page.evaluate(`(() => {
      const items = Object.entries(${JSON.stringify(problems)}).map(([path, message]) => {
        const item = document.createElement('p');
        item.dataset.problem = path;
        item.dataset.message = message;
        return item;
      });
      document.getElementById('settings-verdict').replaceChildren(...items);
      document.dispatchEvent(new Event('htmx:afterSettle'));
    })()`);

  it('stand one below the other, and go when they are mended', async () => {
    await found({ 'web.hostnames[0]': 'the first is wrong', 'web.hostnames[1]': 'so is the second' });
    const field = page.locator('[data-field="web.hostnames"]');
    const input = field.locator('input');
    assert.match(await field.innerText(), /the first is wrong\s*\n\s*so is the second/);
    assert.equal(await input.getAttribute('aria-invalid'), 'true');
    const [, described = ''] = (await input.getAttribute('aria-describedby'))?.split(' ') ?? [];
    assert.match(await page.locator(`[id="${described}"]`).innerText(), /the first/);
    await found({});
    assert.doesNotMatch(await field.innerText(), /wrong|second/);
    assert.equal(await input.getAttribute('aria-invalid'), null);
  });

  it('are of the item where no field of it has them, and the item is opened', async () => {
    const item = page.locator('[data-holds="web.tokens[1]"]');
    await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = false;');
    await found({
      'web.tokens[1]': 'neither role nor verbs',
      'connections[0].options': 'neither pass nor key',
    });
    assert.equal(await item.locator('> .problems').innerText(), 'neither role nor verbs');
    assert.equal(await page.locator('[data-holds="web.tokens[0]"] .problem').count(), 0);
    const connection = page.locator('[data-holds="connections[0]"]');
    assert.equal(await connection.locator('> .problems').innerText(), 'neither pass nor key');
    await found({ 'web.tokens[1].name': 'twice', web: 'of the section' });
    assert.equal(await page.locator('[data-field="web.tokens[1].name"] .problem').innerText(), 'twice');
    assert.equal(await item.locator('> .problems .problem').count(), 0);
    assert.equal(await page.locator('[data-section="web"] > .problems').innerText(), 'of the section');
    await found({});
    assert.equal(await page.locator('.problem').count(), 0);
  });

  it('are at the field of a group whatever it is called, and no two fields are mixed up', async () => {
    await found({ 'groups."my team"': 'is no name', 'groups."a.b"[0]': 'is nobody' });
    const said = (name: string): Promise<string> =>
      page.locator('[data-section="groups"] .item', { hasText: name }).locator('.problems').innerText();
    assert.equal(await said('my team'), 'is no name');
    assert.equal(await said('a.b'), 'is nobody');
    assert.equal(await page.locator('.problem').count(), 2);
    const ids = await page.evaluate<string[]>('[...document.querySelectorAll("[id]")].map(({ id }) => id)');
    assert.equal(new Set(ids).size, ids.length);
  });
});
