// @load loud
/**
 * Plugins of others on the page, in real Chromium, where the file allows it: found, installed from a registry on
 * loopback, updated after a yes, removed; and refused where the file does not allow it, or nobody is asked.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Browser, Locator } from 'playwright-core';
import { makeHash } from '../../../plugins/auth/password-hash.ts';
import { hashToken, makeToken } from '../../../plugins/auth/token.ts';
import { SKIPS } from '../../runner/skips.ts';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { processesNaming } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { PackageRegistry } from '../../support/plugins/registry.ts';

const PASSWORD = 'page-pass-4711';
const PACKAGE = '@friend/mountkeeper-plugin-garden';
const WAIT = { timeoutMs: 60_000 };

describe('packages of plugins on the page', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let registry: PackageRegistry;
  let daemon: Daemon;
  let browser: Browser;
  let watched: WatchedPage;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;
  const authorization = `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}`;

  const text = (isAllowed: boolean, sections: Record<string, Record<string, unknown>> = {}): string =>
    daemon.text({
      sections: {
        web: { password: PASSWORD },
        plugins: { install_from_page: isAllowed },
        ...sections,
      } as never,
    });
  const publish = async (version: string, permissions: readonly string[]): Promise<string> =>
    registry.publish(
      await registry.folder('garden', {
        name: PACKAGE,
        version,
        description: 'Waters the roses.',
        keywords: ['mountkeeper-plugin'],
        scripts: { postinstall: 'exit 1' },
        mountkeeper: { apiVersion: 1, permissions },
      }),
      { hasProvenance: true },
    );
  /** As the page's forms send it. */
  const act = (
    action: string,
    fields: Record<string, string>,
    headers: Record<string, string> = { authorization },
  ) =>
    daemon.request('POST', `/dashboard/do/plugins/${action}`, new URLSearchParams(fields).toString(), {
      'content-type': 'application/x-www-form-urlencoded',
      'hx-request': 'true',
      ...headers,
    });
  const installed = async (): Promise<readonly string[]> =>
    (await readdir(`${daemon.stateDir}/installed-plugins`)).filter((name) => !name.startsWith('.'));
  const says = (what: Locator, pattern: RegExp): Promise<unknown> =>
    until(
      `it says ${pattern}`,
      async () => (await what.count()) > 0 && pattern.test(await what.first().innerText()),
      WAIT,
    );
  const card = (): Locator => watched.page.locator('#plugin-garden');
  const change = (): Locator => watched.page.locator('#package-change');

  before(async () => {
    scratch = await createScratch('page-packages');
    registry = await PackageRegistry.create(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      env: registry.env,
      sections: { web: { password: PASSWORD }, plugins: { install_from_page: false } } as never,
    });
    void daemon.spawn();
    const isUp = async (): Promise<boolean> =>
      (await daemon.request('GET', '/api/plugins', undefined, { authorization })).status === 200;
    await until('the daemon answers', isUp, WAIT);
    browser = await openBrowser(scratch);
    watched = await WatchedPage.open(browser, origin());
    watched.page.on('dialog', (dialog) => void dialog.accept());
    await watched.page.goto(`${origin()}/tabs/plugins`);
    await watched.signIn(PASSWORD);
    await watched.page.waitForURL(`${origin()}/tabs/plugins`);
  });
  after(() => scratch.close());

  it('are shown as commands while the file does not allow more, and refused', async () => {
    const { page } = watched;
    await says(
      page.locator('main'),
      /Where the configuration file says install_from_page = true in \[plugins\]/,
    );
    assert.equal(await page.locator('button[data-copy="mountkeeper plugin remove NAME"]').count(), 1);
    assert.equal(await page.getByRole('button', { name: 'Install', exact: true }).count(), 0);
    for (const [action, fields] of [
      ['install', { package: PACKAGE }],
      ['search', { words: '' }],
      ['remove', { name: 'garden' }],
    ] as const)
      assert.match((await act(action, fields as never)).text, /does not allow this: nothing is installed/);
    const document = `${text(false).replace('install_from_page = false', 'install_from_page = true')}`;
    const answer = await daemon.request<{ message: string }>(
      'POST',
      '/api/config',
      { toml: document },
      { authorization },
    );
    assert.match(answer.body.message, /plugins\.install_from_page cannot be changed over HTTP/);
    assert.deepEqual(await installed(), []);
  });

  it('are found and installed once the file allows it, and stay off', async () => {
    const integrity = await publish('1.0.0', ['read-status', 'network']);
    await daemon.writeConfig(text(true));
    const { page } = watched;
    await page.getByLabel('Words').fill('roses');
    await page.getByRole('button', { name: 'Search the registry' }).click();
    const found = page.locator('#package-search');
    await says(found, /Waters the roses\./);
    assert.equal((await act('install', { package: PACKAGE }, {})).status, 401, 'nobody without the password');
    await found.getByRole('button', { name: 'Install' }).click();
    await says(change(), /garden 1\.0\.0 is installed\./);
    const told = await change().innerText();
    for (const word of [
      integrity,
      /not verified: https:\/\/slsa/,
      /It may: read the status/,
      /they were not run/,
    ])
      assert.ok(
        typeof word === 'string' ? told.includes(word) : word.test(told),
        `${String(word)} in ${told}`,
      );
    await says(card(), /Off[^]*It may: read the status, use the network/);
    await says(card(), /\[plugins\.garden\]\s+enabled = true/);
    await page.reload();
    await says(change(), /garden 1\.0\.0 is installed\./);
    await watched.assertAccessible('packages');
    await page.setViewportSize({ width: 360, height: 800 });
    assert.ok(await page.evaluate<boolean>('document.documentElement.scrollWidth <= window.innerWidth'));
    await page.setViewportSize({ width: 1280, height: 800 });
    watched.assertClean();
  });

  it('are of the registry alone', async () => {
    for (const name of ['./garden', '/etc', 'garden.tgz', 'git+ssh://x/y', 'a@npm:b', '--yes', ''])
      assert.match(
        (await act('install', { package: name })).text,
        /no name of a package in the registry/,
        name,
      );
    assert.match((await act('remove', { name: 'smb' })).text, /no plugin that was installed/);
  });

  it('that are on get more permissions only after a yes that names them', async () => {
    await daemon.writeConfig(text(true, { 'plugins.garden': { enabled: true } }));
    await says(card(), /\bOn\b/);
    assert.equal(await card().getByRole('button', { name: 'Remove' }).count(), 0);
    await publish('2.0.0', ['read-status', 'network', 'processes']);
    await card().getByRole('button', { name: 'Update' }).click();
    await says(change(), /was not updated[^]*version 2\.0\.0 may also start processes, and the plugin is on/);
    const what = 'garden';
    const question = /version 2\.0\.0 may also start processes, and the plugin is on/.exec(
      await change().innerText(),
    )?.[0];
    for (const form of [
      { what, question: 'anything' },
      { what: 'pond', question: question ?? '' },
      { question: question ?? '' },
    ] as const)
      assert.match((await act('agree', form)).text, /not what is asked any more/, JSON.stringify(form));
    await change().getByRole('button', { name: 'Agree and go on' }).click();
    await says(change(), /garden 2\.0\.0 is installed, in place of 1\.0\.0/);
    await says(card(), /start processes/);
  });

  it('are removed once they are off', async () => {
    await card().getByRole('button', { name: 'Switch off' }).click();
    await says(card(), /\bOff\b/);
    await card().getByRole('button', { name: 'Remove' }).click();
    await says(change(), /garden is removed/);
    await until('no card', async () => (await card().count()) === 0, WAIT);
    assert.deepEqual(await installed(), []);
    const record = await readFile(`${daemon.stateDir}/audit/audit.log`, 'utf8');
    for (const about of [
      `"about":{"package":"${PACKAGE}"}`,
      '"about":{"name":"garden"}',
      '"agreed":"version 2.0.0 may also start processes',
    ])
      assert.ok(record.includes(about), about);
    watched.assertClean();
  });

  it('end with the daemon, one at a time, and leave nothing half installed', async () => {
    const asked = new Promise<void>((resolve) => {
      registry.onTarball = () => {
        resolve();
        return new Promise(() => undefined);
      };
    });
    await publish('3.0.0', ['network']);
    assert.match((await act('install', { package: PACKAGE })).text, /It has begun/);
    await asked;
    await says(change(), /Installing @friend\/mountkeeper-plugin-garden …[^]*npm fetches/);
    assert.match((await act('install', { package: 'roses' })).text, /Another one is at work/);
    await daemon.stop();
    assert.deepEqual(await processesNaming(`${daemon.stateDir}/installed-plugins`), []);
    assert.deepEqual(await installed(), []);
    assert.deepEqual(await readdir(`${daemon.stateDir}/installed-plugins/.packages`), []);
    watched.takeFaults();
  });
});

