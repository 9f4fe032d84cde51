/** What is applied on the settings page is on trial: kept, taken back, and told, in real Chromium. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { hasBrowser } from '../../support/dashboard/chromium.ts';
import { press } from '../../support/dashboard/keyboard.ts';
import { applied, field, openSettings, put, verdict } from '../../support/dashboard/settings-page.ts';
import type { SettingsPages } from '../../support/dashboard/settings-page.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { until } from '../../support/platform/wait.ts';

describe('settings on trial', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let pages: SettingsPages;

  before(async () => {
    scratch = await createScratch('settings-trial');
    pages = await openSettings(scratch);
  });
  after(() => scratch.close());

  it('takes back what is on trial when asked, and puts a former version into the editor', async () => {
    const watched = await pages.open();
    await put(watched, 'bandwidth.down', '9M');
    await verdict(watched, 'good');
    await applied(watched);
    await press(watched.page.locator('#trial button', { hasText: 'Take it back' }));
    await until('the former text is back', async () => (await pages.file()) === pages.text, {
      timeoutMs: 10_000,
    });
    await until(
      'it is told',
      async () => /taken back/.test(await watched.page.locator('.versions li').first().innerText()),
      { timeoutMs: 10_000 },
    );
    await watched.page.reload();
    await press(watched.page.locator('.versions > li', { hasText: 'from the dashboard' }).locator('button'));
    await verdict(watched, 'good');
    assert.match(await watched.page.locator('#settings-text').inputValue(), /down = "9M"/);
    assert.match(
      await watched.page.locator('.versions output', { hasText: 'in the editor' }).innerText(),
      /but for its secrets: each \*{8} stands for what is in force now/,
    );
    assert.equal(await pages.file(), pages.text);
    watched.assertClean();
    await watched.context.close();
  });

  it('is not reached where the web server cannot go, and leads to where it has gone', async () => {
    const watched = await pages.open();
    const { page } = watched;
    const other = createServer().listen(0, '127.0.0.1');
    await once(other, 'listening');
    const { port } = other.address() as AddressInfo;
    const place = `http://127.0.0.1:${port}/tabs/settings#trial`;
    try {
      await put(watched, 'web.port', String(port));
      await verdict(watched, 'good');
      assert.match(await page.locator('#settings-verdict').innerText(), /This page moves to http/);
      await applied(watched);
      await until(
        'the page says where it is',
        async () => /at its former place/.test(await page.locator('#settings-outcome').innerText()),
        { timeoutMs: 15_000 },
      );
      assert.doesNotMatch(await page.locator('#trial').innerText(), /Stays, unless/);
    } finally {
      other.close();
    }
    // Nobody else is there any more: the daemon goes there by itself.
    const link = page.locator('#settings-outcome a', { hasText: String(port) });
    assert.equal(await link.getAttribute('href'), place);
    await until(
      'the web server is there',
      () =>
        fetch(place).then(
          ({ ok }) => ok,
          () => false,
        ),
      {
        timeoutMs: 20_000,
      },
    );
    watched.takeFaults();
    await link.click();
    await page.locator('#trial button', { hasText: 'Keep it' }).waitFor({ timeout: 20_000 });
    await press(page.locator('#trial button', { hasText: 'Take it back' }));
    await until('the former text is back', async () => (await pages.file()) === pages.text, {
      timeoutMs: 10_000,
    });
    await watched.context.close();
    await until(
      'the web server is back',
      () =>
        fetch(pages.origin).then(
          ({ ok }) => ok,
          () => false,
        ),
      {
        timeoutMs: 20_000,
      },
    );
  });

  it('draws the editor anew where others apply, and says so where somebody has typed', async () => {
    const [first, idle, typing] = [await pages.open(), await pages.open(), await pages.open()];
    const typed = `${await typing.page.locator('#settings-text').inputValue()}# typed\n`;
    await typing.page.locator('#settings-text').fill(typed);
    const behind = typing.page.locator('#settings-behind');
    assert.equal(await behind.isVisible(), false);
    await put(first, 'bandwidth.down', '8M');
    await verdict(first, 'good');
    await applied(first);
    await until(
      'the idle page has it',
      async () => /^down = "8M"/m.test(await idle.page.locator('#settings-text').inputValue()),
      { timeoutMs: 10_000 },
    );
    assert.equal(await field(idle, 'bandwidth.down').inputValue(), '8M');
    await behind.waitFor({ timeout: 10_000 });
    assert.match(await behind.innerText(), /not what runs now[^]*Open what runs now/);
    assert.equal(await typing.page.locator('#settings-text').inputValue(), typed);
    assert.equal(await first.page.locator('#settings-behind').isVisible(), false);
    await press(first.page.locator('#trial button', { hasText: 'Take it back' }));
    await until('the former text is back', async () => (await pages.file()) === pages.text, {
      timeoutMs: 10_000,
    });
    for (const watched of [first, idle, typing]) {
      watched.assertClean();
      await watched.context.close();
    }
  });

  it('claims nothing any more of settings that were taken back, and says so until somebody has read it', async () => {
    const watched = await pages.open();
    const { page } = watched;
    const before = await page.locator('#settings-text').inputValue();
    const outcome = page.locator('#settings-outcome');
    await put(watched, 'bandwidth.up', '2M');
    await verdict(watched, 'good');
    await applied(watched);
    await outcome.locator('a').waitFor({ timeout: 10_000 });
    await until(
      'it is reached',
      async () => /Mountkeeper\.\s* On trial: keep or take back$/.test(await outcome.innerText()),
      {
        timeoutMs: 10_000,
      },
    );
    assert.equal(
      await page.evaluate<number>(
        'new Set([...document.querySelectorAll("#settings-outcome :is(a, .outcome)")]' +
          '.map((one) => getComputedStyle(one).fontSize)).size',
      ),
      1,
    );
    await press(page.locator('#trial button', { hasText: 'Take it back' }));
    const told = page.locator('#taken-back');
    await told.waitFor({ timeout: 10_000 });
    assert.match(await told.innerText(), /were taken back, since somebody asked for it/);
    assert.equal(await outcome.isVisible(), false);
    assert.equal(await page.locator('#settings-text').inputValue(), before);
    const notices = async (): Promise<string> =>
      JSON.stringify((await pages.daemon.get('/api/notices')).body);
    await until('the overview has it', async () => /were taken back/.test(await notices()), {
      timeoutMs: 10_000,
    });
    await page.goto(`${pages.origin}/`);
    await press(page.locator('.notices a', { hasText: 'settings' }));
    await page.waitForURL(`${pages.origin}/tabs/settings#taken-back`);
    await press(told.locator('button'));
    await told.waitFor({ state: 'detached', timeout: 10_000 });
    await until('nor the overview', async () => !/were taken back/.test(await notices()), {
      timeoutMs: 10_000,
    });
    watched.assertClean();
    await watched.context.close();
  });

  it('says no more that settings may be taken back once somebody has kept them', async () => {
    const watched = await pages.open();
    const { page } = watched;
    const outcome = page.locator('#settings-outcome');
    await put(watched, 'bandwidth.up', '4M');
    await verdict(watched, 'good');
    await applied(watched);
    await outcome.locator('a').waitFor({ timeout: 10_000 });
    assert.match(await outcome.innerText(), /taken back in 60 s/);
    await press(page.locator('#trial button', { hasText: 'Keep it' }));
    await page.locator('#trial').waitFor({ state: 'detached', timeout: 10_000 });
    await until('it claims nothing', async () => (await outcome.innerText()).trim() === '', {
      timeoutMs: 10_000,
    });
    assert.match(await page.locator('main').innerText(), /It stays\./);
    assert.match(await page.locator('#settings-text').inputValue(), /^up = "4M"/m);
    await put(watched, 'bandwidth.up', '5M');
    await verdict(watched, 'good');
    await applied(watched);
    assert.match(await outcome.innerText(), /taken back in 60 s/);
    await press(page.locator('#trial button', { hasText: 'Take it back' }));
    await pages.daemon.submit(pages.text);
    await until('the former text is back', async () => (await pages.file()) === pages.text, {
      timeoutMs: 10_000,
    });
    watched.assertClean();
    await watched.context.close();
  });

  it('puts nothing on trial that changes who may enter, says so, and keeps what was on trial', async () => {
    const watched = await pages.open();
    const { page } = watched;
    const before = await pages.file();
    const outcome = page.locator('#settings-outcome');
    await put(watched, 'bandwidth.up', '6M');
    await verdict(watched, 'good');
    await applied(watched);
    await page.locator('#trial').waitFor({ timeout: 10_000 });
    await put(watched, 'nfs.allowed_clients', '192.0.2.9');
    await verdict(watched, 'good');
    await applied(watched);
    await page.locator('#trial').waitFor({ state: 'detached', timeout: 10_000 });
    assert.match(await outcome.innerText(), /It stays: nothing is on trial any more/);
    assert.match(await pages.file(), /^up = "6M"/m);
    watched.assertClean();
    await watched.context.close();
    await pages.daemon.submit(before);
  });

  it('keeps what was applied by somebody who leaves the page at once, and one lost answer does no harm', async () => {
    const watched = await pages.open();
    const { page } = watched;
    await put(watched, 'dir_refresh.interval', '7m');
    await verdict(watched, 'good');
    await applied(watched);
    let asked = 0;
    await page.route('**/do/settings/reached', async (route) => {
      asked += 1;
      await (asked === 1 ? route.abort() : route.continue());
    });
    await page.goto(`${pages.origin}/shares/files`);
    await until(
      'the page reaches the daemon',
      async () => /still reaches/.test(await page.locator('.arrived').innerText()),
      { timeoutMs: 15_000 },
    );
    assert.equal(asked, 2);
    await page.goto(`${pages.origin}/tabs/settings`);
    assert.match(await page.locator('#trial').innerText(), /Stays, unless a share/);
    await watched.context.close();
  });

  it('goes back when a share fails that has the settings only once it has sent its files', async (t) => {
    await pages.daemon.submit(pages.text.replace('up = "5M"', 'up = "100K"'));
    const slow = await pages.file();
    const watched = await pages.open();
    const { page } = watched;
    // 15 s at that speed.
    await writeFile(`${pages.daemon.mountPoint('files')}/film.bin`, Buffer.alloc(1_500_000, 7));
    await put(watched, 'shares[0].remote_path', 'no-such-folder');
    await verdict(watched, 'good');
    await applied(watched);
    const appliedAt = performance.now();
    const trial = page.locator('#trial');
    await until(
      'it is said who waits, and no time, since nobody knows that',
      async () => {
        const said = await trial.innerText();
        return /still send their files[^]*files/.test(said) && !/taken back at|Stays, unless/i.test(said);
      },
      { timeoutMs: 20_000 },
    );
    await until('it is down with the new ones', async () => /taken back at/.test(await trial.innerText()), {
      timeoutMs: 90_000,
    });
    const switchedAt = performance.now();
    await until('it is said why', async () => /files: the path is not there/.test(await trial.innerText()), {
      timeoutMs: 30_000,
    });
    await until('the former text is back', async () => (await pages.file()) === slow, { timeoutMs: 90_000 });
    t.diagnostic(
      `had the settings after ${Math.round((switchedAt - appliedAt) / 1_000)} s, ` +
        `taken back ${Math.round((performance.now() - switchedAt) / 1_000)} s later`,
    );
    const told = page.locator('#taken-back');
    await told.waitFor({ timeout: 10_000 });
    assert.match(
      await told.innerText(),
      /the share 'files' was healthy and is not any more: the path is not there/,
    );
    await pages.daemon.healthy(['files']);
    await pages.daemon.synced(60_000);
    assert.equal(await pages.nas.has('film.bin'), true);
    watched.assertClean();
    await watched.context.close();
  });
});
