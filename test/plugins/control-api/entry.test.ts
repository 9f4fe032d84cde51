/** Which changes of a document change who may enter. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config } from '../../../core/contract/config.ts';
import { changesEntry, movesPage } from '../../../plugins/control-api/config/entry.ts';

const BASE = {
  connections: [{ name: 'nas', pass: 'one' }],
  shares: [
    { name: 'photos', connection: 'nas' },
    { name: 'films', connection: 'nas', users: ['anna', 'bob'] },
  ],
  groups: { office: ['anna', 'bob'] },
  web: { listen: '127.0.0.1', username: 'admin', password: 'pw', totp_secret: '', users: [], tokens: [] },
  smb: { listen: [], guest: false, users: [{ name: 'anna', password: 'one' }] },
  webdav: { port: 8080, users: [{ name: 'anna', password: 'one' }] },
  nfs: { allowed_clients: ['192.0.2.1'] },
};
const [photos, films] = BASE.shares;

const changed = (more: object): [Config, Config] => [
  BASE as unknown as Config,
  { ...BASE, ...more } as unknown as Config,
];

describe('who may enter', () => {
  for (const [what, more] of [
    ['the password', { web: { ...BASE.web, password: 'another' } }],
    ['the secret of codes', { web: { ...BASE.web, totp_secret: 'ABC' } }],
    ['the name of the administrator', { web: { ...BASE.web, username: 'root' } }],
    ['a user', { web: { ...BASE.web, users: [{ name: 'bob', role: 'admin' }] } }],
    ['a token', { web: { ...BASE.web, tokens: [{ name: 'script' }] } }],
    ['a user of SMB', { smb: { ...BASE.smb, users: [] } }],
    ['guests', { smb: { ...BASE.smb, guest: true } }],
    ['a password of WebDAV', { webdav: { ...BASE.webdav, users: [{ name: 'anna', password: 'two' }] } }],
    ['a machine of NFS', { nfs: { allowed_clients: [] } }],
    ['the plugin that asks', { plugins: { auth: { enabled: true } } }],
    ['a group', { groups: { office: ['anna'] } }],
    ...['users', 'read_only_users', 'clients', 'read_only_clients'].map(
      (key) => [`${key} of a share`, { shares: [photos, { ...films, [key]: ['anna'] }] }] as const,
    ),
    ['a share that names users', { shares: [photos, { ...films, name: 'movies', users: ['anna'] }] }],
  ] as const)
    it(`is changed by ${what}, which leaves the page where it is`, () => {
      assert.deepEqual([changesEntry(...changed(more)), movesPage(...changed(more))], [true, false]);
    });

  it('is not changed by anything else', () => {
    for (const more of [
      {},
      { connections: [{ name: 'nas', pass: 'two' }] },
      { shares: [films] },
      { shares: [{ ...photos, remote_path: '/dead' }, films] },
      { smb: { ...BASE.smb, listen: ['192.0.2.1'] } },
      { webdav: { ...BASE.webdav, port: 8081 } },
    ])
      assert.deepEqual([changesEntry(...changed(more)), movesPage(...changed(more))], [false, false]);
    const moved = changed({ web: { ...BASE.web, listen: '192.0.2.1' } });
    assert.deepEqual([changesEntry(...moved), movesPage(...moved)], [false, true]);
  });
});
