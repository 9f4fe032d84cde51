// @load quiet
/** What the configuration says by keys of a plugin that is to go or to change: the daemon starts afterwards, too. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { CliResult } from '../../support/daemon/daemon.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { PackageRegistry } from '../../support/plugins/registry.ts';
import { source } from '../../support/plugins/strangers.ts';

const KEYS = `config: { section: 'pond', schema: Joi.object({ fish: Joi.number() }),
  share: Joi.object({ depth: Joi.number() }) },`;
const DECLARED = { section: 'pond', shareKeys: ['depth'] };

describe('keys of a plugin that the configuration has', () => {
  let scratch: Scratch;
  let registry: PackageRegistry;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('install-keys');
    registry = await PackageRegistry.create(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      env: registry.env,
    });
    await publish('1.0.0', KEYS, DECLARED);
    assert.equal((await mk('plugin', 'install', 'pond')).code, 0);
  });
  after(() => scratch.close());

  const mk = (...args: string[]): Promise<CliResult> => daemon.cli(...args);
  const publish = async (version: string, config: string, declared: object): Promise<unknown> =>
    registry.publish(
      await registry.folder(
        'pond',
        { version, mountkeeper: { apiVersion: 1, ...declared } },
        { 'index.js': source('pond', '', config) },
      ),
    );
  const write = (enabled: boolean, fish: string): Promise<void> =>
    daemon.writeConfig(`${daemon.text({ sections: { 'plugins.pond': { enabled } } })}\n${fish}`);
  const isValid = async (): Promise<void> => {
    const { code, stderr } = await mk('check');
    assert.equal(code, 0, stderr);
  };

  it('are in the way of its removal, which names them', async () => {
    await write(false, '[pond]\nfish = 3\n');
    await isValid();
    const { code, stderr } = await mk('plugin', 'remove', 'pond');
    assert.equal(code, 1);
    assert.match(
      stderr,
      /without pond the daemon would not start, .*unknown key "pond".*change it first.*--force/,
    );
    await isValid();
  });

  it('are in the way of a version that does not have them, also while the plugin is on', async () => {
    await write(true, '[pond]\nfish = 3\n');
    await isValid();
    await publish('2.0.0', '', {});
    for (const words of [
      ['update', 'pond'],
      ['install', 'pond'],
    ]) {
      const { code, stderr } = await mk('plugin', ...words);
      assert.equal(code, 1);
      assert.match(stderr, /with this version the daemon would not start, .*unknown key "pond"/);
    }
    await isValid();
    await write(true, '');
    const { code, stderr } = await mk('plugin', 'update', 'pond');
    assert.equal(code, 0, stderr);
    await isValid();
  });

  it('are not in the way where it is said twice', async () => {
    await publish('3.0.0', KEYS, DECLARED);
    assert.equal((await mk('plugin', 'update', 'pond')).code, 0);
    await write(false, '[pond]\nfish = 3\n');
    assert.equal((await mk('plugin', 'remove', 'pond', '--force')).code, 0);
    assert.equal((await mk('check')).code, 78);
  });
});
