import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Secrets } from 'mountkeeper';
import { renderGroup, renderPasswd, userNumbers } from '../../../plugins/smb/users/accounts.ts';
import { resolveListen } from '../../../plugins/smb/addresses.ts';
import { smbPaths, pathsProblem } from '../../../plugins/smb/paths.ts';
import { pathProblem, renderConfig } from '../../../plugins/smb/server-config.ts';
import { resolveUsers } from '../../../plugins/smb/users/users.ts';
import type { ServedShare, ServerSettings } from '../../../plugins/smb/server-config.ts';

const settings: ServerSettings = {
  paths: smbPaths('/var/lib/mountkeeper'),
  port: 445,
  listen: ['127.0.0.1', 'eth0'],
  guest: false,
  users: ['alice', 'bob'],
  hasFruit: true,
  owner: 'root',
};
const photos: ServedShare = {
  name: '照片 Photos',
  path: '/mnt/照片 Photos',
  readOnly: false,
  isShared: false,
};

/** Section → key → value, as Samba reads it. */
function read(text: string): Map<string, Map<string, string>> {
  const sections = new Map<string, Map<string, string>>();
  for (const line of text.split('\n').filter((one) => one.trim() !== '' && !one.startsWith('#'))) {
    const header = /^\[(.*)\]$/.exec(line)?.[1];
    if (header !== undefined) sections.set(header, new Map());
    else
      [...sections.values()]
        .at(-1)
        ?.set(line.slice(0, line.indexOf('=')).trim(), line.slice(line.indexOf('=') + 1).trim());
  }
  return sections;
}

describe('configuration of smbd', () => {
  it('keeps to its own folder, to SMB2 and to the wanted addresses', () => {
    const global = read(renderConfig(settings, [])).get('global') as Map<string, string>;
    for (const key of [
      'private dir',
      'lock directory',
      'state directory',
      'cache directory',
      'pid directory',
      'ncalrpc dir',
    ]) {
      assert.ok(global.get(key)?.startsWith('/var/lib/mountkeeper/smb/'), key);
    }
    assert.deepEqual(
      [
        global.get('server min protocol'),
        global.get('server signing'),
        global.get('interfaces'),
        global.get('bind interfaces only'),
        global.get('usershare max shares'),
        global.get('load printers'),
        global.get('follow symlinks'),
      ],
      ['SMB2_10', 'mandatory', '127.0.0.1 eth0', 'yes', '0', 'no', 'no'],
    );
  });

  it('shows a share with its Unicode name, to its users alone', () => {
    const share = read(renderConfig(settings, [photos])).get('照片 Photos') as Map<string, string>;
    assert.deepEqual(
      [
        share.get('path'),
        share.get('read only'),
        share.get('guest ok'),
        share.get('valid users'),
        share.get('vfs objects'),
      ],
      ['/mnt/照片 Photos', 'no', 'no', '"alice", "bob"', 'catia fruit'],
    );
  });

  describe('of a share that names its users', () => {
    const team = (access: ServedShare['access'], changes: Partial<ServerSettings> = {}) =>
      read(
        renderConfig({ ...settings, users: ['Alice', 'bob', 'carol'], ...changes }, [
          { ...photos, name: 'team', access },
        ]),
      ).get('team');

    it('lets them alone in, by the names that the server has, and hides it from others', () => {
      const share = team({ write: ['alice'], read: ['BOB'] });
      assert.deepEqual(
        ['valid users', 'read list', 'read only', 'access based share enum', 'guest ok'].map((key) =>
          share?.get(key),
        ),
        ['"Alice", "bob"', '"bob"', 'no', 'yes', 'no'],
      );
      assert.equal(team(undefined)?.get('access based share enum'), undefined);
    });

    it('is closed to guests, whoever else they let in', () => {
      const share = team({ write: ['alice'], read: [] }, { guest: true });
      assert.deepEqual([share?.get('guest ok'), share?.get('valid users')], ['no', '"Alice"']);
      assert.equal(team({ write: ['nobody'], read: [] }, { guest: true }), undefined);
    });

    it('stands nowhere when none of them is a user of the server', () => {
      assert.equal(team({ write: [], read: [] }), undefined);
      assert.equal(team({ write: ['dora'], read: ['emil'] }), undefined);
    });

    it('writes no name by which smbd would ask this machine, or fill in a variable', () => {
      const odd = [
        '@wheel',
        '+wheel',
        '&wheel',
        '%U',
        '%u',
        '*',
        'root',
        'alice, root',
        '"alice"',
        'a b',
        '',
      ];
      assert.equal(team({ write: odd, read: odd }), undefined);
      const share = team({ write: ['alice', ...odd], read: odd });
      assert.deepEqual([share?.get('valid users'), share?.get('read list')], ['"Alice"', undefined]);
    });
  });

  it('lets nobody in when there is no user, and everybody as a guest only when asked to', () => {
    const shut = read(renderConfig({ ...settings, users: [] }, [photos]));
    assert.deepEqual(
      [
        shut.get('照片 Photos')?.get('valid users'),
        shut.get('global')?.get('map to guest'),
        shut.get('global')?.get('restrict anonymous'),
      ],
      ['"nobody"', 'Never', '2'],
    );
    const open = read(renderConfig({ ...settings, guest: true }, [photos]));
    assert.deepEqual(
      [
        open.get('照片 Photos')?.get('guest ok'),
        open.get('照片 Photos')?.get('valid users'),
        open.get('global')?.get('map to guest'),
      ],
      ['yes', undefined, 'Bad User'],
    );
  });

  it('asks no mount for attributes that none of them keeps', () => {
    const share = read(renderConfig(settings, [photos])).get('照片 Photos') as Map<string, string>;
    assert.deepEqual(
      [
        share.get('fruit:metadata'),
        share.get('readdir_attr:aapl_finder_info'),
        share.get('readdir_attr:aapl_rsize'),
      ],
      ['stream', 'no', 'no'],
    );
  });

  it('refuses writes to a read-only share and does not lend files that others write', () => {
    const share = read(
      renderConfig({ ...settings, hasFruit: false }, [{ ...photos, readOnly: true, isShared: true }]),
    ).get('照片 Photos') as Map<string, string>;
    assert.deepEqual(
      [share.get('read only'), share.get('oplocks'), share.get('vfs objects')],
      ['yes', 'no', undefined],
    );
  });

  it('does not depend on the order in which shares came', () => {
    const other = { ...photos, name: 'team', path: '/mnt/team' };
    assert.equal(renderConfig(settings, [photos, other]), renderConfig(settings, [other, photos]));
  });

  it('takes paths that Samba reads as they are, and no others', () => {
    for (const path of ['/mnt/a b', "/mnt/it's", '/mnt/a;b#c', '/mnt/ü"q"x'])
      assert.equal(pathProblem(path), undefined, path);
    for (const path of ['/mnt/%U', '/mnt/a\nb', '/mnt/a ', '/mnt/a\\'])
      assert.match(pathProblem(path) ?? '', /mount_point/, path);
  });

  it('says that a state folder is too deep for sockets', () => {
    assert.equal(pathsProblem(smbPaths('/var/lib/mountkeeper')), undefined);
    assert.match(pathsProblem(smbPaths(`/${'d'.repeat(90)}`)) ?? '', /too long/);
  });
});