describe('packages of plugins where nobody is asked for a password', () => {
  it('are not installed from the page, and it says why', async (t) => {
    const scratch = await createScratch('page-packages-open');
    t.after(() => scratch.close());
    const daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      sections: { plugins: { install_from_page: true } } as never,
    });
    await daemon.start();
    const { text } = await daemon.get('/tabs/plugins');
    assert.match(text, /nobody is asked for a password here/);
    assert.doesNotMatch(text, /dashboard\/do\/plugins\/install/);
    const form = { 'content-type': 'application/x-www-form-urlencoded', 'hx-request': 'true' };
    const install = () => daemon.request('POST', '/dashboard/do/plugins/install', 'package=garden', form);
    assert.match((await install()).text, /Set web\.password in that file first/);
    // Else whoever reaches the page would be let in by what they have set.
    const before = await readFile(daemon.configFile, 'utf8');
    const refused =
      /the first password, user or token cannot be set over HTTP while plugins\.install_from_page is true/;
    const sent = await daemon.submit(daemon.text({ sections: { web: { password: PASSWORD } } }));
    assert.deepEqual([sent.status, refused.test(sent.body.message)], [400, true], sent.text);
    const typed = await daemon.request('POST', '/dashboard/do/password/set', `password=${PASSWORD}`, form);
    assert.match(typed.text, refused);
    assert.equal(await readFile(daemon.configFile, 'utf8'), before);
    assert.equal((await daemon.get('/api/plugins')).status, 200, 'nobody is asked as before');
    assert.match((await install()).text, /Set web\.password in that file first/);
  });
});

