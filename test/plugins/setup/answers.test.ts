import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { NasAnswers } from '../../../core/contract/config-changes.ts';
import { addressProblem, connectionOf, editsOf, shareNames } from '../../../plugins/setup/answers.ts';

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
    assert.match(addressProblem(nas({ kind: 'webdav', address: 'http://' })) ?? '', /WebDAV/);
    assert.throws(() => connectionOf(nas({ address: '' }), 'n'), /address of the NAS/);
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
