/** Where a purge of the Debian package looks for what waits, and what it does where it cannot tell. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { exists, folderMachine } from '../support/package/folder-machine.ts';

describe('the scripts of the Debian package, looking for what waits,', () => {
  it('refuse a purge where a configuration that was there is gone, and no record tells of its caches', async (t) => {
    const { at, script } = await folderMachine(t);
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
      const { at, script } = await folderMachine(t);
      const file = at('srv/cache/share/vfs/a.txt');
      await mkdir(join(file, '..'), { recursive: true });
      await writeFile(file, 'x');
      await mkdir(at('etc/mountkeeper'), { recursive: true });
      await writeFile(at('etc/mountkeeper/mountkeeper.toml'), text.replace('FOLDER', at('srv/cache')));
      const refused = await script('postrm', ['purge']);
      assert.equal(refused.code, 1, text);
      assert.match(refused.said, said, text);
    }
    const { at, script } = await folderMachine(t);
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
      const { at, script } = await folderMachine(t);
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

  it('look into every cache that the daemon has noted, and miss none whose disk is away', async (t) => {
    const { at, script } = await folderMachine(t);
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
    const { at, script } = await folderMachine(t);
    await script('postinst', ['configure', '']);
    await mkdir(at('ssd/files/vfs'), { recursive: true });
    await writeFile(at('ssd/files/vfs/a'), 'x');
    await writeFile(at('etc/mountkeeper/mountkeeper.toml'), `[cache]\ndir = "${at('ssd')}"\n`);
    assert.equal((await script('postrm', ['purge'])).code, 1);
  });
});
