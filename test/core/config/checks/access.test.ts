/** Names of users and groups in shares. */
import assert from 'node:assert/strict';
import { afterEach, describe, it } from 'node:test';
import { Joi } from '../../../../core/sdk/index.ts';
import { NAS, OpenedRooms, accepted, entry, refused } from '../../../support/config/config-fixture.ts';

const rooms = new OpenedRooms();
const server = (owner: string, names: readonly string[], ignoresCase: boolean) =>
  entry(owner, { schema: Joi.object({}), logins: () => ({ names, ignoresCase }) });
const ENTRIES = [
  server('smb', ['anna', 'Ben'], true),
  server('webdav', ['carl dora', '@boss', '+x', 'rene\u0301'], false),
];

const text = (keys: string, groups = 'office = ["anna", "carl dora"]'): string =>
  `${NAS}\n[[shares]]\nname = "team"\nconnection = "nas"\n${keys}\n[groups]\n${groups}\n`;

async function check(keys: string, groups?: string) {
  return rooms.open({ entries: () => ENTRIES }).service.check(text(keys, groups), 'http');
}

describe('users that a share names', () => {
  afterEach(() => rooms.close());

  it('are users of some server, in any case where that one ignores it, and groups', async () => {
    for (const keys of [
      'users = ["anna", "BEN", "carl dora", "@office", "+x"]',
      'read_only_users = ["@office"]',
      // The server's name in the other Unicode form.
      'users = ["ren\u00e9"]',
      'users = ["anna"]\nread_only_users = ["anna"]',
    ])
      accepted(await check(keys));
  });

  it('are refused by the name of the key when no server and no group has them', async () => {
    const cases: readonly (readonly [string, RegExp])[] = [
      [
        'users = ["anna", "ana"]',
        /shares\[0\]\.users\[1\] names "ana", a user of no server; did you mean "anna"/,
      ],
      ['read_only_users = ["Carl Dora"]', /shares\[0\]\.read_only_users\[0\] names "Carl Dora"/],
      ['users = ["@wheel"]', /shares\[0\]\.users\[0\] names "@wheel", a group that \[groups\] does not have/],
      ['users = ["@boss"]', /names "@boss", a group that/],
      ['users = ["@constructor"]', /names "@constructor", a group that/],
      ['users = ["%U"]', /names "%U", a user of no server/],
      ['users = ["a\\nb"]', /shares\[0\]\.users\[0\] must be the name of a user/],
      ['users = []', /shares\[0\]\.users names nobody; leave the key out/],
      ['read_only_users = []', /shares\[0\]\.read_only_users names nobody/],
    ];
    for (const [keys, sentence] of cases) assert.match(refused(await check(keys)).message, sentence, keys);
  });

  it('are named at the key of their group as TOML writes it', async () => {
    const { problems } = refused(await check('', '"a.b" = ["zoe"]'));
    assert.deepEqual(
      problems.map(({ path }) => path),
      ['groups."a.b"[0]'],
    );
  });

  it('may be anybody where a server lets in others, too, but no group that is not there', async () => {
    const others = entry('ldap', {
      schema: Joi.object({}),
      logins: () => ({ names: [], ignoresCase: false, hasOthers: true }),
    });
    const room = rooms.open({ entries: () => [...ENTRIES, others] });
    accepted(await room.service.check(text('users = ["zoe"]'), 'http'));
    assert.match(refused(await room.service.check(text('users = ["@wheel"]'), 'http')).message, /@wheel/);
  });

  it('are the same in groups, which hold no groups', async () => {
    accepted(await check('users = ["@empty"]', 'empty = []'));
    assert.match(refused(await check('', 'office = ["ana"]')).message, /groups\.office\[0\] names "ana"/);
    assert.match(
      refused(await check('', '"办公室" = ["anna"]')).message,
      /^"办公室" is no name of a group; use up to 32 letters/,
    );
    assert.match(
      refused(await check('', 'office = ["@sales"]\nsales = []')).message,
      /a group holds users alone/,
    );
    assert.match(refused(await check('', '"@office" = ["anna"]')).message, /@office/);
  });

  it('are shown as they stand, and a change of them touches no mount', async () => {
    const room = rooms.open({ entries: () => ENTRIES });
    const first = await room.run(text('users = ["@office"]'));
    assert.deepEqual(first.config.shares[0]?.users, ['@office']);
    assert.deepEqual(room.service.redacted()['groups'], { office: ['anna', 'carl dora'] });
    const second = await room.service.check(text('users = ["@office"]', 'office = ["anna"]'), 'http');
    if (!second.ok) throw new Error(second.message);
    assert.deepEqual(
      second.diff.changes.map(({ path, tier }) => [path, tier]),
      [['groups.office', 'protocol']],
    );
    assert.match(second.diff.summary, /carl dora/);
  });
});