describe('users of smbd', () => {
  it('keep their numbers when others come and go', () => {
    const [before, later] = [userNumbers(['alice', 'bob']), userNumbers(['zoe', 'bob', 'alice', 'carl'])];
    assert.deepEqual([later.get('alice'), later.get('bob')], [before.get('alice'), before.get('bob')]);
    assert.equal(new Set(later.values()).size, 4);
  });

  it('are left out with a reason when their password cannot be one', () => {
    const secrets = {
      resolve: (secret: unknown) =>
        secret === 'missing' ? assert.fail('the secret is not there') : String(secret),
    } as unknown as Secrets;
    const passwords = {
      fine: 'é'.repeat(127),
      long: 'é'.repeat(128),
      empty: '',
      broken: 'a\nb',
      gone: 'missing',
    };
    const known = resolveUsers(
      Object.entries(passwords).map(([name, password]) => ({ name, password })),
      secrets,
    );
    assert.deepEqual([...known.passwords.keys()], ['fine']);
    assert.deepEqual(
      known.problems.map(
        (problem) => /"(\w+)" cannot log in: .*(longer|empty|line break|not there)/.exec(problem)?.[1],
      ),
      ['long', 'empty', 'broken', 'gone'],
    );
  });

  it("stand in a list of their own beside the daemon's user", () => {
    assert.match(
      renderPasswd(['alice'], { uid: 0, gid: 0 }),
      /^root:x:0:0:.*\nnobody:x:65534:65534:.*\nalice:x:1\d{6}:65534:/,
    );
    assert.match(renderPasswd([], { uid: 1000, gid: 100 }), /^mountkeeper:x:1000:100:/m);
    assert.match(renderGroup({ uid: 1000, gid: 100 }), /^mountkeeper:x:100:/m);
  });
});

describe('addresses of smbd', () => {
  const present = {
    lo: [{ address: '127.0.0.1', internal: true }],
    eth0: [
      { address: '192.0.2.5', internal: false },
      { address: 'fe80::1', internal: false },
    ],
  };

  it('are the ones that are there', () => {
    assert.deepEqual(resolveListen(['eth0', '192.0.2.5', '10.9.9.9'], present), {
      interfaces: ['eth0', '192.0.2.5'],
      addresses: ['192.0.2.5'],
      missing: ['10.9.9.9'],
    });
    assert.deepEqual(resolveListen(['0.0.0.0'], present).interfaces, []);
  });

  it('are said to be missing when none is there', () => {
    assert.throws(
      () => resolveListen(['wlan9'], present),
      /wlan9: this machine has no such address or network interface/,
    );
  });
});
