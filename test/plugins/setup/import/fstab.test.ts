import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
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
  knownHosts: async ([named = '']) => (named === '' ? '/root/.ssh/known_hosts' : undefined),
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
      notes: [
        'its account is the one in /root/c',
        'options of the entry that are not taken over: vers; who may do what in the share, its users and ' +
          'read_only_users say',
      ],
      doubts: [],
    });
    assert.deepEqual((await read('/mnt/old')).options, { host: '10.0.0.2', user: 'bob', pass: '$(reboot)' });
    assert.equal((await read('/mnt/twice')).remotePath, 'two', 'the last one, as mount has it');
    const bytes = String.raw`//nas/B\303\274cher\0402 /mnt/\303\274 cifs guest 0 0`;
    assert.equal((await read('/mnt/ü', bytes)).remotePath, 'Bücher 2');
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
      [
        {
          host: 'nas',
          user: 'ada',
          port: '2222',
          key_file: '/root/key',
          known_hosts_file: '/root/.ssh/known_hosts',
        },
        '/volume1/photos',
        true,
      ],
    );
    const six = await read('/mnt/six');
    assert.deepEqual(
      [six.options, six.notes.length, six.doubts],
      [{ host: 'fe80::1', user: 'bob', known_hosts_file: '/root/.ssh/known_hosts' }, 1, []],
    );
  });

  it('of cifs has its domain, password and prefix taken out of where they stand', async () => {
    const of = async (options: string, source = '//nas/a') =>
      read('/mnt/x', `${source} /mnt/x cifs ${options} 0 0`);
    for (const [options, found] of [
      [String.raw`username=DOM\ada`, { domain: 'DOM', user: 'ada' }],
      ['user=WG/bob%p%w', { domain: 'WG', user: 'bob', pass: 'p%w' }],
      ['user=bob%first,pass=last', { user: 'bob', pass: 'last' }],
      ['pass=first,user=bob', { user: 'bob', pass: 'first' }],
    ] as const)
      assert.deepEqual((await of(options)).options, { host: 'nas', ...found }, options);
    assert.equal((await of(String.raw`prefixpath=\in\there`)).remotePath, 'a/in/there');
    assert.equal((await of('prefixpath=/in/there/', '//nas/a/b')).remotePath, 'a/b/in/there');
    assert.equal((await of('ro,rw')).readOnly, false);
  });

  it('has one note with what decides who may do what and is not taken over, and no piece of a password', async () => {
    const of = async (type: string, options: string) =>
      read('/mnt/x', `${type === 'cifs' ? '//nas/a' : 'nas:/a'} /mnt/x ${type} ${options} 0 0`);
    const cifs = await of(
      'cifs',
      'guest,uid=1000,file_mode=0600,ip=10.0.0.9,_netdev,x-systemd.automount,nofail',
    );
    assert.deepEqual(cifs.notes, [
      'options of the entry that are not taken over: guest, uid, file_mode, ip; who may do what in the share, its ' +
        'users and read_only_users say',
    ]);
    assert.match(
      (await of('cifs', 'pass=se,cret')).notes.join(),
      /not taken over: 1 that is not known here;/,
    );
    assert.deepEqual((await of('cifs', 'defaults')).notes, []);
    const ssh = await of('sshfs', 'IdentityFile=/k,allow_other,ProxyJump=gate,UserKnownHostsFile=/dev/null');
    assert.match(
      ssh.notes.join('\n'),
      /^no file of known hosts was found\noptions of the entry that are not taken over: allow_other;/,
    );
    assert.match(ssh.doubts.join('\n'), /^the entry reaches the NAS by proxyjump, .* dials nas$/);
    assert.equal('known_hosts_file' in ssh.options, false);
  });

  it('has the known hosts that its line names, else those of ssh, where they are', async () => {
    const scratch = await createScratch('known-hosts');
    try {
      const { knownHosts } = credentialFiles(undefined, scratch.path('home'));
      const usual = await knownHosts(['']);
      assert.ok(usual === undefined || usual === '/etc/ssh/ssh_known_hosts');
      await mkdir(scratch.path('home/.ssh'), { recursive: true });
      await writeFile(scratch.path('home/.ssh/known_hosts'), 'x');
      assert.equal(await knownHosts(['']), scratch.path('home/.ssh/known_hosts'));
      assert.equal(await knownHosts(['/none', '~/.ssh/known_hosts']), scratch.path('home/.ssh/known_hosts'));
      for (const none of ['/dev/null', '/none', 'relative'])
        assert.equal(await knownHosts([none]), undefined);
    } finally {
      await scratch.close();
    }
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
