/** A purge of the Debian package believes what the daemon noted at its stop: no more, and no less. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { PROJECT } from '../../runner/test-files.ts';
import { unlessRoot } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { run } from '../../support/package/build-packages.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';

describe('a purge of what a daemon has used', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  const at = (path: string): string => `${daemon.mountRoot}/files/${path}`;
  const mark = (): string => `${daemon.cacheDir}/files/layer/all-sent`;

  before(async () => {
    scratch = await createScratch('purge');
    nas = await Nas.create(scratch, { files: { 'files/a.bin': 10, 'files/gone.bin': 10 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas', remote_path: 'files' }],
      sections: { supervisor: { stop_timeout: '2s' } },
    });
    await daemon.start();
    await daemon.healthy(['files']);
  });
  after(() => scratch.close());

  /** The script, on this daemon's folders alone. */
  async function purge(
    env: NodeJS.ProcessEnv = {},
  ): Promise<{ readonly code: number; readonly said: string }> {
    const text = await readFile(`${PROJECT}config/debian/postrm`, 'utf8');
    await mkdir(scratch.path('etc'), { recursive: true });
    await writeFile(scratch.path('mountinfo'), '');
    await writeFile(
      scratch.path('postrm'),
      text
        .replaceAll('/var/cache/mountkeeper', daemon.cacheDir)
        .replaceAll('/var/lib/mountkeeper', daemon.stateDir)
        .replaceAll('/mnt/mountkeeper', daemon.mountRoot)
        .replaceAll('/etc/mountkeeper', scratch.path('etc'))
        .replaceAll('/run/systemd', scratch.path('no-systemd'))
        .replaceAll('/proc/self/mountinfo', scratch.path('mountinfo')),
    );
    const done = await run('sh', [scratch.path('postrm'), 'purge'], {
      env: { ...process.env, ...env },
    }).catch((error: { code: number; stderr: string }) => error);
    return { code: 'code' in done ? done.code : 0, said: done.stderr };
  }

  it('names what waits, and nothing that the NAS has', async () => {
    await mkdir(at('folder'));
    await writeFile(at('folder/sent.txt'), 'on the NAS');
    await writeFile(at('a.bin'), 'other than before');
    await daemon.synced(30_000);
    await nas.stop();
    await writeFile(at('waits.txt'), 'here alone');
    await daemon.stop();
    assert.equal(existsSync(mark()), false);
    const { code, said } = await purge();
    assert.equal(code, 1, said);
    assert.match(said, /^\S*\/layer\/upper\/waits\.txt$/m);
    assert.doesNotMatch(said, /cache-is-read-only/);
    assert.ok(existsSync(`${daemon.cacheDir}/files/layer/upper/waits.txt`));
  });

  it('leaves what waits and all that brings it up, when told to', async () => {
    const config = scratch.path('etc/mountkeeper.toml');
    await copyFile(daemon.configFile, config);
    const { code, said } = await purge({ MOUNTKEEPER_PURGE: 'leave' });
    assert.equal(code, 0, said);
    for (const path of [config, daemon.stateDir, `${daemon.cacheDir}/files/layer/upper/waits.txt`])
      assert.ok(existsSync(path), path);
    // The next daemon runs on it.
    await copyFile(config, daemon.configFile);
  });

  it('has nothing to name once all has gone up, unless something has changed since', async () => {
    await nas.start();
    await daemon.start();
    await daemon.healthy(['files']);
    await daemon.synced(30_000);
    assert.equal(await nas.has('files/waits.txt'), true);
    await daemon.stop();
    assert.ok(existsSync(mark()));
    await writeFile(`${daemon.cacheDir}/files/layer/upper/late.txt`, 'after the stop');
    const { code, said } = await purge();
    assert.equal(code, 1, said);
    assert.deepEqual(
      said.split('\n').filter((line) => line.startsWith('/')),
      [`${daemon.cacheDir}/files/layer/upper/late.txt`],
    );
  });

  it('believes no mark of a share that has been mounted since', async () => {
    await daemon.start();
    await daemon.healthy(['files']);
    assert.equal(existsSync(mark()), false);
    await daemon.synced(30_000);
    await daemon.stop();
    assert.deepEqual(await purge(), { code: 0, said: '' });
    assert.deepEqual([existsSync(daemon.cacheDir), existsSync(daemon.stateDir)], [false, false]);
    assert.equal(await nas.has('files/late.txt'), true);
  });
});
