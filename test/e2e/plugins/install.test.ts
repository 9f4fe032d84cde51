// @load quiet
/**
 * `mountkeeper plugin install` and what belongs to it, by the machine's own npm, from a registry on loopback:
 * into a running daemon, and never a half.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, rename } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon, MAIN } from '../../support/daemon/daemon.ts';
import type { CliResult } from '../../support/daemon/daemon.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { processesNaming } from '../../support/platform/processes.ts';
import { PackageRegistry } from '../../support/plugins/registry.ts';
import { inState, plugin, source } from '../../support/plugins/strangers.ts';
import { until as untilWithin } from '../../support/platform/wait.ts';

const until = <T>(what: string, look: () => T | Promise<T>): Promise<NonNullable<T>> =>
  untilWithin(what, look, { timeoutMs: 60_000 });

const says = (name: string, word: string): Record<string, string> => ({
  'index.js': source(name, `ctx.route({ method: 'GET', path: '/', handler: () => ({ word: '${word}' }) });`),
});

const PACKAGE = '@friend/mountkeeper-plugin-garden';
/** What its first version asks for, and how everybody reads it. */
const ASKED = ['read-status', 'network', 'processes'];
const MAY = 'read the status, use the network and the services of this machine, start processes';

describe('plugins of others', () => {
  let scratch: Scratch;
  let registry: PackageRegistry;
  let daemon: Daemon;
  let pid: number;

  before(async () => {
    scratch = await createScratch('install');
    registry = await PackageRegistry.create(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      env: registry.env,
    });
    await daemon.start();
    pid = daemon.pid;
  });
  after(() => scratch.close());

  const mk = (...args: string[]): Promise<CliResult> => daemon.cli('plugin', ...args);
  const word = async (name: string): Promise<string | undefined> =>
    (await daemon.get<{ word?: string }>(`/ext/${name}`)).body?.word;
  const hears = (name: string, expected: string): Promise<unknown> =>
    until(`${name} says ${expected}`, async () => (await word(name)) === expected);
  const switchTo = (switches: Record<string, boolean>): Promise<void> =>
    daemon.writeConfig(
      daemon.text({
        sections: Object.fromEntries(
          Object.entries(switches).map(([name, enabled]) => [`plugins.${name}`, { enabled }]),
        ),
      }),
    );
  const installed = async (): Promise<readonly string[]> =>
    (await readdir(`${daemon.stateDir}/installed-plugins`)).filter((name) => !name.startsWith('.')).sort();
  const packages = (): Promise<string[]> => readdir(`${daemon.stateDir}/installed-plugins/.packages`);
  /** Each plugin that is installed, and nothing else. */
  const isTidy = async (): Promise<void> =>
    assert.equal((await packages()).length, (await installed()).length);

  it('a package is there at once, off, and says how it is switched on', async () => {
    const integrity = await registry.publish(
      await registry.folder(
        'garden',
        { name: PACKAGE, version: '1.0.0', mountkeeper: { apiVersion: 1, permissions: ASKED } },
        says('garden', 'seed'),
      ),
      { hasProvenance: true },
    );
    const { code, stdout, stderr } = await mk('install', PACKAGE);
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^garden 1\.0\.0 is installed$/m);
    assert.ok(stdout.includes(integrity), stdout);
    assert.match(stdout, /provenance .*not verified: https:\/\/slsa\.dev\/provenance\/v1/);
    assert.match(stdout, new RegExp(`^ {2}it may +${MAY}$`, 'm'));
    assert.match(stdout, /It is off\.[^]*\[plugins\.garden\]\n {2}enabled = true/);
    await inState(daemon, 'garden', 'disabled');
    assert.equal((await daemon.get('/ext/garden')).status, 404);
    await isTidy();
  });

  it('it says everywhere what it would be allowed, before it is switched on', async () => {
    const { stdout } = await mk('list');
    assert.match(stdout, new RegExp(`^garden \\*\\s.*\\sdisabled\\s.*\\(it may ${MAY}\\)`, 'm'));
    const { body } =
      await daemon.get<{ name: string; state: string; permissions: string[] }[]>('/api/plugins');
    const garden = body.find(({ name }) => name === 'garden');
    assert.deepEqual([garden?.state, garden?.permissions], ['disabled', ASKED]);
    const page = (await daemon.get('/tabs/plugins')).text;
    const card = /<article[^>]* id="plugin-garden">[^]*?<\/article>/.exec(page)?.[0] ?? '';
    assert.match(card, new RegExp(`It may: ${MAY}\\.`));
  });

  it('it is active when the configuration says so, without a restart', async () => {
    await switchTo({ garden: true });
    await inState(daemon, 'garden', 'active');
    await hears('garden', 'seed');
  });

  it('an update is active at once', async () => {
    assert.match((await mk('update')).stdout, /^garden 1\.0\.0 stays$/m);
    await registry.publish(
      await registry.folder('garden', { name: PACKAGE, version: '1.1.0' }, says('garden', 'leaf')),
    );
    const { code, stdout, stderr } = await mk('update');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /^garden 1\.0\.0 -> 1\.1\.0 {2}sha512-.*; it may read the status/m);
    await hears('garden', 'leaf');
    assert.equal(daemon.pid, pid);
    await isTidy();
  });

  it('a tarball that is not what the registry promises is refused, and the former version stays', async () => {
    const folder = await registry.folder(
      'garden',
      { name: PACKAGE, version: '1.2.0' },
      says('garden', 'poison'),
    );
    await registry.publish(folder, { isForged: true });
    const update = await mk('update', 'garden');
    assert.equal(update.code, 1);
    assert.match(update.stderr, /^garden stays at 1\.1\.0: .*not what the registry promises/m);
    const install = await mk('install', PACKAGE);
    assert.equal(install.code, 1);
    assert.match(install.stderr, /not what the registry promises \(integrity\)/);
    assert.equal(await word('garden'), 'leaf');
    await isTidy();
  });

  it('what is on and could not be loaded in its new version, is not replaced', async () => {
    const folder = await registry.folder(
      'garden',
      { name: PACKAGE, version: '1.3.0' },
      { 'index.js': 'export default' },
    );
    await registry.publish(folder);
    const { code, stderr } = await mk('update');
    assert.equal(code, 1);
    assert.match(stderr, /garden stays at 1\.1\.0: .*1\.3\.0 is not installed: .*SyntaxError/);
    assert.equal(await word('garden'), 'leaf');
    await isTidy();
  });

  it('no script of a package is run, whatever the configuration of npm says', async () => {
    const mark = scratch.path('scripts-ran');
    const scripts = Object.fromEntries(
      ['preinstall', 'install', 'postinstall', 'prepare', 'prepack'].map((name) => [name, `touch ${mark}`]),
    );
    await registry.publish(
      await registry.folder('seeds', { version: '1.0.0', scripts, exports: './index.js' }),
    );
    const folder = await registry.folder('pond', { dependencies: { seeds: '^1.0.0' }, scripts });
    await registry.publish(folder);
    const { code, stdout, stderr } = await mk('install', 'pond');
    assert.equal(code, 0, stderr);
    assert.match(stdout, /scripts .*they were not run/);
    assert.equal((await mk('install', folder)).code, 0);
    assert.equal(existsSync(mark), false);
    assert.ok(existsSync(`${daemon.stateDir}/installed-plugins/pond/node_modules/seeds/index.js`));
    await isTidy();
  });

  it('a folder and a tarball are installed as well, and have no update', async () => {
    const tool = { mountkeeper: { apiVersion: 1, permissions: ['network'] } };
    const folder = await registry.folder('shed', tool, says('shed', 'tools'));
    const first = await mk('install', folder);
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout, /integrity +sha512-/);
    await switchTo({ garden: true, shed: true });
    await hears('shed', 'tools');
    const greedy = {
      version: '0.2.0',
      mountkeeper: { apiVersion: 1, permissions: ['network', 'processes'] },
    };
    const tarball = await registry.pack(await registry.folder('shed', greedy, says('shed', 'ladders')));
    const refused = await mk('install', tarball);
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /version 0\.2\.0 may also start processes, .*--yes agrees to it/);
    assert.equal(await word('shed'), 'tools');
    const agreed = await mk('install', tarball, '--yes');
    assert.match(agreed.stdout, /^shed 0\.2\.0 is installed, in place of 0\.1\.0$/m);
    await hears('shed', 'ladders');
    const { code, stderr } = await mk('update', 'shed');
    assert.equal(code, 1);
    assert.match(stderr, /was installed from .*shed-0\.2\.0\.tgz; install it from there again/);
    await isTidy();
  });

  it('all of it is there again after a restart', async () => {
    await daemon.stop();
    await daemon.start();
    await hears('garden', 'leaf');
    await hears('shed', 'ladders');
    await inState(daemon, 'pond', 'disabled');
  });

  it('what is on is not removed, unless it is said twice', async () => {
    const refused = await mk('remove', 'shed');
    assert.equal(refused.code, 1);
    assert.match(refused.stderr, /shed is on; first set plugins\.shed\.enabled = false in .*--force/);
    assert.equal((await mk('remove', 'shed', '--force')).code, 0);
    await until('shed is gone', async () => (await plugin(daemon, 'shed')) === undefined);
    assert.equal((await daemon.get('/api/shed')).status, 404);
    assert.equal((await mk('remove', 'pond')).code, 0);
    assert.deepEqual(await installed(), ['garden']);
    await isTidy();
    assert.match(
      (await mk('remove', 'pond')).stderr,
      /no plugin "pond" was installed.*installed are: garden/,
    );
  });

  it('what cannot be a plugin here is refused by a sentence, and nothing is left', async () => {
    const chalk = await registry.folder('chalk', { mountkeeper: undefined, keywords: undefined });
    await registry.publish(chalk);
    await registry.publish(await registry.folder('later', { mountkeeper: { apiVersion: 2 } }));
    await registry.publish(await registry.folder('smb'));
    await registry.publish(await registry.folder('other', { mountkeeper: { name: 'garden' } }));
    await registry.publish(await registry.folder('hollow', { exports: './dist/index.js' }));
    for (const [what, sentence] of [
      ['chalk', /chalk@0\.1\.0 is not installed: it is no plugin for Mountkeeper/],
      ['later', /written for apiVersion 2, this Mountkeeper has apiVersion 1/],
      ['smb', /the name "smb" is taken by a plugin that comes with Mountkeeper/],
      ['other', /"garden" is installed already, from the package @friend.*plugin remove garden/],
      ['hollow', /its entry dist\/index\.js is not in the package/],
      ['nowhere', /the registry knows no package nowhere; a folder is written with a slash/],
      ['later@9', /the registry has no such version: later@9/],
      ['./nowhere', /there is no folder or tarball \.\/nowhere/],
    ] as const) {
      const { code, stderr } = await mk('install', what);
      assert.equal(code, 1, what);
      assert.match(stderr, sentence);
    }
    assert.deepEqual(await installed(), ['garden']);
    await isTidy();
  });

  it('a folder of [plugins] dirs keeps its name', async () => {
    await daemon.writeConfig(
      daemon.text({
        sections: { plugins: { dirs: [scratch.path('own')] }, 'plugins.garden': { enabled: true } },
      }),
    );
    const folder = await registry.folder('orchard');
    await rename(folder.slice(0, -'/orchard'.length), scratch.path('own'));
    const { code, stderr } = await mk('install', scratch.path('own', 'orchard'));
    assert.equal(code, 1);
    assert.match(stderr, /a plugin "orchard" is in .*own\/orchard already/);
    await isTidy();
  });

  it('the search finds what calls itself a plugin', async () => {
    await registry.publish(
      await registry.folder('roses', { keywords: ['mountkeeper-plugin'], description: 'Red.' }),
    );
    const { code, stdout } = await mk('search', 'red');
    assert.equal(code, 0);
    assert.match(stdout, /^roses +0\.1\.0 +Red\.$/m);
    assert.doesNotMatch(stdout, /chalk/);
  });

  it('a registry that cannot be reached is named as such', async () => {
    const away = { ...registry.env, npm_config_registry: `http://127.0.0.1:${await freePort()}/` };
    const child = spawn(
      process.execPath,
      [MAIN, 'plugin', 'install', 'roses', '--config', daemon.configFile],
      { env: { PATH: process.env['PATH'], ...away }, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let text = '';
    child.stderr.on('data', (piece: Buffer) => (text += piece.toString()));
    const [code] = await once(child, 'close');
    assert.equal(code, 1);
    assert.match(text, /the registry cannot be reached \(ECONNREFUSED\)/);
    await isTidy();
  });

  it('an interrupt or another signal ends npm, too, and leaves nothing; another at a time is refused', async () => {
    await registry.publish(
      await registry.folder('garden', { name: PACKAGE, version: '2.0.0' }, says('garden', 'fruit')),
    );
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      const asked = new Promise<void>((resolve) => {
        registry.onTarball = () => {
          resolve();
          return new Promise(() => undefined);
        };
      });
      const child = spawn(
        process.execPath,
        [MAIN, 'plugin', 'install', PACKAGE, '--config', daemon.configFile],
        {
          env: { PATH: process.env['PATH'], ...registry.env },
          stdio: 'ignore',
        },
      );
      await asked;
      assert.match((await mk('update')).stderr, /another command changes .*; try again when it has ended/);
      child.kill(signal);
      // Of a signal that others send, a process ends as they expect.
      assert.deepEqual(await once(child, 'close'), signal === 'SIGINT' ? [1, null] : [null, signal]);
      await isTidy();
      await until(
        'npm is gone',
        async () => (await processesNaming(`${daemon.stateDir}/installed-plugins`)).length === 0,
      );
    }
    registry.onTarball = () => Promise.resolve();
    assert.equal((await mk('update')).code, 0);
    await hears('garden', 'fruit');
  });

  it('an update that may do more waits for a yes', async () => {
    const permissions = ['read-status', 'processes'];
    const integrity = await registry.publish(
      await registry.folder(
        'garden',
        { name: PACKAGE, version: '3.0.0', mountkeeper: { apiVersion: 1, permissions } },
        says('garden', 'thorns'),
      ),
    );
    const { code, stderr } = await mk('update');
    assert.equal(code, 1);
    assert.match(stderr, /^garden stays at 2\.0\.0: version 3\.0\.0 may also start processes, /m);
    assert.equal(await word('garden'), 'fruit');
    const { stdout } = await mk('update', 'garden', '--yes', '--json');
    assert.deepEqual(JSON.parse(stdout), {
      name: 'garden',
      former: '2.0.0',
      version: '3.0.0',
      integrity,
      permissions,
    });
    await hears('garden', 'thorns');
    await isTidy();
  });
});
