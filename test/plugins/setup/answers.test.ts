import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NasAnswers } from '../../../core/contract/config-changes.ts';
import {
  addressProblem,
  connectionOf,
  editsOf,
  KINDS,
  nasProblem,
  shareNames,
} from '../../../plugins/setup/answers.ts';

const nas = (traits: Partial<NasAnswers> = {}): NasAnswers => ({
  kind: 'sftp',
  address: 'nas.local',
  user: 'u',
  password: 'p',
  ...traits,
});

describe('the answers of the first run', () => {
  it('become a connection of each kind', () => {
    assert.deepEqual(connectionOf(nas({ address: ' 192.168.1.5:2222 ' }), 'n'), {
      name: 'n',
      type: 'sftp',
      options: { host: '192.168.1.5', port: 2222, user: 'u', pass: 'p' },
    });
    assert.deepEqual(
      connectionOf(nas({ kind: 'smb', address: '[fe80::1]', user: '', password: '' }), 'n').options,
      { host: 'fe80::1' },
    );
    assert.deepEqual(connectionOf(nas({ kind: 'webdav', address: 'nas.local:5006/dav' }), 'n').options, {
      url: 'https://nas.local:5006/dav',
      vendor: 'other',
      user: 'u',
      pass: 'p',
    });
  });

  it('are refused where no address is meant', () => {
    for (const address of ['', 'a b', 'u:p@nas', '/etc', 'nas/share', 'nas:port', ':22']) {
      assert.match(addressProblem(nas({ address })) ?? '', /give/, address);
    }
    for (const address of ['127.0.0.1:99999', 'nas:65536', '[::1]:0']) {
      assert.match(addressProblem(nas({ address })) ?? '', /give a name or an address, such/, address);
    }
    assert.equal(addressProblem(nas({ address: 'nas:65535' })), undefined);
    assert.match(addressProblem(nas({ kind: 'webdav', address: 'nas:99999' })) ?? '', /WebDAV/);
    assert.match(addressProblem(nas({ kind: 'webdav', address: 'http://' })) ?? '', /WebDAV/);
    assert.throws(() => connectionOf(nas({ address: '' }), 'n'), /address of the NAS/);
  });

  it('say what to do where a whole address was pasted', () => {
    const said = (kind: NasAnswers['kind'], address: string) => addressProblem(nas({ kind, address }));
    assert.match(said('smb', 'smb://nas/photos') ?? '', /alone, such as nas\.local, without smb:\/\/ before/);
    assert.match(said('sftp', 'SSH://nas') ?? '', /without ssh:\/\/ before/);
    assert.match(said('smb', 'https://nas:5006/') ?? '', /https:\/\/ is one of WebDAV: choose WebDAV, or/);
    assert.match(said('webdav', 'smb://nas') ?? '', /smb:\/\/ is one of SMB: choose SMB, or/);
    assert.match(said('webdav', 'davs://nas/') ?? '', /such as https:/);
    assert.match(said('smb', 'gopher://nas') ?? '', /give a name or an address, such/);
    for (const address of ['http://nas/', 'HTTPS://nas:5006/dav', 'nas.local:5006/dav'])
      assert.equal(said('webdav', address), undefined, address);
  });

  it('are refused where a password is nobody’s, and taken where the NAS asks for none', () => {
    for (const kind of KINDS) {
      const address = kind === 'webdav' ? 'https://nas/' : 'nas';
      assert.match(
        nasProblem(nas({ kind, address, user: '' })) ?? '',
        /user of the NAS whose password this is/,
      );
      assert.equal(nasProblem(nas({ kind, address, user: '', password: '' })), undefined);
      assert.equal(nasProblem(nas({ kind, address, password: '' })), undefined, 'a key may do');
    }
    assert.throws(() => connectionOf(nas({ user: '' }), 'n'), /whose password/);
  });

  it('become names that shares may have, each of its own', () => {
    const names = shareNames(
      ['Photos/2024', 'photos', 'Team <b>', '', '...', '照片 2024/', 'x'.repeat(100)],
      ['Photos'],
    );
    assert.deepEqual(names.slice(0, 6), ['2024', 'photos-2', 'Team -b-', 'files', 'files-2', '照片 2024']);
    assert.ok((names[6] ?? '').length <= 63);
  });

  it('add to what is there, and change nothing of it', () => {
    const known = {
      connections: [{ name: 'nas-local' }],
      shares: [{ name: 'a' }],
      smb: { listen: [], users: [{ name: 'Ada' }] },
    };
    const edits = editsOf({ nas: nas(), folders: ['x'], lan: { user: 'ada', password: 'q' } }, known, {
      smb: { listen: ['10.0.0.1'] },
    });
    assert.deepEqual(edits, [
      {
        path: ['connections', 1],
        value: { name: 'nas-local-2', type: 'sftp', options: { host: 'nas.local', user: 'u', pass: 'p' } },
      },
      { path: ['shares', 1], value: { name: 'x', connection: 'nas-local-2', remote_path: 'x' } },
      { path: ['smb', 'enabled'], value: true },
    ]);
    const first = editsOf({ nas: nas(), folders: [''], lan: { user: 'bob', password: 'q' } }, known, {});
    assert.deepEqual(
      first.slice(2).map(({ path, value }) => [path.join('.'), value]),
      [
        ['smb.enabled', true],
        ['smb.listen', ['0.0.0.0']],
        ['smb.users.1', { name: 'bob', password: 'q' }],
      ],
    );
    assert.deepEqual(editsOf({ nas: nas(), folders: [] }, known, {}).length, 1);
  });
});
