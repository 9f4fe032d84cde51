// @load loud
/** What a hostile page in the administrator's browser can reach: nothing. Real Chromium, the real daemon. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, afterEach, before, beforeEach, describe, it } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { flagged } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { until } from '../../support/platform/wait.ts';

const EVIL = 'evil.example';
const PASSWORD = 'p4ge-Geheim-8871';

/** What a script of the page got to see: the text of an answer, or nothing. */
interface Seen {
  readonly readable: boolean;
  readonly status: number;
  readonly text: string;
}

/** A request by a script of the page that is open. */
function ask(page: Page, url: string, init: RequestInit = {}): Promise<Seen> {
  return page.evaluate(
    async ({ url: target, init: options }) => {
      try {
        const response = await fetch(target, options as RequestInit);
        const text = await response.text().catch(() => '');
        return {
          readable: response.type !== 'opaque' && response.type !== 'opaqueredirect',
          status: response.status,
          text,
        };
      } catch {
        return { readable: false, status: 0, text: '' };
      }
    },
    { url, init: init as Record<string, unknown> },
  );
}

describe('a hostile page', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let nas: Nas;
  let browser: Browser;
  let page: Page;
  let davPort: number;
  let home: string;

  before(async () => {
    scratch = await createScratch('page');
    nas = await Nas.create(scratch, { files: { 'private.txt': 500 } });
    davPort = await freePort();
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
      sections: { webdav: { enabled: true, port: davPort } },
    });
    await daemon.start();
    await daemon.healthy();
    await flagged(daemon, { webdav_running: true });
    const evil = createServer((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>kittens</title>');
    }).listen(0, '127.0.0.1');
    await once(evil, 'listening');
    scratch.defer(() => evil.close());
    home = `http://${EVIL}:${(evil.address() as AddressInfo).port}/`;
    browser = await openBrowser(scratch, { names: [EVIL] });
  });
  beforeEach(async () => {
    page = await browser.newPage();
    await page.goto(home);
  });
  afterEach(() => page.close());
  after(() => scratch.close());

  const api = (path: string, host = '127.0.0.1'): string => `http://${host}:${daemon.port}${path}`;
  const dav = (path: string, host = '127.0.0.1'): string => `http://${host}:${davPort}${path}`;
  const configOnDisk = (): Promise<string> => readFile(daemon.configFile, 'utf8');

  it('reads nothing across origins: status, configuration, log, files over WebDAV', async () => {
    for (const url of [
      api('/api/status'),
      api('/api/config'),
      api('/api/logs'),
      dav('/files/private.txt'),
      dav('/'),
    ]) {
      for (const mode of ['cors', 'no-cors'] as const) {
        const seen = await ask(page, url, { mode, credentials: 'include' });
        assert.deepEqual([seen.readable, seen.text], [false, ''], `${mode} ${url}`);
      }
    }
  });

  it('changes nothing by scripts, with the content types that need no CORS preflight', async () => {
    const before = await configOnDisk();
    const toml = `${before}\n[bandwidth]\nup = "1M"\n`;
    const commands = [
      '/api/config',
      '/api/bwlimit',
      '/api/reconnect/files',
      '/api/preset/video',
      '/api/refresh/files',
      '/api/warmup/files',
      '/api/warmup/files/cancel',
      '/api/webhooks/test',
      '/dashboard/do/share-controls/reconnect',
      '/dashboard/do/limit/set',
    ];
    const rclone = await daemon.rclonePid('files');
    for (const path of commands) {
      for (const type of ['text/plain', 'application/x-www-form-urlencoded']) {
        const json = path === '/api/config' ? JSON.stringify({ toml }) : '{"up":"1"}';
        const body = path.startsWith('/dashboard/') ? 'share=files&up=1&down=1' : json;
        const headers = { 'content-type': type };
        await ask(page, api(path), { method: 'POST', mode: 'no-cors', body, headers });
      }
      const headers = { 'content-type': 'application/json' };
      const asked = await ask(page, api(path), {
        method: 'POST',
        mode: 'cors',
        body: JSON.stringify({ toml }),
        headers,
      });
      assert.equal(asked.status, 0, `${path} was let through after a preflight`);
    }
    assert.equal(await configOnDisk(), before);
    const log = await daemon.log();
    assert.doesNotMatch(log, /bandwidth limit|reconnect|reload|warmup began/i, 'a command arrived');
    assert.equal(await daemon.rclonePid('files'), rclone, 'the share was mounted anew');
  });

  it('changes nothing by a form that the user is made to send', async () => {
    const before = await configOnDisk();
    const field = `{"toml":${JSON.stringify(`${before}\n[bandwidth]\nup = "1M"\n`)},"x":"`;
    const quoted = field.replaceAll('&', '&amp;').replaceAll('"', '&quot;');
    const area = `<textarea name="${quoted}">"}</textarea>`;
    const action = api('/api/config');
    await page.setContent(
      `<form method="POST" enctype="text/plain" action="${action}">${area}<button>kittens</button></form>`,
    );
    const answer = page.waitForResponse((response) => response.url().includes('/api/config'));
    await page.click('button');
    assert.equal((await answer).status(), 403);
    assert.equal(await configOnDisk(), before);
  });

  it('deletes and writes no file over WebDAV, though that asks for no password here', async () => {
    for (const method of ['PUT', 'DELETE', 'MKCOL', 'MOVE', 'PROPFIND', 'LOCK', 'POST']) {
      const mode = method === 'POST' ? 'no-cors' : 'cors';
      const seen = await ask(page, dav('/files/private.txt'), {
        method,
        mode,
        ...(method === 'PUT' && { body: 'mine now' }),
      });
      assert.deepEqual([seen.readable, seen.text], [false, ''], method);
    }
    assert.equal((await fetch(dav('/files/private.txt'))).status, 200);
    assert.equal((await (await fetch(dav('/files/private.txt'))).arrayBuffer()).byteLength, 500);
  });

  it('gains nothing by DNS rebinding', async () => {
    for (const url of [api('/api/config', EVIL), dav('/files/private.txt', EVIL)]) {
      const response = await page.goto(url);
      assert.equal(response?.status(), 421, url);
      assert.match((await response?.text()) ?? '', /does not answer to/, url);
      // The page is now of the same origin as the server, as after a rebinding.
      const before = await configOnDisk();
      const headers = { 'content-type': 'application/json' };
      const posted = await ask(page, new URL('/api/bwlimit', url).href, {
        method: 'POST',
        body: '{}',
        headers,
      });
      assert.equal(posted.status, 421, url);
      assert.equal(await configOnDisk(), before);
    }
  });

  it('is not helped by the password that the browser remembers', async () => {
    const text = daemon.text({ sections: { web: { password: PASSWORD } } });
    await daemon.writeConfig(text);
    const context = await browser.newContext({ httpCredentials: { username: 'admin', password: PASSWORD } });
    const admin = await context.newPage();
    await until('the password is asked for', async () => (await daemon.get('/api/status')).status === 401, {
      timeoutMs: 20_000,
    });
    assert.equal((await admin.goto(api('/api/status')))?.status(), 200, 'the administrator is logged in');
    await admin.goto(home);
    const before = await configOnDisk();
    for (const mode of ['cors', 'no-cors'] as const) {
      const seen = await ask(admin, api('/api/config'), { mode, credentials: 'include' });
      assert.deepEqual([seen.readable, seen.text], [false, ''], mode);
    }
    const body = JSON.stringify({ toml: `${before}\n[bandwidth]\nup = "1M"\n` });
    await ask(admin, api('/api/config'), { method: 'POST', mode: 'no-cors', credentials: 'include', body });
    assert.equal(await configOnDisk(), before);
    await context.close();
  });
});
