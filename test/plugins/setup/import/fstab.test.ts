import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { accountIn, credentialFiles, readCifs } from '../../../../plugins/setup/import/credential-files.ts';
import { importFstab } from '../../../../plugins/setup/import/fstab.ts';
import type { CredentialFiles } from '../../../../plugins/setup/import/fstab.ts';
import { reveal } from '../../../../plugins/setup/import/reveal.ts';
import { currentRclone } from '../../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';

const FILES: CredentialFiles = {
  cifs: async () => readCifs('username=ada\npassword= pa=ss "word" \n# x=y\ndomain=HOME\n'),
  davfs: async (url, at) =>
    accountIn('# none\nhttps://other x y\n"https://nas/dav/"  ada "pa ss\\"#1"\n', url, at),
};
const FSTAB = String.raw`# //nas/x /mnt/comment cifs ro 0 0
UUID=1 / ext4 defaults 0 1
//nas.local/Team/a\040b /mnt/team\040files cifs credentials=/root/c,ro,vers=3.0,port=4450 0 0
//10.0.0.2/old /mnt/old smb3 user=bob,password=first,pass=$(reboot) 0 0
https://nas/dav /mnt/dav davfs rw,user 0 0
ada@nas:/volume1/photos /mnt/ssh fuse.sshfs IdentityFile=/root/key,port=2222,ro 0 0
sshfs#bob@[fe80::1]:data /mnt/six fuse defaults 0 0
nas:/export /mnt/nfs nfs4 defaults 0 0
//nas/one /mnt/twice cifs guest 0 0
//nas/two /mnt/twice/ cifs guest 0 0`;
const read = async (at: string, text = FSTAB) => {
  const found = await importFstab(text, at, FILES);
  return { ...found, options: Object.fromEntries(found.options) };
};

describe('an entry of fstab', () => {
  it('of cifs becomes a share of SMB, with the account of its credentials file', async () => {
    assert.deepEqual(await read('/mnt/team files'), {
      type: 'smb',
      options: { host: 'nas.local', user: 'ada', pass: ' pa=ss "word" ', domain: 'HOME', port: '4450' },
      remotePath: 'Team/a b',
      readOnly: true,
      name: 'team files',
      notes: ['its account is the one in /root/c'],
    });
    assert.deepEqual((await read('/mnt/old')).options, { host: '10.0.0.2', user: 'bob', pass: '$(reboot)' });
    assert.equal((await read('/mnt/twice')).remotePath, 'two', 'the last one, as mount has it');
  });

  it('is refused when a path of it would be shown as lines of its own', async () => {
    const odd = String.raw`//nas/a /mnt/odd cifs credentials=/root/c\012note:\040all\040is\040well 0 0`;
    await assert.rejects(read('/mnt/odd', odd), /name of the credentials file has control characters/);
  });

  it('of davfs and sshfs becomes what it leads to', async () => {
    assert.deepEqual((await read('/mnt/dav/')).options, {
      url: 'https://nas/dav',
      vendor: 'other',
      user: 'ada',
      pass: 'pa ss"#1',
    });
    const ssh = await read('/mnt/ssh');
    assert.deepEqual(
      [ssh.options, ssh.remotePath, ssh.readOnly],
      [{ host: 'nas', user: 'ada', port: '2222', key_file: '/root/key' }, '/volume1/photos', true],
    );
    const six = await read('/mnt/six');
    assert.deepEqual([six.options, six.notes.length], [{ host: 'fe80::1', user: 'bob' }, 1]);
  });

  it('is refused in a sentence where it cannot be taken over', async () => {
    for (const [text, reason] of [
      ['', /no entry/],
      ['nas:/x /mnt/x nfs4 defaults 0 0', /type nfs4/],
      ['x /mnt/x constructor defaults 0 0', /type constructor/],
      ['//nas /mnt/x cifs guest 0 0', /names no share/],
      [String.raw`//nas/a\012b /mnt/x cifs guest 0 0`, /control characters/],
      [String.raw`//nas/a /mnt/x cifs user=a\033[31m 0 0`, /control characters/],
      ['file:///etc /mnt/x davfs rw 0 0', /no URL/],
      ['-oProxyCommand=x /mnt/x fuse.sshfs rw 0 0', /names no folder/],
      [`//nas/a /mnt/x cifs pass=${'x'.repeat(1_048_576)} 0 0`, /longer than/],
    ] as const)
      await assert.rejects(read('/mnt/x', text), reason, text.slice(0, 60));
    const from = process.cpuUsage();
    const long = `${'\\040'.repeat(250_000)} ${'"'.repeat(100_000)}\n//nas/a /mnt/x cifs rw 0 0`;
    assert.equal((await read('/mnt/x', long)).remotePath, 'a');
    const { user, system } = process.cpuUsage(from);
    assert.ok(user + system < 2_000_000, `${user + system} µs`);
  });

  it('has its credentials read from plain files alone', async () => {
    const scratch = await createScratch('credentials');
    try {
      spawnSync('mkfifo', [scratch.path('pipe')]);
      await writeFile(scratch.path('large'), 'x'.repeat(100_000));
      for (const [path, reason] of [
        [scratch.path('pipe'), /not a plain file/],
        ['/dev/zero', /not a plain file/],
        [scratch.path('large'), /larger than/],
        [scratch.path('none'), /no such file/],
      ] as const)
        await assert.rejects(credentialFiles().cifs(path), reason);
      await writeFile(scratch.path('shadow'), 'root:$6$secret:1::::::\n');
      assert.equal((await credentialFiles().cifs(scratch.path('shadow'))).size, 0);
      assert.equal(await credentialFiles(scratch.path('none')).davfs('https://nas', '/mnt'), undefined);
    } finally {
      await scratch.close();
    }
  });
});

describe('a password that rclone keeps', () => {
  it('is read as rclone itself reads it', () => {
    for (const clear of ['x', 'pa ss"\'$(x)`', '密码\twith a tab', 'y'.repeat(2_000)]) {
      const { stdout } = spawnSync(currentRclone(), ['obscure', '-'], { input: clear, encoding: 'utf8' });
      assert.equal(reveal(stdout.trim()), clear);
    }
    for (const text of ['', 'short', 'not base64 !!', 'A'.repeat(22) + '_-_-_-_-_-'])
      assert.throws(() => reveal(text), /not obscured/);
  });
});
