/** Which changes of a document change who may enter, by the schemas of the plugins that come with it. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Config } from '../../../core/contract/config.ts';
import type { Plugin } from '../../../core/contract/plugin.ts';
import { diffConfig } from '../../../core/config/diff.ts';
import { assemble } from '../../../core/config/schema/schema.ts';
import { Joi } from '../../../core/sdk/index.ts';
import auth from '../../../plugins/auth/index.ts';
import nfs from '../../../plugins/nfs/index.ts';
import smb from '../../../plugins/smb/index.ts';
import webdav from '../../../plugins/webdav/index.ts';
import { entry } from '../../support/config/config-fixture.ts';

const door: Plugin = {
  name: 'door',
  version: '1.0.0',
  apiVersion: 1,
  description: 'A server of a third party.',
  config: {
    section: 'door',
    schema: Joi.object({
      keys: Joi.array().items(Joi.string()).default([]).meta({ entry: true }).description('Who has one.'),
      color: Joi.string().default('red').description('Of the door.'),
    }).meta({ tier: 'live' }),
  },
  register: () => undefined,
};
const ASSEMBLY = assemble(
  [auth, nfs, smb, webdav, door].map(({ name, config, guard = false }) =>
    entry(name, config ?? assert.fail(name), { guard, thirdParty: name === 'door' }),
  ),
);
const BASE = {
  connections: [{ name: 'nas', type: 'sftp' }],
  shares: [
    { name: 'photos', connection: 'nas' },
    { name: 'films', connection: 'nas', users: ['anna', 'ben'], clients: ['192.0.2.1'] },
  ],
  groups: { office: ['anna', 'ben'] },
  web: { password: 'pw' },
  smb: { users: [{ name: 'anna', password: 'one' }] },
  webdav: { users: [{ name: 'anna', password: 'one' }] },
};
const [photos, films] = BASE.shares as [object, object];

function read(document: object): Config {
  const { error, value } = ASSEMBLY.schema.validate(document) as { error?: Error; value: Config };
  assert.equal(error, undefined);
  return value;
}

function isEntry(more: object): readonly boolean[] {
  return diffConfig(read(BASE), read({ ...BASE, ...more }), ASSEMBLY).changes.map((change) => change.isEntry);
}

describe('who may enter', () => {
  for (const [what, more] of [
    ['the password', { web: { password: 'another' } }],
    ['the secret of codes', { web: { ...BASE.web, totp_secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP' } }],
    ['the name of the administrator', { web: { ...BASE.web, username: 'root' } }],
    ['a user of SMB', { smb: { users: [] } }],
    ['guests', { smb: { ...BASE.smb, guest: true } }],
    ['a password of WebDAV', { webdav: { users: [{ name: 'anna', password: 'two' }] } }],
    ['a group of the machine', { webdav: { ...BASE.webdav, system_group: 'office' } }],
    ['a machine of NFS', { nfs: { allowed_clients: ['192.0.2.1'] } }],
    ['the plugin that asks', { plugins: { auth: { enabled: false } } }],
    ['a group', { groups: { office: ['anna'] } }],
    ['a server of a third party', { door: { keys: ['anna'] } }],
    ...['users', 'read_only_users'].map(
      (key) => [`${key} of a share`, { shares: [photos, { ...films, [key]: ['anna'] }] }] as const,
    ),
    ...['clients', 'read_only_clients'].map(
      (key) => [`${key} of a share`, { shares: [photos, { ...films, [key]: ['192.0.2.9'] }] }] as const,
    ),
    ['lists that a share has no more', { shares: [photos, { name: 'films', connection: 'nas' }] }],
    ['a share that names users and goes', { shares: [photos] }],
    ['one that comes', { shares: [photos, films, { ...films, name: 'more' }] }],
  ] as const)
    it(`is changed by ${what}`, () => {
      const found = isEntry(more);
      assert.ok(found.length > 0 && found.every(Boolean), String(found));
    });

  it('is not changed by anything else', () => {
    for (const more of [
      { connections: [{ name: 'nas', type: 'ftp' }] },
      { shares: [films] },
      { shares: [films, photos] },
      { shares: [{ ...photos, remote_path: '/dead' }, films] },
      { smb: { ...BASE.smb, listen: ['192.0.2.1'] } },
      { webdav: { ...BASE.webdav, port: 8081 } },
      { web: { ...BASE.web, port: 8081 } },
      { door: { color: 'blue' } },
      { plugins: { smb: { enabled: false } } },
    ]) {
      const found = isEntry(more);
      assert.ok(found.length > 0 && !found.includes(true), `${JSON.stringify(more)} ${String(found)}`);
    }
  });
});
