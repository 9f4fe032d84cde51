// @load loud
/**
 * The path of docs/plugins.md, to the letter: its commands are taken from the page and run, in JavaScript and in
 * TypeScript, from an empty folder to a card on the dashboard and to a plugin that another daemon has installed.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { chmod, mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Browser } from 'playwright-core';
import { hasBrowser, openBrowser } from '../../support/dashboard/chromium.ts';
import { WatchedPage } from '../../support/dashboard/watched-page.ts';
import { Daemon, MAIN } from '../../support/daemon/daemon.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { PROJECT } from '../../support/plugins/examples.ts';
import { PackageRegistry } from '../../support/plugins/registry.ts';
import { inState } from '../../support/plugins/strangers.ts';
import { SKIPS } from '../../runner/skips.ts';

/** What is promised, of which a person's typing and reading take the most. */
const FIVE_MINUTES_MS = 300_000;
const ONE_BLOCK_MS = 120_000;

describe('the path of docs/plugins.md', { skip: !hasBrowser && SKIPS.chromium.reason }, () => {
  let scratch: Scratch;
  let page: string;
  let author: Daemon;
  let user: Daemon;
  let browser: Browser;
  let begunAt: number;
  const dirs = (): string => scratch.path('srv');

  /** A block of the page, with the places that this machine has in place of those that the page names. */
  const block = (name: string): string => {
    const text = new RegExp(`<!-- path: ${name} -->\\n\`\`\`\\w+\\n([^]*?)\`\`\``).exec(page)?.[1];
    assert.ok(text, `docs/plugins.md has no block "${name}"`);
    return text.replaceAll('/srv/mountkeeper-plugins', dirs()).replaceAll('/opt/mountkeeper', PROJECT);
  };
  /** Runs it line by line, as somebody would type it. Nothing is fetched: compiler and types are here. */
  const type = async (name: string, folder: string, daemon: Daemon, env = {}): Promise<string> => {
    const local = (one: string): string => `${PROJECT}node_modules/${one}`;
    const text = block(name).replace(
      ' typescript @types/node',
      ` ${local('typescript')} ${local('@types/node')}`,
    );
    return new Promise((resolve, reject) => {
      execFile(
        'sh',
        ['-euc', text],
        {
          cwd: folder,
          timeout: ONE_BLOCK_MS,
          env: {
            PATH: `${scratch.path('bin')}:${process.env['PATH'] ?? ''}`,
            HOME: scratch.path('home'),
            LANG: 'C.UTF-8',
            MOUNTKEEPER_CONFIG: daemon.configFile,
            npm_config_offline: 'true',
            npm_config_audit: 'false',
            ...env,
          },
        },
        (error, stdout, stderr) =>
          error ? reject(new Error(`${text}\n${stdout}${stderr}`)) : resolve(stdout),
      );
    });
  };
  const cardSays = async (text: string): Promise<void> => {
    const origin = `http://127.0.0.1:${author.port}`;
    const watched = await WatchedPage.open(browser, origin);
    await watched.page.goto(`${origin}/?overview=yes`);
    await watched.page.getByText(text, { exact: true }).waitFor({ timeout: 60_000 });
    watched.assertClean();
    await watched.context.close();
  };

  before(async () => {
    scratch = await createScratch('path');
    page = await readFile(`${PROJECT}docs/plugins.md`, 'utf8');
    for (const folder of ['bin', 'home']) await mkdir(scratch.path(folder));
    await writeFile(scratch.path('bin/mountkeeper'), `#!/bin/sh\nexec ${process.execPath} ${MAIN} "$@"\n`);
    await chmod(scratch.path('bin/mountkeeper'), 0o755);
    const traits = { connections: [{ name: 'nas', type: 'local' }], shares: [] };
    author = await Daemon.create(scratch, { ...traits, name: 'author' });
    user = await Daemon.create(scratch, { ...traits, name: 'user' });
    await author.start();
    browser = await openBrowser(scratch);
  });
  after(() => scratch.close());

  it('leads to a card on the dashboard, which changes when the file is saved', async () => {
    begunAt = performance.now();
    assert.match(await type('begin', scratch.root, author), /garden is fine/);
    await author.writeConfig(`${author.text()}\n${block('configuration')}`);
    await cardSays('good morning');
    assert.ok(performance.now() - begunAt < FIVE_MINUTES_MS);
    const file = `${dirs()}/garden/index.js`;
    await writeFile(file, (await readFile(file, 'utf8')).replace('<p>', '<p>Ada says: '));
    await cardSays('Ada says: good morning');
  });

  it('tests it, and it goes on with what npm has put beside it', async () => {
    assert.match(await type('test', `${dirs()}/garden`, author), /^# fail 0$/m);
    await cardSays('Ada says: good morning');
  });

  it('is the same in TypeScript, with a strict compiler', async () => {
    assert.match(await type('typescript', scratch.root, author), /^# fail 0$/m);
    await author.writeConfig(
      `${author.text()}\n${block('configuration')}\n[plugins.lights]\nenabled = true\ngreeting = "good night"\n`,
    );
    await cardSays('good night');
    const file = `${dirs()}/lights/index.ts`;
    await writeFile(file, (await readFile(file, 'utf8')).replace("'afterMount'", "'afterMuont'"));
    await assert.rejects(type('typescript', scratch.root, author), /exists already/);
    await writeFile(scratch.path('tsc.sh'), `cd ${dirs()}/lights && npx tsc`);
    const said = await new Promise<string>((resolve) => {
      execFile('sh', [scratch.path('tsc.sh')], { timeout: ONE_BLOCK_MS }, (_, stdout) => resolve(stdout));
    });
    assert.match(said, /index\.ts\(\d+,\d+\): error TS\d+: .*afterMuont/);
    await writeFile(file, (await readFile(file, 'utf8')).replace("'afterMuont'", "'afterMount'"));
  });

  it('ends with tarballs that another daemon installs, checks and shows', async () => {
    await user.start();
    mkdirSync(scratch.path('mail'));
    for (const name of ['garden', 'lights']) {
      await type('pack', `${dirs()}/${name}`, author);
      const tarball = `${name}-0.1.0.tgz`;
      await writeFile(scratch.path('mail', tarball), await readFile(`${dirs()}/${name}/${tarball}`));
    }
    await type('install', scratch.path('mail'), user);
    assert.equal((await user.cli('plugin', 'install', scratch.path('mail/lights-0.1.0.tgz'))).code, 0);
    for (const name of ['garden', 'lights']) {
      await inState(user, name, 'disabled');
      const { code, stdout, stderr } = await user.cli(
        'plugin',
        'check',
        `${user.stateDir}/installed-plugins/${name}`,
      );
      assert.equal(code, 0, stderr);
      assert.match(stdout, new RegExp(`${name} is fine`));
      await user.writeConfig(user.text({ sections: { [`plugins.${name}`]: { enabled: true } } }));
      await inState(user, name, 'active');
    }
    await until('it has a card', async () => (await user.get('/?overview=yes')).text.includes('hello'), {
      timeoutMs: 30_000,
    });
  });

  it('is published, found and installed by its name in the registry', async () => {
    const registry = await PackageRegistry.create(scratch);
    const env = { ...registry.env, npm_config_offline: 'false' };
    const home = registry.env['HOME'] ?? '';
    await mkdir(home, { recursive: true });
    // What `npm login` writes.
    await writeFile(`${home}/.npmrc`, `${registry.url.replace('http:', '')}/:_authToken=author\n`);
    await type('publish', `${dirs()}/garden`, author, env);
    await user.writeConfig(user.text({ sections: {} }));
    assert.equal((await user.cli('plugin', 'remove', 'garden', '--force')).code, 0);
    assert.match(await type('found', scratch.path('mail'), user, env), /@you\/mountkeeper-plugin-garden/);
    await inState(user, 'garden', 'disabled');
    await user.writeConfig(user.text({ sections: { 'plugins.garden': { enabled: true } } }));
    await inState(user, 'garden', 'active');
    await cardSays('Ada says: good morning');
  });
});
