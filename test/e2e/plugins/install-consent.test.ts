// @load quiet
/** Who agrees to what a new version of a plugin may do, and that none of it is run before: by npm, from a registry. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { chmod, mkdir, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { PLUGINS_USER, serviceUser } from '../../../core/platform/processes/rights.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { CliResult } from '../../support/daemon/daemon.ts';
import { letOthersEnter } from '../../support/platform/folder-access.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { PackageRegistry } from '../../support/plugins/registry.ts';
import { source } from '../../support/plugins/strangers.ts';

describe('a version that may do more, of a plugin that is on', () => {
  let scratch: Scratch;
  let registry: PackageRegistry;
  let daemon: Daemon;
  /** Says whom the code ran as, once it ran. */
  let mark: string;

  before(async () => {
    scratch = await createScratch('consent');
    await letOthersEnter(scratch.root);
    await mkdir(scratch.path('marks'));
    await chmod(scratch.path('marks'), 0o777);
    mark = scratch.path('marks', 'ran');
    registry = await PackageRegistry.create(scratch);
    daemon = await Daemon.create(scratch, { connections: [], shares: [], env: registry.env });
    await daemon.writeConfig(daemon.text({ sections: { 'plugins.garden': { enabled: true } } }));
  });
  after(() => scratch.close());

  const mk = (...args: string[]): Promise<CliResult> => daemon.cli('plugin', ...args);
  const publish = async (
    version: string,
    permissions: readonly string[],
    name = 'garden',
  ): Promise<unknown> => {
    const entry = `import { writeFileSync } from 'node:fs';
try { writeFileSync('${mark}', String(process.geteuid())); } catch {}
${source('garden', '')}`;
    const manifest = { name, version, mountkeeper: { apiVersion: 1, name: 'garden', permissions } };
    return registry.publish(await registry.folder('garden', manifest, { 'index.js': entry }));
  };

  it('is not run before somebody has agreed', async () => {
    await publish('1.0.0', []);
    assert.match(
      (await mk('install', 'garden')).stderr,
      /version 1\.0\.0 may show pages.*--yes agrees to it/,
    );
    const first = await mk('install', 'garden', '--yes');
    assert.equal(first.code, 0, first.stderr);
    assert.equal(existsSync(mark), false);
    await publish('1.1.0', ['files', 'processes']);
    for (const words of [
      ['update', 'garden'],
      ['install', 'garden'],
    ]) {
      const { code, stderr } = await mk(...words);
      assert.equal(code, 1);
      assert.match(stderr, /version 1\.1\.0 may also read and write every file.*--yes agrees to it/);
      assert.equal(existsSync(mark), false, words.join(' '));
    }
  });

  it('is run by the user of plugins then, where there is one', async () => {
    const { code, stderr } = await mk('update', 'garden', '--yes');
    assert.equal(code, 0, stderr);
    const { uid = process.geteuid?.() } =
      (process.geteuid?.() === 0 ? await serviceUser(undefined, PLUGINS_USER) : undefined) ?? {};
    assert.equal(await readFile(mark, 'utf8'), String(uid));
    await rm(mark);
  });

  it('is taken only with a yes where it is older than the one that is there', async () => {
    await publish('1.0.5', []);
    for (const words of [
      ['update', 'garden'],
      ['install', 'garden'],
      ['install', 'garden@1.0.5'],
    ]) {
      const { code, stderr } = await mk(...words);
      assert.equal(code, 1, words.join(' '));
      assert.match(stderr, /version 1\.0\.5 is older than 1\.1\.0, which is there; .*--yes/);
    }
    assert.match((await mk('update', 'garden', '--yes')).stdout, /^garden 1\.1\.0 -> 1\.0\.5/);
    // The version that was there may be run.
    await rm(mark, { force: true });
  });

  it('is not taken in place of what cannot be read, nor after a removal, without a yes', async () => {
    const packages = `${daemon.stateDir}/installed-plugins/.packages`;
    const [id = ''] = await readdir(packages);
    await writeFile(`${packages}/${id}/package-lock.json`, '{');
    await publish('1.0.0', ['files'], 'stranger');
    for (const what of ['stranger', 'garden']) {
      const { code, stderr } = await mk('install', what, '--yes');
      assert.equal(code, 1);
      assert.match(
        stderr,
        /installed as "garden" cannot be read; remove it first: mountkeeper plugin remove garden/,
      );
    }
    assert.equal((await mk('remove', 'garden', '--force')).code, 0);
    const { code, stderr } = await mk('install', 'stranger');
    assert.equal(code, 1);
    assert.match(stderr, /version 1\.0\.0 may read and write every file.*--yes agrees to it/);
    assert.equal(existsSync(mark), false);
  });
});

describe('a plugin whose process would have the user of the daemon, and the network', () => {
  it('is told of when it is installed, and when it is updated', async () => {
    const scratch = await createScratch('every-user');
    try {
      const registry = await PackageRegistry.create(scratch);
      // Without `setpriv` no process changes its user, as beside a daemon that is not root.
      await mkdir(scratch.path('bin'));
      await writeFile(scratch.path('bin', 'setpriv'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
      const env = { ...registry.env, PATH: `${scratch.path('bin')}:${process.env['PATH']}` };
      const daemon = await Daemon.create(scratch, { connections: [], shares: [], env });
      const publish = async (version: string): Promise<unknown> => {
        const manifest = { name: 'pond', version, mountkeeper: { apiVersion: 1, permissions: ['network'] } };
        return registry.publish(await registry.folder('pond', manifest, { 'index.js': source('pond', '') }));
      };
      const told =
        /^pond: over HTTP it may change the configuration, .*; set web\.password, or take "network"/m;
      await publish('1.0.0');
      const installed = await daemon.cli('plugin', 'install', 'pond');
      assert.match(installed.stdout, told, installed.stderr);
      await publish('1.1.0');
      const updated = await daemon.cli('plugin', 'update', 'pond');
      assert.match(updated.stdout, /^pond 1\.0\.0 -> 1\.1\.0/, updated.stderr);
      assert.match(updated.stdout, told);
    } finally {
      await scratch.close();
    }
  });
});
