// @load quiet
/** A live daemon takes the rclone that `mountkeeper rclone use` has chosen for the next mount of a share. */
import assert from 'node:assert/strict';
import { copyFile, open, readFile, readlink, realpath, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { SEE_CHOICE_EVERY_MS } from '../../../plugins/mount/releases/renewal.ts';
import { ReleaseStore } from '../../../plugins/mount/releases/store.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { ReleaseMirror, signingKey, version } from '../../support/mount/release-mirror.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const QUIET_S = 2;

describe('the rclone that was chosen', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let store: ReleaseStore;
  let nas: Nas;

  const release = (name: string, write: (program: string) => Promise<void>): Promise<void> =>
    store.alone(() =>
      store.withDraft(async (draft) => {
        await write(join(draft, 'rclone'));
        await store.putInPlace(draft, version(name));
      }),
    );
  const program = async (): Promise<string> => readlink(`/proc/${await daemon.rclonePid('files')}/exe`);
  const notices = async (): Promise<string> => (await daemon.get('/api/notices')).text;

  /** The notice is there, and nothing has changed when a quiet time is over since. */
  const toldAndKept = async (notice: RegExp): Promise<void> => {
    await until('the notice', async () => notice.test(await notices()), {
      timeoutMs: 30_000,
    });
    await sleep(QUIET_S * 1_000 + SEE_CHOICE_EVERY_MS + 2_000);
    assert.match(await notices(), notice);
  };
  const text = (mount: Record<string, unknown> = {}): string =>
    daemon.text({
      sections: { mount: { rclone_renew_after: `${QUIET_S}s`, ...mount } },
    });

  before(async () => {
    scratch = await createScratch('chosen');
    nas = await Nas.create(scratch, { files: { 'files/a.bin': 10 } });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'files', connection: 'nas', remote_path: 'files' }],
      rclone: 'rclone',
    });
    store = new ReleaseStore(daemon.stateDir);
    // It says that it is older, and is the same one.
    const older =
      '#!/bin/sh\n[ "$*" != "--config  version" ] || exec echo rclone v1.74.3\n' +
      `exec ${currentRclone()} "$@"\n`;
    await release('v1.74.3', (file) => writeFile(file, older, { mode: 0o755 }));
    await release('v1.75.2', (file) => copyFile(currentRclone(), file));
    assert.equal((await daemon.cli('rclone', 'use', '1.74.3')).code, 0);
    await daemon.writeConfig(text());
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('mounts, and doctor says what a newer one would bring', async () => {
    assert.equal(await program(), await realpath(currentRclone()), 'what the older one runs');
    const { stdout } = await daemon.cli('doctor');
    assert.match(stdout, /WARN\s+rclone\s+rclone v1\.74\.3 \(.*\/rclone\/v1\.74\.3\/rclone\)/);
    assert.match(stdout, /mountkeeper rclone install.*What one gains: .*fetched again, not an I\/O error/);
  });

  it('stays while a file is open; a notice tells', async () => {
    const before = await daemon.rclonePid('files');
    const file = await open(join(daemon.mountPoint('files'), 'written'), 'w');
    try {
      await file.write('before, ');
      const used = await daemon.cli('rclone', 'use', 'v1.75.2');
      assert.match(used.stdout, /Each share takes it when it is mounted next/);
      await toldAndKept(
        /files: mounted by rclone v1\.74\.3, and .* v1\.75\.2 is in use now; each takes it once/,
      );
      assert.equal(await daemon.rclonePid('files'), before, 'the mount that is up goes on');
      await file.write('and after');
    } finally {
      await file.close();
    }
  });

  it('is taken by itself in a quiet moment, and everything is on the NAS', async () => {
    const chosen = store.programOf(version('v1.75.2'));
    await until('the next mount', async () => (await program()) === chosen, {
      timeoutMs: 60_000,
    });
    await daemon.healthy();
    assert.equal(await readFile(nas.path('files/written'), 'utf8'), 'before, and after');
    assert.equal(await readFile(join(daemon.mountPoint('files'), 'written'), 'utf8'), 'before, and after');
    await until('no notice', async () => !/mounted by rclone/.test(await notices()), { timeoutMs: 30_000 });
    assert.equal((await daemon.share('files')).health, 'healthy');
  });

  it('is not one that another key has signed', async () => {
    const before = await daemon.rclonePid('files');
    const mirror = await ReleaseMirror.start(await signingKey());
    scratch.defer(() => mirror.close());
    await mirror.publish('v9.0.0');
    await daemon.writeConfig(text({ rclone_mirror: mirror.url }));
    const { code, stderr } = await daemon.cli('rclone', 'install');
    assert.equal(code, 1);
    assert.equal(stderr, 'mountkeeper: the checksums are signed by another key than that of rclone\n');
    assert.deepEqual(await store.list(), [version('v1.75.2'), version('v1.74.3')]);
    assert.equal(await daemon.rclonePid('files'), before, 'a new mirror remounts nothing');
    await daemon.writeConfig(text());
  });

  it("goes back to the system's, and survives a restart", async () => {
    await daemon.stop();
    await daemon.start();
    await daemon.healthy();
    assert.equal(await program(), store.programOf(version('v1.75.2')));
    assert.equal((await daemon.cli('rclone', 'use', 'system')).code, 0);
    assert.equal((await daemon.cli('reconnect', 'files')).code, 0);
    const system = await realpath(currentRclone());
    await until('the next mount', async () => (await program()) === system, {
      timeoutMs: 60_000,
    });
  });

  it('is taken below a write layer while the share stays mounted', async () => {
    assert.equal((await daemon.cli('rclone', 'use', '1.74.3')).code, 0);
    await daemon.healthy();
    const former = await daemon.rclonePid('files');
    assert.equal((await daemon.cli('reconnect', 'files')).code, 0);
    // It is only begun with that: what is mounted until then is the former one.
    await until('its rclone', async () => (await daemon.rclonePid('files').catch(() => former)) !== former, {
      timeoutMs: 60_000,
    });
    const mounted = async (): Promise<string> => {
      const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n');
      return (
        lines.find((line) => / - overlay /.test(line) && line.includes(daemon.mountPoint('files'))) ?? ''
      );
    };
    const before = await until('the overlay', mounted, { timeoutMs: 60_000 });
    await daemon.healthy();
    await daemon.cli('rclone', 'use', 'v1.75.2');
    await until('the notice', async () => /files: mounted by rclone v1\.74\.3, and/.test(await notices()), {
      timeoutMs: 30_000,
    });
    const chosen = store.programOf(version('v1.75.2'));
    await until('the next rclone', async () => (await program()) === chosen, {
      timeoutMs: 60_000,
    });
    assert.equal(await mounted(), before);
    const written = join(daemon.mountPoint('files'), 'written');
    await until('it can be read', async () => (await readFile(written, 'utf8')) === 'before, and after', {
      timeoutMs: 20_000,
    });
  });
});
