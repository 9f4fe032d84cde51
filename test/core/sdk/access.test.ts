/** Who may enter a share, by the document alone. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { entranceOf, shareAccess } from '../../../core/sdk/access.ts';
import type { Config, ShareConfig } from '../../../core/contract/config.ts';

const GROUPS = { office: ['anna', 'ben'], empty: [] };

function accessOf(keys: Partial<ShareConfig>, groups: Record<string, string[]> = GROUPS) {
  return shareAccess({ shares: [{ name: 'team', ...keys }], groups } as unknown as Config, 'team');
}

describe('who may enter a share', () => {
  it('is everybody when it names nobody, also who has no name', () => {
    assert.equal(accessOf({}), undefined);
    assert.equal(entranceOf(undefined, 'anna'), 'write');
    assert.equal(entranceOf(undefined, undefined), 'write');
  });

  it('are those whom it names, one by one and by their groups', () => {
    const access = accessOf({ users: ['@office', 'carl'], read_only_users: ['dora'] });
    assert.deepEqual(access, { write: ['anna', 'ben', 'carl'], read: ['dora'] });
    assert.deepEqual(
      ['anna', 'carl', 'dora', 'emil', undefined].map((user) => entranceOf(access, user)),
      ['write', 'write', 'read', 'none', 'none'],
    );
  });

  it('lets whoever may only look write by no group and by no other spelling', () => {
    assert.deepEqual(accessOf({ users: ['@office'], read_only_users: ['ben'] }), {
      write: ['anna'],
      read: ['ben'],
    });
    const access = accessOf({ users: ['@office'], read_only_users: ['BEN'] });
    assert.equal(entranceOf(access, 'ben'), 'read');
    assert.equal(entranceOf(access, 'Ben', { ignoresCase: true }), 'read');
    assert.equal(entranceOf(access, 'Ben'), 'none');
  });

  it('tells Anna from anna where the server does', () => {
    const access = accessOf({ users: ['Anna'] });
    assert.deepEqual(
      [entranceOf(access, 'anna'), entranceOf(access, 'anna', { ignoresCase: true })],
      ['none', 'write'],
    );
  });

  it('knows a name by both of its Unicode forms, in lists, groups and logins', () => {
    const [composed, parted] = ['Ren\u00e9', 'Rene\u0301'];
    for (const name of [composed, parted])
      for (const access of [accessOf({ users: [name] }), accessOf({ users: ['@one'] }, { one: [name] })]) {
        assert.deepEqual(access, { write: [composed], read: [] });
        for (const user of [composed, parted]) {
          assert.equal(entranceOf(access, user), 'write');
          assert.equal(entranceOf(access, user.toLowerCase(), { ignoresCase: true }), 'write');
        }
      }
    assert.deepEqual(accessOf({ users: [composed], read_only_users: [parted] }), {
      write: [],
      read: [composed],
    });
  });

  it('is nobody for an empty group, for one that is not there, and for a share that is not there', () => {
    for (const users of [['@empty'], ['@wheel'], ['@constructor'], ['@'], ['@__proto__']])
      assert.deepEqual(accessOf({ users }), { write: [], read: [] }, users[0]);
    assert.deepEqual(shareAccess({ shares: [] } as unknown as Config, 'team'), { write: [], read: [] });
  });

  it('takes a member for a user, whatever the name looks like', () => {
    assert.deepEqual(accessOf({ users: ['@odd'] }, { odd: ['@office', '+wheel'] }), {
      write: ['+wheel', '@office'],
      read: [],
    });
  });
});
