/** The maintainer scripts of the Debian package, each on a machine that is nothing but a folder. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, mkdir, readFile, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { MAIN } from '../support/daemon/daemon.ts';
import { run } from '../support/package/build-packages.ts';
import { exists, folderMachine } from '../support/package/folder-machine.ts';

describe('the scripts of the Debian package', () => {
  it('write a configuration that is closed by a password once, and never touch it again', async (t) => {
    const { at, script } = await folderMachine(t);
    assert.deepEqual(await script('postinst', ['configure', '']), { code: 0, said: '' });
    assert.match(await readFile(at('etc/mountkeeper/web-password'), 'utf8'), /^[0-9a-f]{32}$/);
    assert.equal((await stat(at('etc/mountkeeper/mountkeeper.toml'))).mode & 0o777, 0o600);
    const text = await readFile(at('etc/mountkeeper/mountkeeper.toml'), 'utf8');
    await writeFile(
      at('etc/mountkeeper/mountkeeper.toml'),
      text.replace('/etc/mountkeeper/', `${at('etc/mountkeeper')}/`),
    );
    assert.match(
      (await run(process.execPath, [MAIN, 'check', '--config', at('etc/mountkeeper/mountkeeper.toml')]))
        .stdout,
      /valid/,
    );
    await writeFile(at('etc/mountkeeper/mountkeeper.toml'), 'changed');
    await script('postinst', ['configure', '0.0.9']);
    assert.equal(await readFile(at('etc/mountkeeper/mountkeeper.toml'), 'utf8'), 'changed');
  });

  it('make the users themselves where there is no systemd, unless they are there', async (t) => {
    const { at, script } = await folderMachine(t);
    await mkdir(at('few'));
    for (const folder of ['/usr/bin', at('bin')])
      for (const name of await readdir(folder))
        if (!['systemd-sysusers', 'getent', 'useradd'].includes(name)) {
          await rm(at(`few/${name}`), { force: true });
          await symlink(join(folder, name), at(`few/${name}`));
        }
    await writeFile(at('few/useradd'), `#!/bin/sh\necho "$*" >>${at('made')}\n`, { mode: 0o755 });
    const made = async (there: string): Promise<string> => {
      await writeFile(at('few/getent'), `#!/bin/sh\ncase "$*" in ${there}) ;; *) exit 2 ;; esac\n`, {
        mode: 0o755,
      });
      await rm(at('made'), { force: true });
      const done = await script('postinst', ['configure', ''], { PATH: at('few') });
      assert.deepEqual(done, { code: 0, said: '' });
      return readFile(at('made'), 'utf8');
    };
    assert.match(await made('"passwd mountkeeper"'), /^--system --user-group .* mountkeeper-plugins\n$/);
    // useradd refuses to make a group that is there.
    assert.match(
      await made('"passwd mountkeeper" | "group mountkeeper-plugins"'),
      /^--system --gid mountkeeper-plugins .* mountkeeper-plugins\n$/,
    );
  });

  it('refuse a removal and a purge while a share is mounted, wherever it is', async (t) => {
    const { at, script } = await folderMachine(t);
    await script('postinst', ['configure', '']);
    const other = '22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw';
    const mounts = [
      '60 22 0:50 / /srv/photos rw,nosuid shared:9 - fuse.rclone mountkeeper:photos rw,user_id=0',
      '61 22 0:51 / /srv/films rw,relatime shared:8 - overlay mountkeeper-layer:films rw,lowerdir=x',
    ];
    const below = `62 22 0:52 / ${at('var/lib/mountkeeper/mount/lower/films/through')} rw - fuse.bindfs x rw`;
    for (const mount of [...mounts, below]) {
      await writeFile(at('mountinfo'), `${other}\n${mount}\n`);
      const place = mount.split(' ')[4] ?? '';
      const refused = await Promise.all([
        mount === below ? undefined : script('prerm', ['remove']),
        script('postrm', ['purge']),
      ]);
      for (const one of refused.filter((done) => done !== undefined)) {
        assert.equal(one.code, 1, mount);
        assert.ok(one.said.split('\n').includes(place), one.said);
      }
      assert.ok((await exists(at('var/cache/mountkeeper'))) && (await exists(at('var/lib/mountkeeper'))));
      assert.deepEqual(await script('prerm', ['upgrade', '2']), { code: 0, said: '' });
    }
    await writeFile(at('mountinfo'), `${other}\n`);
    assert.deepEqual(await script('prerm', ['remove']), { code: 0, said: '' });
    assert.deepEqual(await script('postrm', ['purge']), { code: 0, said: '' });
  });

  it('refuse a removal while the daemon runs and no systemd could end it', async (t) => {
    const { at, script } = await folderMachine(t);
    await mkdir(at('usr/lib/mountkeeper/bin'), { recursive: true });
    await copyFile('/bin/sleep', at('usr/lib/mountkeeper/bin/node'));
    const daemon = spawn(at('usr/lib/mountkeeper/bin/node'), ['60']);
    t.after(() => daemon.kill('SIGKILL'));
    await once(daemon, 'spawn');
    const { code, said } = await script('prerm', ['remove']);
    assert.equal(code, 1);
    assert.match(said, new RegExp(`not removed\\. Process ${daemon.pid} runs from the package`));
    assert.deepEqual(await script('prerm', ['upgrade', '2']), { code: 0, said: '' });
    daemon.kill('SIGTERM');
    await once(daemon, 'exit');
    assert.deepEqual(await script('prerm', ['remove']), { code: 0, said: '' });
  });

  it('leave the unit unmasked after a purge', async (t) => {
    const { at, script } = await folderMachine(t);
    await writeFile(at('bin/deb-systemd-helper'), `#!/bin/sh\necho "$1" >>${at('asked')}\n`);
    await script('postrm', ['remove']);
    await script('postrm', ['purge']);
    assert.deepEqual((await readFile(at('asked'), 'utf8')).trim().split('\n'), ['mask', 'purge', 'unmask']);
  });
});
