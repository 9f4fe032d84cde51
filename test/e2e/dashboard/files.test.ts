// @load loud
/** The files of a share on its page: what is safe, what waits, and a download, in real Chromium. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFile, unlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import type { Browser } from 'playwright-core';
import { SKIPS } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { hasFocus, press } from '../../support/dashboard/keyboard.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const chattr = async (flag: '+i' | '-i', path: string): Promise<void> =>
  void (await promisify(execFile)('chattr', [flag, path]));
const NAME = 'plan "<b>" 照片.bin';
const PASSWORD = 'page-pass-4711';

describe("a share's files on the page", { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let browser: Browser;
  let page: WatchedPage;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;
  const authorization = `Basic ${Buffer.from(`admin:${PASSWORD}`).toString('base64')}`;
  const get = (path: string, headers: Record<string, string> = { authorization }) =>
    fetch(`${origin()}/api/files/team/download?path=${encodeURIComponent(path)}`, { headers });

  before(async () => {
    scratch = await createScratch('page-files');
    nas = await Nas.create(scratch, {
      files: { [`sub/${NAME}`]: 700_000, 'a.txt': 10, 'doomed.txt': 10, 'long.mov': 64_000_000 },
    });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'team', connection: 'nas' }],
      // What is written waits until the test says otherwise.
      sections: { web: { password: PASSWORD }, mount: { write_back: '1h' } },
    });
    void daemon.spawn();
    await until('the daemon answers', async () => (await get('a.txt')).status === 200, { timeoutMs: 40_000 });
    browser = await openBrowser(scratch);
    page = await WatchedPage.open(browser, origin(), { acceptDownloads: true });
    await page.page.goto(`${origin()}/`);
    await page.signIn(PASSWORD);
    await page.page.waitForURL(`${origin()}/`);
  });
  after(() => scratch.close());

  const browse = () => page.page.locator('#frame-team .browser, .browser').first();
  const row = (name: string) => browse().locator('tr', { hasText: name });
  const shows = (what: string, look: () => Promise<boolean>) => until(what, look, { timeoutMs: 20_000 });

  it('says of each file whether it is on the NAS', async () => {
    await new Files(scratch).write(`${daemon.mountPoint('team')}/fresh.bin`, 50_000);
    await page.page.goto(`${origin()}/shares/team`);
    await browse().scrollIntoViewIfNeeded();
    await shows('the new file', async () => (await row('fresh.bin').count()) === 1);
    assert.match(await row('fresh.bin').innerText(), /Not on the NAS yet/);
  });

  it('says at once that what has been written since is not on the NAS, and keeps who is at a link', async () => {
    const badge = async (name: string) => row(name).innerText();
    assert.match(await badge('a.txt'), /On the NAS|In the cache/);
    await row('long.mov').locator('a').focus();
    const files = new Files(scratch);
    await files.write(`${daemon.mountPoint('team')}/a.txt`, 20);
    await files.write(`${daemon.mountPoint('team')}/live.txt`, 30);
    await shows('the file that was overwritten', async () => /Not on the NAS yet/.test(await badge('a.txt')));
    await shows('the new file', async () => (await row('live.txt').count()) === 1);
    assert.match(await badge('live.txt'), /Not on the NAS yet/);
    assert.ok(await hasFocus(row('long.mov')), 'the focus stays in its row');
    const queued = page.page.locator('#frame-uploads tr', { hasText: 'a.txt' });
    await press(queued.locator('button', { hasText: 'Send now' }));
    await shows('that it has arrived', async () => !/Not on the NAS|uploaded/.test(await badge('a.txt')));
    assert.equal((await readFile(nas.path('a.txt'))).length, 20);
    page.assertClean();
  });

  it('shows no more what was removed, once it is gone from the NAS', async () => {
    const pause = (seconds: number) =>
      daemon.request('POST', '/api/queue/team/pause', JSON.stringify({ seconds }), {
        authorization,
        'content-type': 'application/json',
      });
    const waiting = async (): Promise<number> => {
      const { text } = await daemon.request('GET', '/api/queue/team', undefined, { authorization });
      return (JSON.parse(text) as { readonly dirty_files: number }).dirty_files;
    };
    assert.equal(await row('doomed.txt').count(), 1);
    assert.equal((await pause(60)).status, 200);
    const before = await waiting();
    await unlink(`${daemon.mountPoint('team')}/doomed.txt`);
    await shows('the removal waits', async () => (await waiting()) === before + 1);
    assert.equal(await row('doomed.txt').count(), 1, 'as long as the NAS has it');
    await pause(0);
    await until('it is gone from the NAS', async () => !(await nas.has('doomed.txt')), { timeoutMs: 30_000 });
    await shows('no row of it', async () => (await row('doomed.txt').count()) === 0);
    page.assertClean();
  });

  it('says how much of a file is in the cache, where somebody has read a part of it', async () => {
    assert.match(await row('long.mov').innerText(), /On the NAS/);
    const limit = (down: string) =>
      daemon.request('POST', '/api/bwlimit', JSON.stringify({ up: '0', down }), {
        authorization,
        'content-type': 'application/json',
      });
    await limit('4M');
    const reader = (await get('long.mov')).body?.getReader();
    assert.equal((await reader?.read())?.done, false);
    await reader?.cancel();
    await shows('the part', async () => {
      const listed = page.page.waitForResponse(/parts\/files\/folder/);
      await browse().locator('.crumbs button').first().click();
      await listed;
      return /Partly in the cache \(\d\d? %\)/.test(await row('long.mov').innerText());
    });
    await limit('0');
  });

  it('shows what others have put on the NAS as soon as the folder was read again', async () => {
    await writeFile(nas.path('of-others.txt'), 'theirs');
    assert.equal(await row('of-others.txt').count(), 0);
    await press(browse().locator('button', { hasText: 'Read this folder again' }));
    await until('it is in the list', async () => (await row('of-others.txt').count()) === 1, {
      timeoutMs: 10_000,
    });
  });

  it('opens a folder by keyboard, and the focus is in it', async () => {
    await press(row('sub').locator('button'));
    await shows('what is below', async () => (await row('plan').count()) === 1);
    await shows('the focus', () => hasFocus(browse()));
    assert.match(await row('plan').innerText(), /On the NAS/);
  });

  it('saves a file under its name, and one that is not on the NAS yet', async () => {
    const fetched = async (name: string): Promise<{ readonly path: string; readonly called: string }> => {
      const download = page.page.waitForEvent('download');
      await row(name).locator('a').click();
      const got = await download;
      return { path: await got.path(), called: got.suggestedFilename() };
    };
    const one = await fetched('plan');
    assert.deepEqual(await readFile(one.path), await readFile(nas.path('sub', NAME)));
    assert.match(one.called, /^plan ._b_. 照片\.bin$|^plan _<b>_ 照片\.bin$/);
    await browse().locator('.crumbs button').first().click();
    await shows('the root', async () => (await row('fresh.bin').count()) === 1);
    assert.equal((await readFile((await fetched('fresh.bin')).path)).length, 50_000);
    await page.assertAccessible('files');
    await page.page.setViewportSize({ width: 360, height: 800 });
    const tooWide = await page.page.evaluate<number>(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    assert.ok(tooWide <= 0, `${tooWide} px too wide`);
    page.assertClean();
  });

  it('sends one file of the queue by keyboard, and again after the NAS has refused it', async () => {
    await new Files(scratch).write(`${daemon.mountPoint('team')}/blocked.bin`, 20_000);
    // The NAS may not write there: it refuses the file.
    await chattr('+i', nas.path());
    scratch.defer(() => chattr('-i', nas.path()));
    await page.page.goto(`${origin()}/shares/team`);
    const queue = page.page.locator('#frame-uploads');
    const queued = (name: string) => queue.locator('tr', { hasText: name });
    const pressIn = (name: string, label: string): Promise<void> =>
      press(queued(name).locator('button', { hasText: label }));
    await pressIn('blocked.bin', 'Send now');
    // After three refusals, each a while after the one before.
    await until('that it is stuck', async () => /Stuck/.test(await queued('blocked.bin').innerText()), {
      timeoutMs: 60_000,
    });
    const isInSight = await queued('blocked.bin').evaluate((line) => {
      const [output] = line.getElementsByTagName('output');
      const said = output?.cloneNode(true) as HTMLElement;
      output?.replaceWith(said);
      said.innerHTML = `<span class="outcome"><bdi>${'What came of it is a long sentence. '.repeat(6)}</bdi></span>`;
      const box = line.closest('.scroll');
      const isWhole = box !== null && box.scrollWidth <= box.clientWidth;
      said.replaceWith(output as HTMLElement);
      return isWhole;
    });
    assert.ok(isInSight, 'what is said of a click leaves the other columns in sight');
    await shows('that the NAS could not take it', async () => (await page.sentence()) === 'refused');
    assert.equal(await page.tone('team'), 'bad');
    assert.match(await queued('fresh.bin').innerText(), /Waiting/, 'the other one waits on');
    const download = page.page.waitForEvent('download');
    await queued('blocked.bin').locator('a', { hasText: 'Download a copy' }).click();
    assert.equal((await readFile(await (await download).path())).length, 20_000);
    await page.assertAccessible('the queue');
    await chattr('-i', nas.path());
    await pressIn('blocked.bin', 'Retry now');
    await shows('that it is gone from the queue', async () => (await queued('blocked.bin').count()) === 0);
    await shows('the focus in the queue', () => hasFocus(queue));
    await shows('what waits is all that is left', async () => (await page.sentence()) === 'unsaved');
    assert.equal((await readFile(nas.path('blocked.bin'))).length, 20_000);
    page.assertClean();
  });

  it('sends nothing to strangers, nothing from outside, and nothing without a password', async () => {
    assert.equal((await get('a.txt', {})).status, 401);
    for (const path of ['../../etc/passwd', '/etc/passwd', 'sub/../../x', ''])
      assert.equal((await get(path)).status, 400, path);
    assert.equal((await get('nowhere')).status, 404);
    const sent = await get(`sub/${NAME}`);
    assert.deepEqual(
      ['content-length', 'x-content-type-options', 'cache-control'].map((name) => sent.headers.get(name)),
      ['700000', 'nosniff', 'no-store'],
    );
    assert.match(sent.headers.get('content-security-policy') ?? '', /sandbox/);
    await sent.body?.cancel();
    await writeFile(daemon.configFile, daemon.text().replace(/^password = .*$/m, ''));
    await until('the password is gone', async () => (await get('a.txt', {})).status === 403, {
      timeoutMs: 20_000,
    });
  });

  it('sends files to who sets the first password, since that is open to all who reach the page', async () => {
    const first = 'who-came-first';
    const toml = daemon.text().replace(/^password = .*$/m, `password = "${first}"`);
    const { status, text } = await daemon.request('POST', '/api/config', JSON.stringify({ toml }), {
      'content-type': 'application/json',
    });
    assert.equal(status, 200, text);
    const theirs = { authorization: `Basic ${Buffer.from(`admin:${first}`).toString('base64')}` };
    await until('they may download', async () => (await get('a.txt', theirs)).status === 200, {
      timeoutMs: 20_000,
    });
    assert.equal((await get('a.txt', {})).status, 401);
  });
});
