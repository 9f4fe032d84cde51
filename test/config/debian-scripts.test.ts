/** The maintainer scripts of the Debian package, each on a machine that is nothing but a folder. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmod,
  copyFile,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { unlessRoot } from '../runner/skips.ts';
import { PROJECT } from '../runner/test-files.ts';
import { MAIN } from '../support/daemon/daemon.ts';
import { run } from '../support/package/build-packages.ts';

const DEBIAN = `${PROJECT}config/debian/`;

describe('the scripts of the Debian package', () => {
  /** Commands that maintainer scripts call are there and do nothing. */
  async function machine(t: TestContext): Promise<{
    at(path: string): string;
    script(
      which: string,
      args: readonly string[],
      env?: Record<string, string>,
      /** Words of the shell that calls it, in a mount namespace of their own. */
      before?: readonly string[],
    ): Promise<{ code: number; said: string }>;
  }> {
    const house = await mkdtemp(join(tmpdir(), 'mountkeeper-scripts-'));
    t.after(() => rm(house, { recursive: true, force: true }));
    await mkdir(`${house}/bin`, { recursive: true });
    for (const command of [
      'systemctl',
      'systemd-sysusers',
      'systemd-tmpfiles',
      'deb-systemd-helper',
      'deb-systemd-invoke',
    ]) {
      await writeFile(`${house}/bin/${command}`, '#!/bin/sh\n');
      await chmod(`${house}/bin/${command}`, 0o755);
    }
    for (const folder of ['etc', 'var/lib', 'var/cache', 'mnt', 'usr/share/mountkeeper'])
      await mkdir(`${house}/${folder}`, { recursive: true });
    await writeFile(
      `${house}/usr/share/mountkeeper/mountkeeper.toml`,
      await readFile(`${DEBIAN}mountkeeper.toml`),
    );
    return {
      at: (path) => `${house}/${path}`,
      async script(which, args, env = {}, before = []) {
        const text = await readFile(`${DEBIAN}${which}`, 'utf8');
        await writeFile(
          `${house}/${which}`,
          text
            .replaceAll(/\/(etc|var\/lib|var\/cache|mnt|run\/systemd)(?=\/)/g, `${house}/$1`)
            .replaceAll(/\/usr\/(share|lib)\/mountkeeper/g, `${house}/usr/$1/mountkeeper`)
            .replaceAll('/proc/self/mountinfo', `${house}/mountinfo`),
        );
        const inside = `${before.join(' ')} sh ${house}/${which} "$@"`;
        const own = before.length === 0 ? [] : ['unshare', '--mount'];
        const [command = '', ...rest] = [...own, 'sh', '-c', inside, 'sh', ...args];
        const done = await run(command, rest, {
          env: { PATH: `${house}/bin:/usr/bin:/bin`, ...env },
        }).catch((error: { code: number; stderr: string }) => error);
        return { code: 'code' in done ? done.code : 0, said: done.stderr };
      },
    };
  }
  const exists = (path: string): Promise<boolean> =>
    stat(path).then(
      () => true,
      () => false,
    );
  const cacheFile = async (at: (path: string) => string, isDirty: boolean): Promise<string> => {
    const content = at('var/cache/mountkeeper/files/vfs/files/a.txt');
    for (const [tree, text] of [
      ['vfs', 'words'],
      ['vfsMeta', `{"ModTime":"x","Dirty": ${String(isDirty)}}`],
    ]) {
      await mkdir(at(`var/cache/mountkeeper/files/${tree}/files`), { recursive: true });
      await writeFile(at(`var/cache/mountkeeper/files/${tree}/files/a.txt`), text ?? '');
    }
    return content;
  };

  it('write a configuration that is closed by a password once, and never touch it again', async (t) => {
    const { at, script } = await machine(t);
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
    const { at, script } = await machine(t);
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
    const { at, script } = await machine(t);
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
    const { at, script } = await machine(t);
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
    const { at, script } = await machine(t);
    await writeFile(at('bin/deb-systemd-helper'), `#!/bin/sh\necho "$1" >>${at('asked')}\n`);
    await script('postrm', ['remove']);
    await script('postrm', ['purge']);
    assert.deepEqual((await readFile(at('asked'), 'utf8')).trim().split('\n'), ['mask', 'purge', 'unmask']);
  });

  it('refuse a purge while files wait, and never delete them', async (t) => {
    const { at, script } = await machine(t);
    await script('postinst', ['configure', '']);
    const file = await cacheFile(at, true);
    const refused = await script('postrm', ['purge']);
    assert.equal(refused.code, 1);
    assert.match(refused.said, /not purged[^]*a\.txt/);
    assert.ok((await exists(file)) && (await exists(at('etc/mountkeeper/mountkeeper.toml'))));
  });

  it('leave all that brings waiting files up after a new installation, when told to leave them', async (t) => {
    const { at, script } = await machine(t);
    await script('postinst', ['configure', '']);
    const file = await cacheFile(at, true);
    const etc = at('etc/mountkeeper');
    await mkdir(`${etc}/secrets`);
    await writeFile(`${etc}/secrets/nas-pass`, 'secret');
    await writeFile(`${etc}/mountkeeper.toml.bak`, 'former');
    await mkdir(at('var/lib/mountkeeper/mount'), { recursive: true });
    await writeFile(`${etc}/mountkeeper.toml`, '# mine\n');
    const left = (await readdir(etc, { recursive: true })).sort();
    const { code, said } = await script('postrm', ['purge'], { MOUNTKEEPER_PURGE: 'leave' });
    assert.equal(code, 0, said);
    assert.match(said, /files that wait[^]*stay where they are[^]*nstall the package again/);
    assert.ok((await exists(file)) && (await exists(at('var/lib/mountkeeper/mount'))));
    assert.deepEqual((await readdir(etc, { recursive: true })).sort(), left);
    await script('postinst', ['configure', '']);
    assert.equal(await readFile(`${etc}/mountkeeper.toml`, 'utf8'), '# mine\n');
    // Once all is on the NAS, it leaves nothing.
    await cacheFile(at, false);
    assert.deepEqual(await script('postrm', ['purge'], { MOUNTKEEPER_PURGE: 'leave' }), {
      code: 0,
      said: '',
    });
    assert.deepEqual([await exists(etc), await exists(file)], [false, false]);
  });

  it('refuse a purge where a configuration that was there is gone, and no record tells of its caches', async (t) => {
    const { at, script } = await machine(t);
    await script('postinst', ['configure', '']);
    await rm(at('etc/mountkeeper/mountkeeper.toml'));
    const refused = await script('postrm', ['purge']);
    assert.equal(refused.code, 1);
    assert.match(
      refused.said,
      /^whatever lies in the caches that .*mountkeeper\.toml named: it is not there/m,
    );
    assert.ok(await exists(at('etc/mountkeeper/web-password')));
    // The record of a daemon that had its state here names them all.
    await mkdir(at('var/lib/mountkeeper/mount'), { recursive: true });
    await writeFile(at('var/lib/mountkeeper/mount/cache-folders.json'), '[]');
    assert.deepEqual(await script('postrm', ['purge']), { code: 0, said: '' });
  });

  it('refuse a purge where names in the configuration cannot be read here, and read on behind a text', async (t) => {
    const cases: readonly (readonly [text: string, said: RegExp])[] = [
      ['["c\\u0061che"]\ndir = "FOLDER"\n', /cannot be read here/],
      ['[cache]\n"\\u0064ir" = "FOLDER"\n', /cannot be read here/],
      ['"cach\\u0065".dir = "FOLDER"\n', /cannot be read here/],
      ['cache = { "d\\u0069r" = "FOLDER" }\n', /cannot be read here/],
      ['cache = {\n  dir = "FOLDER",\n}\n', /cannot be read here/],
      ['[cache]\nnote = """\n[other]\n"""\ndir = "FOLDER"\n', /a\.txt/],
      ["[cache]\nnote = '''one'''\ndir = 'FOLDER'\n", /a\.txt/],
      ['[cache]\nnote = """\n[other]\n', /cannot be read here/],
      ['\uFEFF[cache]\r\ndir = "FOLDER"\r\n', /a\.txt/],
    ];
    for (const [text, said] of cases) {
      const { at, script } = await machine(t);
      const file = at('srv/cache/share/vfs/a.txt');
      await mkdir(join(file, '..'), { recursive: true });
      await writeFile(file, 'x');
      await mkdir(at('etc/mountkeeper'), { recursive: true });
      await writeFile(at('etc/mountkeeper/mountkeeper.toml'), text.replace('FOLDER', at('srv/cache')));
      const refused = await script('postrm', ['purge']);
      assert.equal(refused.code, 1, text);
      assert.match(refused.said, said, text);
    }
    const { at, script } = await machine(t);
    await mkdir(at('etc/mountkeeper'), { recursive: true });
    const harmless = '[web]\nport = 1\n[[connections]]\noptions = { key_pem = "a\\nb", user = "x\\ty" }\n';
    await writeFile(at('etc/mountkeeper/mountkeeper.toml'), harmless);
    assert.deepEqual(await script('postrm', ['purge']), { code: 0, said: '' });
  });

  it('refuse a purge while files wait in another folder, however the configuration writes it', async (t) => {
    for (const text of [
      '[cache]\ndir = "FOLDER"\n',
      '[ cache ] # on the big disk\n"dir"="FOLDER" # the "old" one\n',
      "cache.dir = 'FOLDER'\n",
      'cache = { max_size = "1T", dir = "FOLDER" }\n',
      '[supervisor]\nstate_dir = "STATE"\n',
      '[cache]\ndir = "../../srv/cache"\n',
      '[supervisor]\nstate_dir = "/srv/unmounted"\n',
      '[cache]\ndir = "/srv/\\u00fc"\n',
    ]) {
      const { at, script } = await machine(t);
      const file = at('srv/cache/share/vfs/a.txt');
      await mkdir(join(file, '..'), { recursive: true });
      await writeFile(file, 'x');
      await mkdir(at('srv/state/mount'), { recursive: true });
      await writeFile(at('srv/state/mount/cache-folders.json'), JSON.stringify([at('srv/cache')]));
      await mkdir(at('etc/mountkeeper'), { recursive: true });
      const written = text.replace('FOLDER', at('srv/cache')).replace('STATE', at('srv/state'));
      await writeFile(at('etc/mountkeeper/mountkeeper.toml'), written);
      const { code, said } = await script('postrm', ['purge']);
      assert.equal(code, 1, text);
      assert.match(
        said,
        /u00fc/.test(text) ? /cannot be read here/ : /unmounted/.test(text) ? /not there/ : /a\.txt/,
      );
    }
  });

  it('refuse a purge for whatever is not known to be on the NAS', async (t) => {
    for (const path of [
      'files/held/000001/vfs/a',
      'files/layer/upper/new.txt',
      'files/aside/x/vfs/a',
      'files/vfs/files/no-document',
      'files/layer/upper/folder/.',
    ]) {
      const { at, script } = await machine(t);
      const file = at(`var/cache/mountkeeper/${path}`);
      await mkdir(join(file, '..'), { recursive: true });
      if (path.endsWith('/.')) await mkdir(file, { recursive: true });
      else await writeFile(file, 'x');
      assert.equal((await script('postrm', ['purge'])).code, 1, path);
      assert.ok(await exists(file), path);
    }
  });

  it('purge a write layer that the daemon has marked as sent, but for what has changed since', async (t) => {
    const { at, script } = await machine(t);
    const layer = at('var/cache/mountkeeper/files/layer');
    await mkdir(`${layer}/upper/folder`, { recursive: true });
    await mkdir(`${layer}/aside/.nothing`, { recursive: true });
    for (const path of ['upper/folder/kept', 'cache-is-read-only']) await writeFile(`${layer}/${path}`, 'x');
    const named = async (): Promise<string[]> => {
      const { code, said } = await script('postrm', ['purge']);
      assert.equal(code, 1, said);
      return said.split('\n').filter((line) => line.startsWith('/'));
    };
    assert.deepEqual(await named(), [`${layer}/upper/folder`, `${layer}/upper/folder/kept`]);
    await new Promise((resolve) => setTimeout(resolve, 20));
    await writeFile(`${layer}/all-sent`, '');
    await new Promise((resolve) => setTimeout(resolve, 20));
    // An older time does not hide it.
    await writeFile(`${layer}/upper/folder/kept`, 'other');
    await utimes(`${layer}/upper/folder/kept`, 1, 1);
    await mkdir(`${layer}/aside/1-1`);
    await writeFile(`${layer}/aside/1-1/0`, 'x');
    assert.deepEqual((await named()).sort(), [`${layer}/aside/1-1/0`, `${layer}/upper/folder/kept`]);
    await rm(`${layer}/aside/1-1`, { recursive: true });
    await writeFile(`${layer}/all-sent`, '');
    assert.deepEqual(await script('postrm', ['purge']), { code: 0, said: '' });
    assert.equal(await exists(layer), false);
  });

  it('leave nothing behind when all is on the NAS, and a cache elsewhere alone', async (t) => {
    const { at, script } = await machine(t);
    await script('postinst', ['configure', '']);
    const file = await cacheFile(at, false);
    await mkdir(at('mnt/mountkeeper/files'));
    for (const own of ['place', 'in-use', 'reserve', 'boot']) {
      await writeFile(at(`var/cache/mountkeeper/files/${own}`), '');
    }
    await mkdir(at('elsewhere'));
    await writeFile(
      at('etc/mountkeeper/mountkeeper.toml'),
      `[web]\nport = 1\n[cache]\n# where\ndir = "${at('elsewhere')}"\n`,
    );
    assert.deepEqual(await script('postrm', ['remove']), { code: 0, said: '' });
    assert.ok(await exists(file), 'a removal touches no file');
    assert.deepEqual(await script('postrm', ['purge']), { code: 0, said: '' });
    for (const path of ['etc/mountkeeper', 'var/lib/mountkeeper', 'var/cache/mountkeeper', 'mnt/mountkeeper'])
      assert.equal(await exists(at(path)), false, path);
    assert.ok(await exists(at('elsewhere')));
  });

  it('purge mount points that a killed daemon left locked', { skip: unlessRoot }, async (t) => {
    const { at, script } = await machine(t);
    const point = at('mnt/mountkeeper/team/files');
    await mkdir(point, { recursive: true });
    await run('chattr', ['+i', point]);
    t.after(() => run('chattr', ['-i', point]).catch(() => undefined));
    assert.deepEqual(await script('postrm', ['purge']), { code: 0, said: '' });
    assert.equal(await exists(at('mnt/mountkeeper')), false);
  });

  it('purge caches and state that are file systems of their own', { skip: unlessRoot }, async (t) => {
    const { at, script } = await machine(t);
    await script('postinst', ['configure', '']);
    const below = 'var/lib/mountkeeper/on-another-disk';
    await mkdir(at(below));
    // What is mounted in the shell's own namespace is gone with it.
    const { code, said } = await script('postrm', ['purge'], {}, [
      `for path in var/lib/mountkeeper var/cache/mountkeeper ${below}; do`,
      `mkdir -p ${at('')}$path; mount -t tmpfs none ${at('')}$path; echo x >${at('')}$path/file; done;`,
      `trap 'find ${at('var')} -type f >${at('left')}' EXIT;`,
    ]);
    assert.equal(code, 0, said);
    assert.match(said, /^find: cannot delete .*on-another-disk.*busy$/m);
    assert.equal(await readFile(at('left'), 'utf8'), `${at(below)}/file\n`);
    assert.equal(await exists(at('etc/mountkeeper')), false);
  });

  it('leave no password behind after a purge without a word', async (t) => {
    const { at, script } = await machine(t);
    await script('postinst', ['configure', '']);
    await mkdir(at('etc/mountkeeper/secrets'));
    for (const name of ['bak', 'bak.1', 'bak.12', 'refused'].map((end) => `mountkeeper.toml.${end}`))
      await writeFile(at(`etc/mountkeeper/${name}`), 'pass = "secret"');
    await writeFile(at('etc/mountkeeper/secrets/nas-pass'), 'secret');
    await writeFile(at('etc/mountkeeper/nas-password'), 'of the administrator');
    const { code, said } = await script('postrm', ['purge']);
    assert.equal(code, 0, said);
    assert.deepEqual(said.trim().split('\n'), [
      'mountkeeper: these stay where they are; passwords may be in them:',
      at('etc/mountkeeper/nas-password'),
    ]);
    assert.deepEqual(await readdir(at('etc/mountkeeper')), ['nas-password']);
  });

  it('look into every cache that the daemon has noted, and miss none whose disk is away', async (t) => {
    const { at, script } = await machine(t);
    await script('postinst', ['configure', '']);
    await mkdir(at('var/lib/mountkeeper/mount'), { recursive: true });
    for (const path of ['former one/files/vfs', 'empty', 'other', 'back', 'away'])
      await mkdir(at(path), { recursive: true });
    await writeFile(at('former one/files/vfs/a'), 'x');
    await writeFile(at('back/cache-id'), 'mark-b');
    const roots = ['empty', 'gone', 'former one', 'other'].map(at);
    await writeFile(at('var/lib/mountkeeper/mount/cache-folders.json'), `${JSON.stringify(roots)}\n`);
    const disks = at('var/lib/mountkeeper/mount/cache-disks.jsonl');
    const line = (root: string, mounted: string, mark: string): string =>
      `${JSON.stringify([at(root), { at: mounted, mark }])}\n`;
    const present =
      line('gone', '/', 'mark-g') + line('back', at('back'), 'mark-b') + line('other', '/proc', 'x');
    await writeFile(disks, present + line('away/cache', at('away'), 'mark-a'));
    const refused = await script('postrm', ['purge']);
    assert.equal(refused.code, 1);
    const named = refused.said.split('\n').filter((said) => said.startsWith('/'));
    assert.deepEqual(named, [
      `${at('former one')}/files/vfs/a`,
      `${at('away/cache')}: its disk is not mounted at ${at('away')} ` +
        `(if it is gone for good, remove its line from ${disks})`,
    ]);
    assert.ok(await exists(disks));
    await rm(at('former one/files/vfs/a'));
    assert.equal((await script('postrm', ['purge'])).code, 1);
    await writeFile(disks, present);
    assert.deepEqual(await script('postrm', ['purge']), { code: 0, said: '' });
  });

  it('look into a cache that lies elsewhere, too', async (t) => {
    const { at, script } = await machine(t);
    await script('postinst', ['configure', '']);
    await mkdir(at('ssd/files/vfs'), { recursive: true });
    await writeFile(at('ssd/files/vfs/a'), 'x');
    await writeFile(at('etc/mountkeeper/mountkeeper.toml'), `[cache]\ndir = "${at('ssd')}"\n`);
    assert.equal((await script('postrm', ['purge'])).code, 1);
  });
});
