/** What a purge of the Debian package deletes, and what it leaves, on a machine that is nothing but a folder. */
import assert from 'node:assert/strict';
import { mkdir, readFile, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { unlessRoot } from '../runner/skips.ts';
import { run } from '../support/package/build-packages.ts';
import { cacheFile, exists, folderMachine } from '../support/package/folder-machine.ts';

describe('the scripts of the Debian package, at a purge,', () => {
  it('refuse a purge while files wait, and never delete them', async (t) => {
    const { at, script } = await folderMachine(t);
    await script('postinst', ['configure', '']);
    const file = await cacheFile(at, true);
    const refused = await script('postrm', ['purge']);
    assert.equal(refused.code, 1);
    assert.match(refused.said, /not purged[^]*a\.txt/);
    assert.ok((await exists(file)) && (await exists(at('etc/mountkeeper/mountkeeper.toml'))));
  });

  it('leave all that brings waiting files up after a new installation, when told to leave them', async (t) => {
    const { at, script } = await folderMachine(t);
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

  it('refuse a purge for whatever is not known to be on the NAS', async (t) => {
    for (const path of [
      'files/held/000001/vfs/a',
      'files/layer/upper/new.txt',
      'files/aside/x/vfs/a',
      'files/vfs/files/no-document',
      'files/layer/upper/folder/.',
    ]) {
      const { at, script } = await folderMachine(t);
      const file = at(`var/cache/mountkeeper/${path}`);
      await mkdir(join(file, '..'), { recursive: true });
      if (path.endsWith('/.')) await mkdir(file, { recursive: true });
      else await writeFile(file, 'x');
      assert.equal((await script('postrm', ['purge'])).code, 1, path);
      assert.ok(await exists(file), path);
    }
  });

  it('purge a write layer that the daemon has marked as sent, but for what has changed since', async (t) => {
    const { at, script } = await folderMachine(t);
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
    const { at, script } = await folderMachine(t);
    await script('postinst', ['configure', '']);
    const file = await cacheFile(at, false);
    await mkdir(at('mnt/mountkeeper/files'));
    for (const own of ['place', '.mounting.lock', 'in-use', 'reserve', 'boot']) {
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
    const { at, script } = await folderMachine(t);
    const point = at('mnt/mountkeeper/team/files');
    await mkdir(point, { recursive: true });
    await run('chattr', ['+i', point]);
    t.after(() => run('chattr', ['-i', point]).catch(() => undefined));
    assert.deepEqual(await script('postrm', ['purge']), { code: 0, said: '' });
    assert.equal(await exists(at('mnt/mountkeeper')), false);
  });

  it('purge caches and state that are file systems of their own', { skip: unlessRoot }, async (t) => {
    const { at, script } = await folderMachine(t);
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
    const { at, script } = await folderMachine(t);
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
});