describe('packages of plugins, asked for by somebody else', () => {
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const basic = (name: string): Record<string, string> => ({
    authorization: `Basic ${Buffer.from(`${name}:${PASSWORD}`).toString('base64')}`,
  });

  it('are installed for an administrator who has signed in here alone', async (t) => {
    const scratch = await createScratch('page-packages-others');
    t.after(() => scratch.close());
    const token = makeToken();
    const password_hash = await makeHash(PASSWORD);
    const users = ['operator', 'viewer'].map((role) => ({ name: role, role, password_hash }));
    const tokens = [{ name: 'script', token_hash: hashToken(token), role: 'admin' }];
    const daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      // Nothing answers there: it is enough that it begins.
      env: { npm_config_registry: 'http://127.0.0.1:9/' },
      sections: { web: { password: PASSWORD, users, tokens }, plugins: { install_from_page: true } } as never,
    });
    void daemon.spawn();
    const isUp = async (): Promise<boolean> =>
      (await daemon.request('GET', '/api/plugins', undefined, basic('admin'))).status === 200;
    await until('the daemon answers', isUp, WAIT);
    const origin = `http://127.0.0.1:${daemon.port}`;
    const signIn = await fetch(`${origin}/sign-in`, {
      method: 'POST',
      redirect: 'manual',
      headers: { ...form, origin, 'sec-fetch-site': 'same-origin' },
      body: new URLSearchParams({ username: 'admin', password: PASSWORD }),
    });
    const cookie = signIn.headers.get('set-cookie')?.split(';')[0] ?? '';
    assert.match(cookie, /^mountkeeper_sign_in=./);
    const install = (headers: Record<string, string>) =>
      daemon.request('POST', '/dashboard/do/plugins/install', `package=${encodeURIComponent(PACKAGE)}`, {
        ...form,
        'hx-request': 'true',
        ...headers,
      });
    // Those who are no administrators do not know of the tab.
    for (const [who, headers, expected] of [
      ['an operator', basic('operator'), /^404 .*not there any more/],
      ['a viewer', basic('viewer'), /^404 .*not there any more/],
      ['a token', { authorization: `Bearer ${token}` }, /^200 .*Only an administrator who is signed in/],
      ['another site, with the cookie', { cookie, origin: 'https://evil.example' }, /^403 /],
      ['a page of no site, with the cookie', { cookie, origin: 'null' }, /^403 /],
    ] as const) {
      const { status, text } = await install(headers);
      assert.match(`${status} ${text}`, expected, who);
    }
    const begun = /a plugin is changed from the page/g;
    assert.equal((await daemon.log()).match(begun), null);
    assert.match((await install({ cookie, origin })).text, /It has begun/);
    await until('it is logged', async () => begun.test(await daemon.log()), WAIT);
    assert.equal((await daemon.log()).match(begun)?.length, 1);
  });
});
