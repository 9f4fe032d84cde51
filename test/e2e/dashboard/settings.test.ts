// @load loud
/** The settings page in real Chromium beside the real daemon: form and text, what a change does, two administrators. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Locator } from 'playwright-core';
import { hasBrowser } from '../../support/dashboard/chromium.ts';
import { hasFocus, press } from '../../support/dashboard/keyboard.ts';
import {
  applied,
  field,
  holds,
  openSettings,
  problem,
  put,
  says,
  text,
  verdict,
} from '../../support/dashboard/settings-page.ts';
import type { SettingsPages } from '../../support/dashboard/settings-page.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SKIPS } from '../../runner/skips.ts';
import { sleep, until } from '../../support/platform/wait.ts';

describe('the settings page', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let pages: SettingsPages;

  before(async () => {
    scratch = await createScratch('settings');
    pages = await openSettings(scratch);
  });
  after(() => scratch.close());

  it('shows no secret, and everything else as it stands in the file', async () => {
    const watched = await pages.open();
    const shown = await text(watched).inputValue();
    assert.ok(shown.startsWith("# Ada's notes\n") && shown.includes('up = "5M" # not more'));
    assert.match(shown, /"pass" = "\*{8}"/);
    const pass = field(watched, 'connections[0].options.pass');
    assert.deepEqual([await pass.inputValue(), await pass.getAttribute('placeholder')], ['', '********']);
    watched.assertClean();
    await watched.context.close();
  });

  it('shows a bad value at its field, and a good one in the text with what it interrupts', async () => {
    const watched = await pages.open();
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
    await says(
      'whom it interrupts',
      watched.page.locator('#settings-verdict'),
      /Interrupts whoever works on this share: files/,
    );
    assert.equal(await pages.file(), pages.text, 'nothing is applied');
    watched.assertClean();
    await watched.context.close();
  });

  it('keeps changes that follow each other faster than the daemon answers', async () => {
    const watched = await pages.open();
    await watched.page.route('**/set', async (route) => {
      await sleep(700);
      await route.continue();
    });
    await put(watched, 'bandwidth.up', '3M');
    await put(watched, 'bandwidth.down', '4M');
    // Half typed when the answers come.
    await field(watched, 'dir_refresh.interval').fill('9m');
    await holds(watched, 'two answers', /^down = "4M"/m);
    await field(watched, 'dir_refresh.interval').press('Tab');
    await until(
      'the text has all three',
      async () => {
        const typed = await text(watched).inputValue();
        return /^up = "3M"/m.test(typed) && /^down = "4M"/m.test(typed) && /^interval = "9m"/m.test(typed);
      },
      { timeoutMs: 15_000 },
    );
    watched.assertClean();
    await watched.context.close();
  });

  it('keeps the size that somebody has dragged the text to', async () => {
    const watched = await pages.open();
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
    const watched = await WatchedPage.open(pages.browser, pages.origin);
    const { page } = watched;
    const asked: string[] = [];
    page.on('dialog', (dialog) => {
      asked.push(dialog.type());
      void (asked.length === 1 ? dialog.dismiss() : dialog.accept());
    });
    const leave = (): Promise<void> => page.locator('header a', { hasText: 'Logs' }).click();
    await page.goto(`${pages.origin}/tabs/settings`);
    await leave();
    await page.waitForURL(`${pages.origin}/tabs/logs`);
    assert.deepEqual(asked, []);
    await page.goto(`${pages.origin}/tabs/settings`);
    const box = page.locator('#settings-text');
    await box.click();
    await page.keyboard.type('# typed ');
    const typed = await box.inputValue();
    await leave();
    await until('it asks', () => Promise.resolve(asked.length === 1), { timeoutMs: 10_000 });
    assert.deepEqual([page.url(), await box.inputValue()], [`${pages.origin}/tabs/settings`, typed]);
    await leave();
    await page.waitForURL(`${pages.origin}/tabs/logs`);
    assert.deepEqual(asked, ['beforeunload', 'beforeunload']);
    await watched.context.close();
  });

  it('says in Chinese what is wrong, at its field', async () => {
    const watched = await pages.open('zh-CN');
    await put(watched, 'web.port', '70000');
    await verdict(watched, 'bad');
    const said = watched.page.locator('[data-field="web.port"] .problem');
    await says('it stands at the field', said, /^web\.port 必须是 0 到 65535 的端口$/);
    watched.assertClean();
    await watched.context.close();
  });

  it('follows the text with the form, and applies with notes, layout and secrets kept', async () => {
    const watched = await pages.open();
    const box = text(watched);
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
    await says('both changes', watched.page.locator('#settings-verdict'), /up:[^]*down:/);
    await applied(watched);
    await until(
      'nothing would be lost',
      async () => (await watched.page.locator('.settings[data-typed]').count()) === 0,
      { timeoutMs: 3_000 },
    );
    assert.equal(
      await pages.file(),
      pages.text.replace('up = "5M" # not more\n', 'up = "7M" # not more\ndown = "9M"\n'),
    );
    await until(
      'it is in force',
      async () =>
        (await pages.daemon.get<{ limit: { down: number } }>('/api/bwlimit')).body.limit.down ===
        9 * 1024 * 1024,
      { timeoutMs: 10_000 },
    );
    await says('the page reaches the daemon', watched.page.locator('#settings-outcome'), /still reaches/);
    await says('it is on trial', watched.page.locator('#trial'), /Stays, unless a share/);
    watched.assertClean();
    await pages.daemon.submit(pages.text);
    await watched.context.close();
  });

  it('tells the second of two administrators what the first has changed', async () => {
    const [first, second] = [await pages.open(), await pages.open()];
    await put(second, 'supervisor.poll_interval', '2s');
    await verdict(second, 'good');
    await put(first, 'bandwidth.up', '3M');
    await verdict(first, 'good');
    await applied(first);
    await second.page.locator('button.primary').click();
    await says(
      'the second is told',
      second.page.locator('#settings-outcome'),
      /Somebody else has changed[^]*bandwidth\.up: "5M" → "3M"/,
    );
    assert.doesNotMatch(await pages.file(), /poll_interval = "2s"/);
    for (const watched of [first, second]) {
      watched.assertClean();
      await watched.context.close();
    }
  });

  it('adds and removes, and sets a preset', async () => {
    const watched = await pages.open();
    const users = watched.page.locator('details[data-section="smb.users"]');
    await press(users.locator('summary'));
    await press(users.locator('button', { hasText: 'Add' }));
    await holds(watched, 'the text has it', /\[\[smb\.users\]\]/);
    await put(watched, 'smb.users[0].password', 'of ada "\u2019s');
    await holds(watched, 'the password is in the text', /of ada/);
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
    await says('the preset', watched.page.locator('#settings-verdict'), /mount\.buffer_size/);
    watched.assertClean();
    await watched.context.close();
  });

  it('adds a group by its name, fills it with a user, applies it and takes it away', async () => {
    const watched = await pages.open();
    const section = (name: string): Locator => watched.page.locator(`details[data-section="${name}"]`);
    const groups = section('groups');
    const users = section('smb.users');
    const said = watched.page.locator('#settings-verdict');
    await press(groups.locator('summary'));
    await groups.locator('input[name=entry]').fill('office');
    await press(groups.locator('button', { hasText: 'Add' }));
    await field(watched, 'groups.office').waitFor({ timeout: 10_000 });
    await put(watched, 'groups.office', 'ada');
    await says('who is no user yet', said, /groups\.office\[0\] names "ada", a user of no server/);
    await press(users.locator('button', { hasText: 'Add' }));
    await put(watched, 'smb.users[0].name', 'ada');
    await put(watched, 'smb.users[0].password', 'of ada');
    await says('who is added', said, /groups\.office[^]*ada/);
    await applied(watched);
    assert.match(await pages.file(), /^\[groups\]\noffice = \["ada"\]$/m);
    await press(groups.locator('button', { hasText: 'Remove' }));
    await press(users.locator('button', { hasText: 'Remove' }));
    await until(
      'both are gone from the text',
      async () =>
        !/office =|smb\.users/.test(await text(watched).inputValue()) &&
        /groups\.office[^]*removed/.test(await said.innerText()) &&
        /smb\.users/.test(await said.innerText()),
      { timeoutMs: 10_000 },
    );
    await applied(watched);
    // What came of applying the first time still stands while that is on trial.
    await until('both are gone from the file', async () => !/office =|ada"/.test(await pages.file()), {
      timeoutMs: 10_000,
    });
    watched.assertClean();
    await watched.context.close();
  });

  it('loses nothing that was typed when the daemon starts anew, and still knows what it was read from', async () => {
    const watched = await pages.open();
    const { page } = watched;
    const box = page.locator('#settings-text');
    const from = await page.locator('#settings-version').inputValue();
    const typed = (await box.inputValue()).replace(/^up = "\dM"/m, 'up = "8M"');
    await box.fill(typed);
    await verdict(watched, 'good');
    const guide = await watched.context.newPage();
    await guide.goto(`${pages.origin}/tabs/setup`);
    await guide.locator('#guide input[name=address]').fill('nas.example');
    for (const one of [page, guide])
      await one.evaluate(`(() => {
        window.frames = [];
        document.addEventListener('htmx:sseMessage', ({ target }) => {
          if (target.tagName === 'MAIN') window.frames.push(target.childElementCount);
        });
      })()`);
    await pages.daemon.stop();
    await pages.daemon.writeConfig(`${await pages.file()}# of another administrator\n`);
    await pages.daemon.start();
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
    await says('the other change is told', page.locator('#settings-outcome'), /Somebody else has changed/);
    assert.equal(await guide.locator('#guide input[name=address]').inputValue(), 'nas.example');
    await watched.context.close();
  });

  it('asks before it gives up what somebody has typed for another version of the page', async () => {
    const watched = await WatchedPage.open(pages.browser, pages.origin);
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
    await page.goto(`${pages.origin}/tabs/settings`);
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
    const watched = await pages.open();
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

  it('keeps every note of a file in which a password is also a name', async () => {
    const noted = `${pages.text}[[smb.users]] # of the office\nname = "alice" # she\npassword = "alice"\n`;
    await pages.daemon.submit(noted);
    const watched = await pages.open();
    assert.equal(
      await watched.page.locator('.settings .side .notices p', { hasText: 'written anew' }).count(),
      0,
    );
    await put(watched, 'bandwidth.up', '6M');
    await verdict(watched, 'good');
    await applied(watched);
    assert.equal(await pages.file(), noted.replace('up = "5M"', 'up = "6M"'));
    watched.assertClean();
    await pages.daemon.submit(pages.text);
    await watched.context.close();
  });

  it('says before anybody applies that notes are lost where the text had to be written anew', async () => {
    await pages.daemon.submit(
      `${pages.text}[nfs]\nport = 0x1f9a\n[[smb.users]]\nname = "bob"\npassword = "0x1f9a"\n`,
    );
    const watched = await pages.open();
    const notice = watched.page.locator('.settings .side .notices', { hasText: 'written anew' });
    assert.match(await notice.innerText(), /takes them out of the file/);
    assert.doesNotMatch(await text(watched).inputValue(), /0x1f9a/);
    await put(watched, 'bandwidth.up', '6M');
    await verdict(watched, 'good');
    assert.match(await watched.page.locator('#settings-verdict').innerText(), /written anew: the notes/);
    await pages.daemon.submit(pages.text);
    await watched.context.close();
  });

  it('says of two users of one name, and of a token with two rights, where they are, and opens that', async () => {
    const watched = await pages.open();
    const { page } = watched;
    const users = page.locator('details[data-section="smb.users"]');
    await press(users.locator('> summary'));
    for (const count of [1, 2]) {
      await press(users.locator('> .actions button', { hasText: 'Add' }));
      await users
        .locator('details.item')
        .nth(count - 1)
        .waitFor({ timeout: 10_000 });
    }
    await put(watched, 'smb.users[0].password', 'of the first');
    await put(watched, 'smb.users[1].password', 'of the second');
    await put(watched, 'smb.users[1].name', 'user');
    await problem(watched, 'smb.users[1].name', /duplicate/);
    const token =
      `[[web.tokens]]\nname = "a"\ntoken_hash = "sha256$${'A'.repeat(43)}"\n` +
      'role = "viewer"\nverbs = ["status"]\n';
    await page.evaluate('for (const one of document.querySelectorAll("details")) one.open = false;');
    await text(watched).fill(`${pages.text}${token}`);
    const item = page.locator('details[data-holds="web.tokens[0]"]');
    const said = item.locator('> .problems .problem');
    await until('it is in sight', async () => (await said.count()) === 1 && (await said.isVisible()), {
      timeoutMs: 10_000,
    });
    assert.match(await said.innerText(), /role|verbs/);
    watched.assertClean();
    await watched.context.close();
  });

  it('adds a key beside dotted ones, and says in Chinese at its field what it cannot write', async () => {
    const [, rest = ''] = pages.text.split("# Ada's notes\n");
    const dotted = `# dots\nbandwidth.up = "4M" # not more\n${rest.split('\n[bandwidth]')[0]}`;
    await pages.daemon.submit(dotted);
    const watched = await pages.open('zh-CN');
    await put(watched, 'bandwidth.down', '9M');
    await verdict(watched, 'good');
    assert.equal(
      (await text(watched).inputValue()).split('\n').slice(0, 3).join('\n'),
      '# dots\nbandwidth.up = "4M" # not more\nbandwidth.down = "9M"',
    );
    await applied(watched);
    assert.match(await pages.file(), /^# dots\nbandwidth\.up = "4M" # not more\nbandwidth\.down = "9M"\n/);
    const broken = `bandwidth = "fast"\n${rest.split('\n[bandwidth]')[0]}`;
    await text(watched).fill(broken);
    await verdict(watched, 'bad');
    await put(watched, 'bandwidth.down', '8M');
    await problem(watched, 'bandwidth.down', /^bandwidth\.down 的上一级不是表$/);
    assert.equal(await field(watched, 'bandwidth.down').inputValue(), '8M');
    assert.equal(await text(watched).inputValue(), broken);
    watched.assertClean();
    await pages.daemon.submit(pages.text);
    await watched.context.close();
  });

  it('sets no secret that somebody types behind the mask, and hides the one that replaces it', async () => {
    const watched = await pages.open();
    const pass = field(watched, 'connections[0].options.pass');
    await put(watched, 'bandwidth.up', '6M');
    await verdict(watched, 'good');
    await pass.focus();
    await watched.page.keyboard.type('x');
    await pass.press('Tab');
    await holds(watched, 'what was typed alone', /"?pass"? = "x"/);
    await put(watched, 'connections[0].options.pass', '********x');
    await problem(watched, 'connections[0].options.pass', /begins with the mask/);
    await put(watched, 'connections[0].options.pass', '');
    await holds(watched, 'it is what it was', /"?pass"? = "\*{8}"/);
    await put(watched, 'connections[0].options.pass', 'another');
    const connections = watched.page.locator('details[data-section="connections"]');
    await press(connections.locator('> .actions button', { hasText: 'Add' }));
    await field(watched, 'connections[1].options.pass').waitFor({ timeout: 10_000 });
    for (const path of ['connections[0].options.pass', 'connections[1].options.pass'])
      assert.equal(await field(watched, path).getAttribute('type'), 'password', path);
    await watched.assertAccessible('the form');
    const item = connections.locator('details.item').nth(1);
    await item.getByLabel('Option').fill('port');
    await press(item.locator('.actions button', { hasText: 'Add' }));
    await put(watched, 'connections[1].options.port', '2222');
    await until(
      'it is a number',
      async () => /^options = .*port = 2222|^port = 2222$/m.test(await text(watched).inputValue()),
      {
        timeoutMs: 10_000,
      },
    );
    watched.assertClean();
    await watched.context.close();
  });
});
