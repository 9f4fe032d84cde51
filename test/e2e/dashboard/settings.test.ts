// @load loud
/**
 * The settings page in real Chromium beside the real daemon: form and text, what a change does, two
 * administrators, trial and history.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { hasFocus, press, write } from '../../support/dashboard/keyboard.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { sleep, until } from '../../support/platform/wait.ts';

describe('the settings page', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let nas: Nas;
  let browser: Browser;
  let text: string;
  const origin = (): string => `http://127.0.0.1:${daemon.port}`;

  before(async () => {
    scratch = await createScratch('settings');
    nas = await Nas.create(scratch, { files: { 'a.txt': 500 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas' }],
    });
    text = `# Ada's notes\n${daemon.text()}\n[bandwidth] # of the office\nup = "5M" # not more\n`;
    await daemon.writeConfig(text);
    await daemon.start();
    await daemon.healthy();
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  const open = async (locale = 'en'): Promise<WatchedPage> => {
    const watched = await WatchedPage.open(browser, origin(), { locale });
    watched.page.on('dialog', (dialog) => void dialog.accept());
    await watched.page.goto(`${origin()}/tabs/settings`);
    return watched;
  };
  const file = (): Promise<string> => readFile(daemon.configFile, 'utf8');
  const field = ({ page }: WatchedPage, path: string) =>
    page.locator(`[data-field="${path}"] :is(input, select)`);
  /** As by keyboard: the value, and on to the next field. */
  const put = async (watched: WatchedPage, path: string, value: string): Promise<void> => {
    await watched.page
      .locator('details')
      .evaluateAll((all) =>
        all.forEach((one) =>
          (one as unknown as { setAttribute(name: string, value: string): void }).setAttribute('open', ''),
        ),
      );
    await field(watched, path).fill(value);
    await field(watched, path).press('Tab');
  };
  const verdict = ({ page }: WatchedPage, kind: string) =>
    page.locator(`#settings-verdict [data-verdict="${kind}"]`).waitFor({ timeout: 10_000 });
  const applied = async ({ page }: WatchedPage): Promise<void> => {
    await press(page.locator('button.primary'));
    await page.locator('#settings-outcome .outcome[data-tone="good"]').first().waitFor({ timeout: 10_000 });
  };

  it('shows no secret, and everything else as it stands in the file', async () => {
    const watched = await open();
    const shown = await watched.page.locator('#settings-text').inputValue();
    assert.ok(shown.startsWith("# Ada's notes\n") && shown.includes('up = "5M" # not more'));
    assert.match(shown, /"pass" = "\*{8}"/);
    assert.equal(await field(watched, 'connections[0].options.pass').inputValue(), '********');
    watched.assertClean();
    await watched.context.close();
  });

  it('shows a bad value at its field, and a good one in the text with what it interrupts', async () => {
    const watched = await open();
    await put(watched, 'supervisor.poll_interval', 'soon');
    await verdict(watched, 'bad');
    await until(
      'it stands at the field',
      async () => (await field(watched, 'supervisor.poll_interval').getAttribute('aria-invalid')) === 'true',
      { timeoutMs: 3_000 },
    );
    assert.match(
      await watched.page.locator('[data-field="supervisor.poll_interval"] .problem').innerText(),
      /is not a duration/,
    );
    await press(watched.page.locator('button[data-line]'));
    assert.match(
      await watched.page.evaluate<string>(
        '(() => { const t = document.querySelector("#settings-text"); ' +
          'return t.value.slice(t.selectionStart, t.selectionEnd); })()',
      ),
      /poll_interval = "soon"/,
    );
    await put(watched, 'supervisor.poll_interval', '2s');
    await verdict(watched, 'good');
    await until(
      'the field is good',
      async () => (await field(watched, 'supervisor.poll_interval').getAttribute('aria-invalid')) === null,
      { timeoutMs: 3_000 },
    );
    assert.match(
      await watched.page.locator('#settings-verdict').innerText(),
      /poll_interval: "1s" → "2s"[^]*Interrupts nobody/,
    );
    await field(watched, 'shares[0].read_only').selectOption('true');
    await until(
      'whom it interrupts',
      async () =>
        /Interrupts whoever works on this share: files/.test(
          await watched.page.locator('#settings-verdict').innerText(),
        ),
      { timeoutMs: 10_000 },
    );
    assert.equal(await file(), text, 'nothing is applied');
    watched.assertClean();
    await watched.context.close();
  });

  it('keeps changes that follow each other faster than the daemon answers', async () => {
    const watched = await open();
    await watched.page.route('**/set', async (route) => {
      await sleep(700);
      await route.continue();
    });
    const text = (): Promise<string> => watched.page.locator('#settings-text').inputValue();
    await put(watched, 'bandwidth.up', '3M');
    await put(watched, 'bandwidth.down', '4M');
    // Half typed when the answers come.
    await field(watched, 'dir_refresh.interval').fill('9m');
    await until('two answers', async () => /^down = "4M"/m.test(await text()), { timeoutMs: 10_000 });
    await field(watched, 'dir_refresh.interval').press('Tab');
    await until(
      'the text has all three',
      async () => {
        const typed = await text();
        return /^up = "3M"/m.test(typed) && /^down = "4M"/m.test(typed) && /^interval = "9m"/m.test(typed);
      },
      { timeoutMs: 15_000 },
    );
    watched.assertClean();
    await watched.context.close();
  });

  it('keeps the size that somebody has dragged the text to', async () => {
    const watched = await open();
    const { page } = watched;
    const box = page.locator('#settings-text');
    const height = async (): Promise<number> => (await box.boundingBox())?.height ?? 0;
    await box.evaluate<undefined, unknown>('(one) => one.scrollIntoView({ block: "end" })');
    const corner = await box.boundingBox();
    assert.ok(corner);
    const [x, y] = [corner.x + corner.width - 4, corner.y + corner.height - 4];
    await page.mouse.move(x, y);
    await page.mouse.down();
    await page.mouse.move(x, y - 150, { steps: 5 });
    await page.mouse.up();
    const dragged = await height();
    assert.ok(dragged < corner.height - 100, `it is ${dragged} high`);
    await put(watched, 'bandwidth.up', '3M');
    await verdict(watched, 'good');
    assert.match(await box.inputValue(), /^up = "3M"/m);
    assert.equal(await height(), dragged);
    watched.assertClean();
    await watched.context.close();
  });

  it('asks before it gives up what was not applied, and nobody who has typed nothing', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void (asked.length === 1 ? dialog.dismiss() : dialog.accept());
    });
    const leave = (): Promise<void> => page.locator('header a', { hasText: 'Logs' }).click();
    await page.goto(`${origin()}/tabs/settings`);
    await leave();
    await page.waitForURL(`${origin()}/tabs/logs`);
    assert.deepEqual(asked, []);
    await page.goto(`${origin()}/tabs/settings`);
    const box = page.locator('#settings-text');
    await box.click();
    await page.keyboard.type('# typed ');
    const typed = await box.inputValue();
    await leave();
    await until('it asks', () => Promise.resolve(asked.length === 1), { timeoutMs: 10_000 });
    assert.deepEqual([page.url(), await box.inputValue()], [`${origin()}/tabs/settings`, typed]);
    await leave();
    await page.waitForURL(`${origin()}/tabs/logs`);
    assert.deepEqual(asked, ['beforeunload', 'beforeunload']);
    await watched.context.close();
  });

  it('says in Chinese what is wrong, at its field', async () => {
    const watched = await open('zh-CN');
    await put(watched, 'web.port', '70000');
    await verdict(watched, 'bad');
    const said = watched.page.locator('[data-field="web.port"] .problem');
    await until(
      'it stands at the field',
      async () => /^web\.port 必须是 0 到 65535 的端口$/.test(await said.innerText()),
      { timeoutMs: 10_000 },
    );
    watched.assertClean();
    await watched.context.close();
  });

  it('follows the text with the form, and applies with notes, layout and secrets kept', async () => {
    const watched = await open();
    const box = watched.page.locator('#settings-text');
    await watched.page.locator('details[data-section="cache"] > summary').click();
    await box.fill((await box.inputValue()).replace('up = "5M"', 'up = "7M"'));
    await verdict(watched, 'good');
    await until(
      'the form follows',
      async () => (await field(watched, 'bandwidth.up').inputValue()) === '7M',
      { timeoutMs: 3_000 },
    );
    assert.notEqual(
      await watched.page.locator('details[data-section="cache"]').getAttribute('open'),
      null,
      'what somebody has opened is open',
    );
    await put(watched, 'bandwidth.down', '9M');
    await until(
      'both changes',
      async () => /up:[^]*down:/.test(await watched.page.locator('#settings-verdict').innerText()),
      { timeoutMs: 10_000 },
    );
    await applied(watched);
    await until(
      'nothing would be lost',
      async () => (await watched.page.locator('.settings[data-typed]').count()) === 0,
      { timeoutMs: 3_000 },
    );
    assert.equal(await file(), text.replace('up = "5M" # not more\n', 'up = "7M" # not more\ndown = "9M"\n'));
    await until(
      'it is in force',
      async () =>
        (await daemon.get<{ limit: { down: number } }>('/api/bwlimit')).body.limit.down === 9 * 1024 * 1024,
      { timeoutMs: 10_000 },
    );
    await until(
      'the page reaches the daemon',
      async () => /still reaches/.test(await watched.page.locator('#settings-outcome').innerText()),
      { timeoutMs: 10_000 },
    );
    await until(
      'it is on trial',
      async () => /Stays, unless a share/.test(await watched.page.locator('#trial').innerText()),
      { timeoutMs: 10_000 },
    );
    watched.assertClean();
    await watched.context.close();
  });

  it('takes back what is on trial when asked, and puts a former version into the editor', async () => {
    const watched = await open();
    await press(watched.page.locator('#trial button', { hasText: 'Take it back' }));
    await until('the former text is back', async () => (await file()) === text, { timeoutMs: 10_000 });
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
    assert.equal(await file(), text);
    watched.assertClean();
    await watched.context.close();
  });

  it('draws the editor anew where others apply, and says so where somebody has typed', async () => {
    const [first, idle, typing] = [await open(), await open(), await open()];
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
    await until('the former text is back', async () => (await file()) === text, { timeoutMs: 10_000 });
    for (const watched of [first, idle, typing]) {
      watched.assertClean();
      await watched.context.close();
    }
  });

  it('claims nothing any more of settings that were taken back, and says so until somebody has read it', async () => {
    const watched = await open();
    const { page } = watched;
    const before = await page.locator('#settings-text').inputValue();
    const outcome = page.locator('#settings-outcome');
    await put(watched, 'bandwidth.up', '2M');
    await verdict(watched, 'good');
    await applied(watched);
    await outcome.locator('a').waitFor({ timeout: 10_000 });
    await until('it is reached', async () => /Mountkeeper\.\s* On trial$/.test(await outcome.innerText()), {
      timeoutMs: 10_000,
    });
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
    const notices = async (): Promise<string> => JSON.stringify((await daemon.get('/api/notices')).body);
    await until('the overview has it', async () => /were taken back/.test(await notices()), {
      timeoutMs: 10_000,
    });
    await page.goto(`${origin()}/`);
    await press(page.locator('.notices a', { hasText: 'settings' }));
    await page.waitForURL(`${origin()}/tabs/settings#taken-back`);
    await press(told.locator('button'));
    await told.waitFor({ state: 'detached', timeout: 10_000 });
    await until('nor the overview', async () => !/were taken back/.test(await notices()), {
      timeoutMs: 10_000,
    });
    watched.assertClean();
    await watched.context.close();
  });

  it('says no more that settings may be taken back once somebody has kept them', async () => {
    const watched = await open();
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
    await daemon.submit(text);
    await until('the former text is back', async () => (await file()) === text, { timeoutMs: 10_000 });
    watched.assertClean();
    await watched.context.close();
  });

  it('keeps what was applied by somebody who leaves the page at once, and one lost answer does no harm', async () => {
    const watched = await open();
    const { page } = watched;
    await put(watched, 'dir_refresh.interval', '7m');
    await verdict(watched, 'good');
    await applied(watched);
    let asked = 0;
    await page.route('**/do/settings/reached', async (route) => {
      asked += 1;
      await (asked === 1 ? route.abort() : route.continue());
    });
    await page.goto(`${origin()}/shares/files`);
    await until(
      'the page reaches the daemon',
      async () => /still reaches/.test(await page.locator('.arrived').innerText()),
      { timeoutMs: 15_000 },
    );
    assert.equal(asked, 2);
    await page.goto(`${origin()}/tabs/settings`);
    assert.match(await page.locator('#trial').innerText(), /Stays, unless a share/);
    await watched.context.close();
  });

  it('tells the second of two administrators what the first has changed', async () => {
    const [first, second] = [await open(), await open()];
    await put(second, 'supervisor.poll_interval', '2s');
    await verdict(second, 'good');
    await put(first, 'bandwidth.up', '3M');
    await verdict(first, 'good');
    await applied(first);
    await second.page.locator('button.primary').click();
    await until(
      'the second is told',
      async () =>
        /Somebody else has changed[^]*bandwidth\.up: "5M" → "3M"/.test(
          await second.page.locator('#settings-outcome').innerText(),
        ),
      { timeoutMs: 10_000 },
    );
    assert.doesNotMatch(await file(), /poll_interval = "2s"/);
    for (const watched of [first, second]) {
      watched.assertClean();
      await watched.context.close();
    }
  });

  it('adds and removes, and sets a preset', async () => {
    const watched = await open();
    const users = watched.page.locator('details[data-section="smb.users"]');
    await press(users.locator('summary'));
    await press(users.locator('button', { hasText: 'Add' }));
    await until(
      'the text has it',
      async () => (await watched.page.locator('#settings-text').inputValue()).includes('[[smb.users]]'),
      { timeoutMs: 10_000 },
    );
    await put(watched, 'smb.users[0].password', 'of ada "\u2019s');
    await until(
      'the password is in the text',
      async () => (await watched.page.locator('#settings-text').inputValue()).includes('of ada'),
      { timeoutMs: 10_000 },
    );
    await press(users.locator('button', { hasText: 'Remove' }));
    await verdict(watched, 'same');
    await until('the focus in the form', () => hasFocus(watched.page.locator('#settings-fields')), {
      timeoutMs: 3_000,
    });
    const web = watched.page.locator('details[data-section="web.users"]');
    assert.match(await web.innerText(), /mountkeeper hash-password/);
    await press(web.locator('button', { hasText: 'Add' }));
    await verdict(watched, 'bad');
    assert.match(
      await watched.page.locator('[data-field="web.users[0].password_hash"] .problem').innerText(),
      /hash/,
    );
    await press(web.locator('button', { hasText: 'Remove' }));
    await verdict(watched, 'same');
    const tokens = watched.page.locator('details[data-section="web.tokens"]');
    assert.match(await tokens.innerText(), /mountkeeper token new/);
    await press(watched.page.locator('button', { hasText: 'Office' }));
    await until(
      'the preset',
      async () => /mount\.buffer_size/.test(await watched.page.locator('#settings-verdict').innerText()),
      { timeoutMs: 10_000 },
    );
    watched.assertClean();
    await watched.context.close();
  });

  it('loses nothing that was typed when the daemon starts anew, and still knows what it was read from', async () => {
    const watched = await open();
    const { page } = watched;
    const box = page.locator('#settings-text');
    const from = await page.locator('#settings-version').inputValue();
    const typed = (await box.inputValue()).replace(/^up = "\dM"/m, 'up = "8M"');
    await box.fill(typed);
    await verdict(watched, 'good');
    const guide = await watched.context.newPage();
    await guide.goto(`${origin()}/tabs/setup`);
    await guide.locator('#guide input[name=address]').fill('nas.example');
    for (const one of [page, guide])
      await one.evaluate(`(() => {
        window.frames = [];
        document.addEventListener('htmx:sseMessage', ({ target }) => {
          if (target.tagName === 'MAIN') window.frames.push(target.childElementCount);
        });
      })()`);
    await daemon.stop();
    await daemon.writeConfig(`${await file()}# of another administrator\n`);
    await daemon.start();
    for (const one of [page, guide]) {
      await until(
        'the page is drawn anew',
        async () => (await one.evaluate<number>('window.frames.length')) > 0,
        {
          timeoutMs: 30_000,
        },
      );
      assert.ok((await one.evaluate<number>('Math.min(...window.frames)')) > 0, 'the page was empty');
    }
    assert.deepEqual(
      [await box.inputValue(), await page.locator('#settings-version').inputValue()],
      [typed, from],
    );
    await page.locator('#settings-verdict button.primary').click();
    await until(
      'the other change is told',
      async () => /Somebody else has changed/.test(await page.locator('#settings-outcome').innerText()),
      { timeoutMs: 10_000 },
    );
    assert.equal(await guide.locator('#guide input[name=address]').inputValue(), 'nas.example');
    await watched.context.close();
  });

  it('asks before it gives up what somebody has typed for another version of the page', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    let tell = (): void => undefined;
    const isTyped = new Promise<void>((resolve) => (tell = resolve));
    await page.route('**/dashboard/events?*', async (route) => {
      await isTyped;
      await route.fulfill({
        contentType: 'text/event-stream',
        body: 'event: beat\ndata: {"age":0,"build":"another"}\n\n',
      });
    });
    await page.goto(`${origin()}/tabs/settings`);
    const typed = `${await page.locator('#settings-text').inputValue()}# typed\n`;
    await page.locator('#settings-text').fill(typed);
    tell();
    const link = page.locator('#lost a', { hasText: 'what you typed here is lost' });
    await link.waitFor({ timeout: 20_000 });
    assert.equal(await page.locator('#settings-text').inputValue(), typed);
    await page.unroute('**/dashboard/events?*');
    await link.click();
    await until('loaded anew', async () => (await page.locator('#settings-text').inputValue()) !== typed, {
      timeoutMs: 10_000,
    });
    await watched.context.close();
  });

  it('leads a connection elsewhere only with its password given again', async () => {
    const watched = await open();
    await put(watched, 'connections[0].options.host', 'evil.example');
    await verdict(watched, 'bad');
    assert.match(await watched.page.locator('#settings-verdict').innerText(), /cannot be changed over HTTP/);
    await put(watched, 'connections[0].options.pass', 'another');
    await until(
      'it may',
      async () => (await watched.page.locator('#settings-verdict [data-verdict=good]').count()) === 1,
      { timeoutMs: 10_000 },
    );
    watched.assertClean();
    await watched.context.close();
  });

  let password = 'a longer "password"';

  it('offers to set a password while there is none, which stays once somebody signs in with it', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    await page.goto(`${origin()}/`);
    const card = page.locator('#frame-password');
    // One that is refused leaves the page as it was, with a stream of its own.
    const refusal = '<span class="outcome" data-tone="bad">refused</span>';
    await page.route(
      '**/do/password/set',
      (route) => route.fulfill({ contentType: 'text/html', body: refusal }),
      {
        times: 1,
      },
    );
    const reopened = page.waitForRequest(/\/dashboard\/events/, { timeout: 10_000 });
    await write(card.locator('input'), password);
    await press(card.locator('button'));
    await reopened;
    assert.equal(await page.locator('#lost').isVisible(), false);
    await press(page.locator('.notices a[href="#frame-password"]'));
    await until(
      'the form is in sight',
      async () =>
        page.evaluate<boolean>(
          '(({ top, bottom }) => top >= 0 && bottom <= innerHeight)' +
            '(document.querySelector("#frame-password").getBoundingClientRect())',
        ),
      { timeoutMs: 3_000 },
    );
    assert.match(await card.innerText(), /Everybody with an account on this machine/);
    await write(card.locator('input'), password);
    await press(card.locator('button'));
    const way = page.locator('#lost a');
    await way.waitFor({ timeout: 20_000 });
    assert.match(await page.locator('#lost').innerText(), /not signed in any more/);
    assert.equal(await card.locator('input').inputValue(), password, 'what was typed is still there');
    // Longer than a browser waits before it opens a stream anew.
    await sleep(6_000);
    watched.assertClean();
    await press(way);
    await page.waitForURL(`${origin()}/sign-in?back=%2F`);
    watched.assertClean();
    await watched.signIn('a shorter one');
    assert.match(await page.locator('[role=alert]').innerText(), /password is wrong/);
    const proved = page.waitForResponse(/\/do\/settings\/reached$/);
    await watched.signIn(password);
    assert.equal((await proved).status(), 200);
    assert.equal(await card.isVisible(), false, 'there is nothing to say any more');
    await page.goto(`${origin()}/tabs/settings`);
    assert.match(await page.locator('#trial').innerText(), /Stays, unless a share/);
    assert.ok(!(await file()).includes('********'));
    await watched.context.close();
  });

  it('keeps a password that was changed in the editor, once somebody signs in with it', async () => {
    const watched = await WatchedPage.open(browser, origin());
    const { page } = watched;
    page.on('dialog', (dialog) => void dialog.accept());
    await page.goto(`${origin()}/tabs/settings`);
    await watched.signIn(password);
    await page.waitForURL(`${origin()}/tabs/settings`);
    await page.locator('#trial button', { hasText: 'Keep it' }).click();
    await page.locator('#trial').waitFor({ state: 'detached', timeout: 10_000 });
    password = 'another, longer';
    await put(watched, 'web.password', password);
    await verdict(watched, 'good');
    await page.locator('button.primary').click();
    await page.locator('#lost a').click({ timeout: 20_000 });
    await page.waitForURL(/\/sign-in/);
    const proved = page.waitForResponse(/\/do\/settings\/reached$/);
    await watched.signIn(password);
    assert.equal((await proved).status(), 200);
    await until(
      'it stays',
      async () => /Stays, unless a share/.test(await page.locator('#trial').innerText()),
      { timeoutMs: 10_000 },
    );
    await watched.context.close();
  });

  it('leads a browser to the page to sign in, back to the page that it asked for, and out again', async () => {
    const small = { locale: 'zh-CN', viewport: { width: 360, height: 740 } };
    const watched = await WatchedPage.open(browser, origin(), small);
    const { context, page } = watched;
    const asked = '/tabs/logs?level=warn';
    await page.goto(`${origin()}${asked}`);
    const form = `${origin()}/sign-in?back=${encodeURIComponent(asked)}`;
    assert.equal(page.url(), form);
    await watched.assertAccessible('the page to sign in');
    const tooWide = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
    assert.ok((await page.evaluate<number>(tooWide)) <= 0);
    await watched.signIn(password);
    await page.waitForURL(`${origin()}${asked}`);
    await page.locator('header nav').waitFor();
    watched.assertClean();
    const other = await context.newPage();
    await other.goto(`${origin()}/`);
    await other.locator('form[action="/sign-out"] button').click();
    await other.waitForURL(`${origin()}/sign-in`);
    // The first one notices by itself: what it loads is refused.
    await page.waitForURL(form, { timeout: 20_000 });
    await context.close();
  });
});
