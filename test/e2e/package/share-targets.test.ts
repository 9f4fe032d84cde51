// @load quiet
/**
 * The targets of shares with the real daemon and a systemctl of the test's own, which tells what it was asked; and
 * the template, by systemd's own check.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { PROJECT } from '../../runner/test-files.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const TARGET = String.raw`mountkeeper-share@my\x20files.target`;

describe('the target of a share', () => {
  let scratch: Scratch;
  let daemon: Daemon;

  const told = async (): Promise<readonly string[]> =>
    (await readFile(scratch.path('told'), 'utf8').catch(() => ''))
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('list-units'));
  const tells = (line: string, count: number): Promise<unknown> =>
    until(
      `${line}, ${count} times`,
      async () => (await told()).filter((one) => one === line).length === count,
      {
        timeoutMs: 40_000,
      },
    );
  const files = (): Promise<readonly string[]> => readdir(scratch.path('run', 'shares')).catch(() => []);

  before(async () => {
    scratch = await createScratch('targets');
    const nas = await Nas.create(scratch, { files: { 'files/a.bin': 10 } });
    await mkdir(scratch.path('bin'));
    // The words that matter: the verb and the unit.
    const fake = `#!/bin/sh\nfor last; do :; done\nprintf '%s %s\\n' "$1" "$last" >>'${scratch.path('told')}'\n`;
    await writeFile(scratch.path('bin', 'systemctl'), fake, { mode: 0o755 });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'my files', connection: 'nas', remote_path: 'files' }],
      env: {
        PATH: `${scratch.path('bin')}:${process.env['PATH'] ?? ''}`,
        RUNTIME_DIRECTORY: scratch.path('run'),
      },
    });
    await daemon.start();
  });
  after(() => scratch.close());

  it('is started when the share is up', async () => {
    await daemon.healthy();
    await tells(`start ${TARGET}`, 1);
    assert.deepEqual(await files(), [String.raw`my\x20files`]);
  });

  it('goes with the mount, and comes back with it', async () => {
    process.kill(await daemon.bindfsPid('my files'), 'SIGKILL');
    await tells(`stop ${TARGET}`, 1);
    await tells(`start ${TARGET}`, 2);
    assert.deepEqual(
      (await told()).map((line) => line.split(' ')[0]),
      ['start', 'stop', 'start'],
    );
  });

  it('stays over an upgrade of the daemon, and goes when that stops', async () => {
    await daemon.healthy();
    assert.equal((await daemon.stop('SIGUSR2')).code, 0);
    assert.deepEqual(await files(), [String.raw`my\x20files`]);
    await daemon.start();
    await daemon.healthy();
    await tells(`start ${TARGET}`, 3);
    assert.equal((await told()).filter((line) => line.startsWith('stop')).length, 1, 'only that of the kill');
    assert.equal((await daemon.stop()).code, 0);
    await tells(`stop ${TARGET}`, 2);
    assert.deepEqual(await files(), []);
  });

  it('has a template that systemd takes, and a unit that binds to it', async () => {
    const folder = scratch.path('units');
    await mkdir(folder);
    await copyFile(`${PROJECT}config/mountkeeper-share@.target`, `${folder}/mountkeeper-share@.target`);
    await writeFile(`${folder}/mountkeeper.service`, '[Service]\nExecStart=/bin/true\n');
    await writeFile(
      `${folder}/index-photos.service`,
      '[Unit]\nBindsTo=mountkeeper-share@photos.target\nAfter=mountkeeper-share@photos.target\n' +
        '[Service]\nExecStart=/bin/true\n[Install]\nWantedBy=mountkeeper-share@photos.target\n',
    );
    const verify = promisify(execFile)(
      'systemd-analyze',
      ['verify', '--man=no', `${folder}/index-photos.service`],
      {
        env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` },
      },
    );
    const { stdout, stderr } = await verify;
    assert.deepEqual(
      `${stdout}${stderr}`.split('\n').filter((line) => /mountkeeper-share|index-photos/.test(line)),
      [],
    );
  });
});
