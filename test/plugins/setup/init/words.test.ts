import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lanAddresses } from '../../../../plugins/setup/addresses.ts';
import { joinAddress, splitAddress } from '../../../../plugins/setup/init/address.ts';
import { readFlags } from '../../../../plugins/setup/init/flags.ts';
import { readFolders } from '../../../../plugins/setup/init/folder-choice.ts';

describe('what is answered on the terminal', () => {
  it('may name the kind of the NAS in its address', () => {
    assert.deepEqual(splitAddress(' nas.local ', 'smb'), { kind: 'smb', address: 'nas.local' });
    assert.deepEqual(splitAddress('sftp://nas:2222/', 'smb'), { kind: 'sftp', address: 'nas:2222' });
    assert.deepEqual(splitAddress('dav://nas/x', 'smb'), { kind: 'webdav', address: 'http://nas/x' });
    assert.deepEqual(splitAddress('https://nas/x', 'ftp'), { kind: 'webdav', address: 'https://nas/x' });
    assert.deepEqual(splitAddress('gopher://nas', 'ftp'), { kind: 'ftp', address: 'gopher://nas' });
    for (const text of ['smb://nas', 'sftp://[fe80::1]:22', 'https://nas:5006/dav'])
      assert.equal(joinAddress(splitAddress(text, 'ftp')), text);
  });

  it('chooses folders by number, by name, by path, or looks further', () => {
    const names = ['Photos', 'team, old', '2', 'Zeit'];
    const choose = (answer: string, at = '') => readFolders(answer, at, names);
    assert.deepEqual(choose('all'), { chosen: names });
    assert.deepEqual(choose('1, Zeit,1'), { chosen: ['Photos', 'Zeit'] });
    assert.deepEqual(choose('team, old'), { chosen: ['team, old'] }, 'a comma in a name');
    assert.deepEqual(choose('2'), { chosen: ['2'] }, 'a folder goes before a number');
    assert.deepEqual(choose('1/'), { go: 'Photos' });
    assert.deepEqual(choose('Zeit/', 'a'), { go: 'a/Zeit' });
    assert.deepEqual(choose('..', 'a/b'), { go: 'a' });
    assert.deepEqual(choose('.', 'a/b'), { chosen: ['a/b'] });
    assert.deepEqual(choose('deep//er/one'), { chosen: ['deep/er/one'] });
    for (const answer of ['5', '0', 'nobody', 'Photos,nobody', ','])
      assert.ok('problem' in choose(answer), answer);
    assert.deepEqual(readFolders('all', 'a', []), { chosen: ['a'] });
  });

  it('takes flags, and no password among them', () => {
    const flags = readFlags(['--address', 'nas', '--folders', '/a/, b', '--folder', 'c, d', '--no-lan']);
    assert.ok(typeof flags !== 'string');
    assert.deepEqual([flags.folders, flags.noLan, flags.yes], [['a', 'b', 'c, d'], true, false]);
    for (const [args, reason] of [
      [['--password=x'], /password-file/],
      [['--lan-password', 'x'], /every user/],
      [['--kind', 'local'], /one of smb/],
      [['--no-lan', '--lan-user', 'x'], /exclude/],
      [['stray'], /stray/],
      [['--adress', 'x'], /--adress/],
    ] as const) {
      const refused = readFlags(args);
      assert.ok(typeof refused === 'string');
      assert.match(refused, reason);
    }
  });

  it('ends in addresses that shells and people can copy', () => {
    const at = { user: "o'neil", host: undefined, port: 445, listen: ['10.0.0.2'] };
    assert.deepEqual(lanAddresses(['照片 A'], at), [
      {
        share: '照片 A',
        finder: `smb://10.0.0.2/${encodeURIComponent('照片 A')}`,
        explorer: String.raw`\\10.0.0.2\照片 A`,
        linux: String.raw`sudo mount -t cifs '//10.0.0.2/照片 A' /mnt -o 'username=o'\''neil'`,
      },
    ]);
    const odd = lanAddresses(['a'], { ...at, port: 4450, listen: ['::'], host: 'nas.example' })[0];
    assert.deepEqual([odd?.finder, odd?.explorer], ['smb://nas.example:4450/a', undefined]);
    const local = lanAddresses(['a'], { ...at, listen: ['0.0.0.0'], host: '127.0.0.1' })[0];
    assert.doesNotMatch(local?.finder ?? '', /127\.0\.0\.1/);
  });
});
