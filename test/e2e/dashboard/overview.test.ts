// @load loud
// @long
/**
 * The dashboard in real Chromium beside the real daemon: what happens to the shares shows at once, and
 * nothing shown is untrue.
 */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { assertWalkable, hasFocus, press } from '../../support/dashboard/keyboard.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { inForm } from '../../support/platform/long-form.ts';

/** A poll cycle of these daemons, and a second. */
const SOON_MS = 2_500;
/** Pages with tables and forms, in the short form. */
const WIDE: readonly (string | null)[] = ['/shares/files', '/tabs/plugins?plugin=mount'];
const FILE = 'large <b>"文件"\u202E.bin';

interface Status {
  readonly all_synced: boolean;
  readonly nas_offline: boolean;
}

describe('the dashboard', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let nas: Nas;
  let browser: Browser;
  let watched: WatchedPage;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;

  before(async () => {
    scratch = await createScratch('dashboard');
    nas = await Nas.create(scratch, { files: { 'a.txt': 500, 'sub/b.txt': 700 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [
        { name: 'files', connection: 'nas' },
        { name: '团队 team', connection: 'nas', remote_path: 'sub' },
      ],
      // The shortest quiet time in which a pause can hold back what is written meanwhile.
      sections: {
        webdav: { enabled: true, port: await freePort() },
        mount: { write_back: '3s' },
        'plugins.dashboard': { status_page: true },
      },
    });
    await daemon.start();
    await daemon.healthy();
    browser = await openBrowser(scratch);
    watched = await WatchedPage.open(browser, origin());
    await watched.page.goto(`${origin()}/`);
  });
  after(() => scratch.close());

  const shows = (what: string, condition: () => Promise<boolean>, timeoutMs = SOON_MS): Promise<boolean> =>
    until(what, condition, { timeoutMs, everyMs: 20 });
  const status = async (): Promise<Status> => (await daemon.get<Status>('/api/status')).body;

  it('says that all is saved, by the same truth as the API, and shows every share', async () => {
    await until('all is synced', async () => (await status()).all_synced, { timeoutMs: 10_000 });
    await shows('the sentence', async () => (await watched.sentence()) === 'saved');
    assert.match(await watched.page.locator('.headline').innerText(), /All saved, safe to disconnect/);
    assert.deepEqual(await watched.page.locator('.share h3').allInnerTexts(), ['files', '团队 team']);
    assert.deepEqual([await watched.tone('files'), await watched.tone('团队 team')], ['good', 'good']);
    await shows(
      'the address',
      async () =>
        /http:\/\/127\.0\.0\.1:\d+\/files\//.test(
          await watched.page.locator('.share[data-share="files"]').innerText(),
        ),
      10_000,
    );
    watched.assertClean();
  });

  it('never says so while a written file is being uploaded, and says so again afterwards', async () => {
    await daemon.request('POST', '/api/bwlimit', { up: '2M', down: '0' });
    await watched.listen();
    await writeFile(`${daemon.mountPoint('files')}/${FILE}`, Buffer.alloc(6 * 1024 * 1024, 7));
    await shows('the file waits', async () => (await watched.sentence()) === 'unsaved');
    assert.match(await watched.page.locator('.headline').innerText(), /1 file.* not yet on the NAS/);
    await shows(
      'its size',
      async () => /1 file, 6\.0 MiB/.test(await watched.page.locator('.headline').innerText()),
      5_000,
    );
    await until('it is said to be saved', async () => (await watched.sentence()) === 'saved', {
      timeoutMs: 30_000,
      everyMs: 10,
    });
    assert.ok(await nas.has(FILE), 'the page promised what was not true');
    assert.equal((await status()).all_synced, true);
    await shows(
      'it was said aloud',
      async () => (await watched.aloud()).at(-1) === 'All saved, safe to disconnect',
    );
    const said = await watched.aloud();
    assert.equal(said.length, 2, `said aloud: ${said.join(' | ')}`);
    assert.match(said[0] ?? '', /^1 file.* not yet on the NAS$/);
    watched.assertClean();
  });

  it('shows a limit that is set on the page, and says so where it was clicked', async () => {
    const form = watched.page.locator('form.limit');
    await form.locator('input[name=up]').fill('3M');
    await form.locator('input[name=down]').fill('nonsense');
    await form.locator('button').click();
    await shows('the refusal', async () => /is not a rate/.test(await form.locator('output').innerText()));
    await form.locator('input[name=down]').fill('0');
    await press(form.locator('button'));
    await shows('the outcome', async () => /limit is set/.test(await form.locator('output').innerText()));
    await shows('the focus where it was', () => hasFocus(form.locator('button')));
    await shows('the limit', async () =>
      /3\.0 MiB\/s/.test(await watched.page.locator('#card-limit').innerText()),
    );
    assert.equal(await form.locator('input[name=up]').inputValue(), '3M', "nobody's typing is written over");
    const slider = form.locator('input[data-rate=up]');
    await slider.focus();
    await watched.page.keyboard.press('ArrowRight');
    assert.deepEqual(
      [await form.locator('input[name=up]').inputValue(), await slider.getAttribute('aria-valuetext')],
      ['5M', '5.0 MiB/s'],
    );
    await form.locator('button').click();
    await shows('the limit of the slider', async () =>
      /5\.0 MiB\/s/.test(await watched.page.locator('#card-limit').innerText()),
    );
    // The command line, or another page: whoever is not at the form sees the new one in it, too.
    await daemon.request('POST', '/api/bwlimit', { up: '0', down: '1M' });
    await shows(
      'the limit of others in the form',
      async () =>
        (await slider.getAttribute('aria-valuetext')) === 'No limit' &&
        (await form.locator('input[name=down]').inputValue()) === '1M',
      10_000,
    );
    watched.assertClean();
  });

  it('pauses uploads for an hour, says so everywhere, and goes on when told to', async () => {
    const [card, share] = [
      watched.page.locator('#frame-limit'),
      watched.page.locator('[data-share="files"]'),
    ];
    watched.page.once('dialog', (dialog) => void dialog.accept());
    await press(card.locator('button', { hasText: 'Pause uploads for 1 hour' }));
    await shows('the pause', async () => /Uploads are paused until/.test(await card.innerText()));
    await writeFile(`${daemon.mountPoint('files')}/paused.txt`, 'written in the pause');
    await shows('the file waits', async () => (await watched.sentence()) === 'unsaved');
    assert.match(
      await watched.page.locator('.sentence').innerText(),
      /^Uploads of files are paused until [^\n]*$/m,
    );
    // Each on a line of its own: they are read one by one.
    await shows('its share says why', async () =>
      /^oldest from [^\n]*\n+paused until [^\n]*$/m.test(await share.innerText()),
    );
    await until(
      'the page of the share lists it',
      async () => /paused\.txt[^]*>Waiting</.test((await daemon.get('/shares/files')).text),
      { timeoutMs: SOON_MS },
    );
    const own = watched.page.locator('article', { has: share });
    assert.match(await own.innerText(), /Go on now/);
    assert.doesNotMatch(await own.innerText(), /Pause for 1 hour/);
    // Twice the quiet time.
    await sleep(6_000);
    assert.equal(await nas.has('paused.txt'), false, 'a pause that is none');
    assert.equal((await status()).all_synced, false);
    await press(card.locator('button', { hasText: 'Go on now' }));
    // The end of the pause takes the button away.
    await shows('the outcome', async () => /Uploads go on\./.test(await card.innerText()), 5_000);
    await shows('no button', async () => !/Go on now/.test(await card.innerText()), 5_000);
    assert.match(await card.innerText(), /Uploads go on\./);
    assert.doesNotMatch(await card.innerText(), /paused for an hour/, 'what is not true any more');
    await shows('the focus beside it', () => hasFocus(card));
    await until('it is on the NAS', () => nas.has('paused.txt'), { timeoutMs: 10_000 });
    await shows('the end of the pause', async () => !/paused until/.test(await card.innerText()));
    await shows('all is saved', async () => (await watched.sentence()) === 'saved', 10_000);
    watched.assertClean();
  });

  it('shows all times to the second at the press of a key, and keeps to that', async () => {
    const { page } = watched;
    const time = page.locator('.badge time').first();
    const exact = page.locator('button[data-exact]');
    assert.doesNotMatch(await time.innerText(), /:\d\d:\d\d/);
    await press(exact);
    assert.match(await time.innerText(), /\d{4}.*:\d\d:\d\d/);
    await page.reload();
    await shows('it is kept', async () => /:\d\d:\d\d/.test(await time.innerText()));
    assert.equal(await exact.getAttribute('aria-pressed'), 'true');
    await press(exact);
    assert.doesNotMatch(await time.innerText(), /:\d\d:\d\d/);
    watched.assertClean();
  });

  it('shows a mount that is killed and heals, and reconnects by keyboard after asking', async () => {
    process.kill(await daemon.bindfsPid('files'), 'SIGKILL');
    await shows('the share is down', async () => (await watched.tone('files')) !== 'good', 4_000);
    await shows('the share is healed', async () => (await watched.tone('files')) === 'good', 20_000);
    const card = watched.page.locator('article', { has: watched.page.locator('.share[data-share="files"]') });
    watched.page.once('dialog', (dialog) => void dialog.accept());
    await press(card.locator('button', { hasText: 'Reconnect' }));
    await shows('the outcome', async () =>
      /Reconnecting/.test(await card.locator('output').first().innerText()),
    );
    await shows('the focus where it was', () => hasFocus(card.locator('button', { hasText: 'Reconnect' })));
    await shows(
      'the share is up again',
      async () => (await watched.tone('files')) === 'good' && (await daemon.share('files')).mounted,
      20_000,
    );
    watched.assertClean();
  });

  it('shows a share that an edit of the file adds, and one that it takes away', async () => {
    const shares = [
      { name: 'files', connection: 'nas' },
      { name: '团队 team', connection: 'nas', remote_path: 'sub' },
    ];
    const form = watched.page.locator('form.limit');
    await press(form.locator('button'));
    await shows('the outcome', async () => /limit is set/.test(await form.locator('output').innerText()));
    await daemon.writeConfig(daemon.text({ shares: [...shares, { name: 'new.one', connection: 'nas' }] }));
    await until('the API has it', async () => (await daemon.get('/api/status/new.one')).status === 200, {
      timeoutMs: 10_000,
    });
    await shows(
      'its card',
      async () => (await watched.page.locator('.share[data-share="new.one"]').count()) === 1,
    );
    // The whole page was drawn anew: what was said where somebody clicked is still there.
    assert.match(await form.locator('output').innerText(), /limit is set/);
    await shows('its health', async () => (await watched.tone('new.one')) === 'good', 20_000);
    // It had none of these while it was not mounted.
    const card = watched.page.locator('.cards article', {
      has: watched.page.locator('[data-share="new.one"]'),
    });
    await shows('its uploads can be paused', async () => /Pause for 1 hour/.test(await card.innerText()));
    await daemon.writeConfig(daemon.text({ shares }));
    await until(
      'the API has it no more',
      async () => (await daemon.get('/api/status/new.one')).status === 404,
      { timeoutMs: 30_000 },
    );
    await shows(
      'no card',
      async () => (await watched.page.locator('.share[data-share="new.one"]').count()) === 0,
    );
    watched.assertClean();
  });

  it('asks before it reconnects also without scripts', async () => {
    const plain = await WatchedPage.open(browser, origin(), { javaScriptEnabled: false });
    const former = await daemon.rclonePid('files');
    const listed = async (): Promise<number> =>
      (await daemon.log()).split('folders with cached files listed share=files').length;
    const listedBefore = await listed();
    const reconnect = plain.page.locator('article.card button', { hasText: 'Reconnect' }).first();
    await plain.page.goto(`${origin()}/`);
    await reconnect.click();
    await plain.page.locator('a', { hasText: 'No, go back' }).click();
    await plain.page.waitForURL(`${origin()}/`);
    await reconnect.click();
    await plain.page.locator('button', { hasText: 'Yes, do it' }).click();
    assert.match(await plain.page.locator('main').innerText(), /Reconnecting/);
    await plain.page.locator('a', { hasText: 'Go back' }).click();
    await plain.page.waitForURL(`${origin()}/`);
    await plain.context.close();
    // It is only begun with that answer: the mount that is up until then is the former one.
    await until('its rclone', async () => (await daemon.rclonePid('files')) !== former, {
      timeoutMs: 20_000,
    });
    await daemon.healthy();
    await shows('the share is up again', async () => (await watched.tone('files')) === 'good', 20_000);
    // Before, cached files are promised in a part of its folders only.
    await until('its folders are listed', async () => (await listed()) > listedBefore, { timeoutMs: 20_000 });
  });

  it('says that the NAS is away and since when, what is usable, and that it is back', async () => {
    await writeFile(`${daemon.mountPoint('files')}/meanwhile.txt`, 'written while the NAS is away');
    await nas.stop();
    await until('the daemon knows', async () => (await status()).nas_offline, { timeoutMs: 40_000 });
    await shows('the sentence', async () => (await watched.sentence()) === 'offline-cached');
    assert.match(
      await watched.page.locator('.headline').innerText(),
      /NAS offline since \d+:\d\d [AP]M; cached files are usable/,
    );
    const queued = async (): Promise<string> => (await daemon.get('/api/queue/files')).text;
    await until(
      'why it waits',
      async () => /the NAS is offline|does not answer|refuses/.test(await queued()),
      {
        timeoutMs: 30_000,
      },
    );
    assert.doesNotMatch(await queued(), /240\.0\.0\.1|cannot assign/);
    await nas.start();
    await until('the daemon knows of the return', async () => !(await status()).nas_offline, {
      timeoutMs: 40_000,
    });
    // It has failed several times by now, and would wait up to a minute for its next try.
    const page = await WatchedPage.open(browser, origin());
    await page.page.goto(`${origin()}/shares/files`);
    const row = page.page.locator('#frame-uploads tr', { hasText: 'meanwhile.txt' });
    await until(
      'it is sent',
      async () => {
        if (!(await nas.has('meanwhile.txt')))
          await press(row.locator('button', { hasText: /Send now|Retry now/ }));
        return true;
      },
      { timeoutMs: 15_000 },
    );
    await page.context.close();
    await shows('all is saved', async () => (await watched.sentence()) === 'saved', 20_000);
    watched.assertClean();
  });

  it('follows the log, by level, share and words, and stops when told to', async () => {
    const page = await WatchedPage.open(browser, origin());
    await page.page.goto(`${origin()}/tabs/logs`);
    const lines = page.page.locator('#log-lines li');
    await shows('lines', async () => (await lines.count()) > 5, 5_000);
    await page.page.locator('input[name=search]').fill('bandwidth limit');
    await shows(
      'those that hold the words',
      async () => (await lines.allInnerTexts()).every((line) => /bandwidth limit/i.test(line)),
      5_000,
    );
    const before = await lines.count();
    const list = page.page.locator('#log-lines');
    const told = async (): Promise<readonly number[]> =>
      ((await page.page.locator('#log-count').innerText()).match(/[\d,]+/g) ?? []).map((number) =>
        Number(number.replaceAll(',', '')),
      );
    const [, searched = 0] = await told();
    await daemon.request('POST', '/api/bwlimit', { up: '4M', down: '0' });
    await shows('the next one', async () => (await lines.count()) === before + 1, 5_000);
    assert.equal(
      await list.locator(':scope > li').count(),
      before + 1,
      'as the others, in no list of its own',
    );
    const [shown, of = 0] = await told();
    assert.ok(shown === before + 1 && of > searched, `${shown} of ${of}, before ${before} of ${searched}`);
    // A lost answer and a refusal are not the end of it.
    let asked = 0;
    await page.page.route('**/dashboard/parts/logs/more?*', async (route) => {
      asked += 1;
      if (asked === 1) await route.abort();
      else if (asked === 2) await route.fulfill({ status: 503, json: { message: 'not now' } });
      else await route.continue();
    });
    await shows('both', async () => asked >= 2, 15_000);
    await daemon.request('POST', '/api/bwlimit', { up: '5M', down: '0' });
    await shows('the one after them', async () => (await lines.count()) === before + 2, 10_000);
    page.takeFaults();
    const most = before + 2;
    await list.evaluate((node, kept) => node.setAttribute('data-most', String(kept)), most);
    const former = await lines.last().innerText();
    await daemon.request('POST', '/api/bwlimit', { up: '6M', down: '0' });
    await shows('the newest', async () => (await lines.last().innerText()) !== former, 10_000);
    await shows(
      'no more than are kept',
      async () => (await list.locator(':scope > *').count()) === most,
      2_000,
    );
    await page.assertAccessible('the log');
    await page.page.locator('input[name=follow]').uncheck();
    await shows('it has stopped', async () => (await page.page.locator('#log-more').count()) === 0, 5_000);
    await page.page.locator('input[name=search]').fill('');
    await page.page.locator('select[name=share]').selectOption('团队 team');
    await shows(
      'those of a share',
      async () =>
        (await lines.count()) > 0 &&
        (await lines.allInnerTexts()).every((line) => line.includes('share="团队 team"')),
      5_000,
    );
    await page.page.locator('select[name=level]').selectOption('error');
    await shows('errors alone', async () => (await lines.count()) === 0, 5_000);
    page.assertClean();
    await page.context.close();
  });

  it('tells what the doctor finds, and looks again', async () => {
    const page = await WatchedPage.open(browser, origin());
    await page.page.goto(`${origin()}/tabs/doctor`);
    await shows('findings', async () => /Node\.js/.test(await page.page.locator('main').innerText()), 30_000);
    await press(page.page.locator('button', { hasText: 'Look again' }));
    await shows(
      'the outcome',
      async () => /Done/.test(await page.page.locator('main output').innerText()),
      30_000,
    );
    page.assertClean();
    await page.context.close();
  });

  it('has a page for each share, with what has happened to it and charts', async () => {
    const page = await WatchedPage.open(browser, origin());
    await page.page.goto(`${origin()}/`);
    await press(page.page.locator('.share h3 a', { hasText: 'files' }));
    await page.page.waitForURL(/\/shares\/files$/);
    const history = await page.page.locator('.events').innerText();
    assert.match(
      history,
      /The NAS is back[^]*The NAS went offline[^]*Failed[^]*Nothing waits any more[^]*1 file waits to be uploaded/,
    );
    await shows('charts', async () => (await page.page.locator('.chart canvas').count()) === 3, 5_000);
    await press(page.page.locator('button', { hasText: '7 days' }));
    await shows(
      'the week',
      async () => (await page.page.locator('[data-choose=week]').getAttribute('aria-pressed')) === 'true',
    );
    page.assertClean();
    await page.context.close();
  });

  it('shows the files of a share, which of them are cached, and fetches a folder', async () => {
    const page = await WatchedPage.open(browser, origin());
    await page.page.goto(`${origin()}/shares/files`);
    const browse = page.page.locator('#frame-files .browser');
    await browse.scrollIntoViewIfNeeded();
    const row = (name: string) => browse.locator('tr', { hasText: name });
    await shows('the root', async () => (await row('a.txt').count()) === 1, 15_000);
    assert.match(await row('large <b>').innerText(), /large <b>"文件"/, 'a name is text');
    await row('sub').locator('button').click();
    await shows('what is below', async () => (await row('b.txt').count()) === 1, 15_000);
    assert.match(await row('b.txt').innerText(), /On the NAS/);
    await browse.locator('button', { hasText: 'Warm up this folder' }).click();
    await shows('the outcome', async () => /being fetched/.test(await browse.innerText()), 10_000);
    await until(
      'it lies in the cache',
      async () => {
        await browse.locator('.crumbs button', { hasText: 'sub' }).click();
        await sleep(500);
        return /In the cache/.test(await row('b.txt').innerText());
      },
      { timeoutMs: 40_000 },
    );
    const outside = await daemon.get(
      `/dashboard/parts/files/folder?share=files&path=${encodeURIComponent('../..')}`,
    );
    assert.match(outside.text, /There is no such folder/);
    page.assertClean();
    await page.context.close();
  });

  it('is accessible in both themes and languages, on narrow and wide screens', async () => {
    for (const [colorScheme, locale, width] of [
      ['light', 'en', 1440],
      ['dark', 'zh-CN', 360],
    ] as const) {
      const other = await WatchedPage.open(browser, origin(), {
        colorScheme,
        locale,
        viewport: { width, height: 800 },
      });
      await other.page.goto(`${origin()}/`);
      const paths = await other.page
        .locator('.top nav a')
        .evaluateAll((links) =>
          links.map((link) =>
            (link as unknown as { getAttribute(name: string): string }).getAttribute('href'),
          ),
        );
      const all = [...paths, '/shares/files', '/tabs/plugins?plugin=mount', '/status', '/tabs/none'];
      // All of them where there is least room.
      const some = all.filter((path) => width === 360 || WIDE.includes(path) || path === paths[0]);
      for (const path of inForm({ short: some, long: all })) {
        // The browser itself writes into the console that a page is not there.
        if (path === '/tabs/none') other.assertClean();
        await other.page.goto(`${origin()}${path}`);
        await other.page
          .locator('details')
          .evaluateAll((all) => all.forEach((one) => Object.assign(one, { open: true })));
        if (path === '/shares/files') {
          await other.page.locator('#frame-files .browser').scrollIntoViewIfNeeded();
          const cell = other.page
            .locator('#frame-files tbody tr', { hasText: 'a.txt' })
            .locator('td')
            .first();
          await shows('its files', async () => (await cell.count()) === 1, 15_000);
          const { width: wide = 0 } = (await cell.boundingBox()) ?? {};
          assert.ok(wide > 60, `a column of ${wide} px cannot be read`);
        }
        // Where there is little room something might cover what has the focus.
        if (width === 360) await assertWalkable(other.page, path);
        await other.assertAccessible(`${path} ${colorScheme} ${locale}`);
        const overflow = await other.page.evaluate<number>(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        assert.ok(overflow <= 0, `${path} is ${overflow} px too wide at ${width} px`);
      }
      await other.context.close();
    }
  });
});
