/** Who may come in over SMB and who no more, and names that one side knows and the other does not. */
import assert from 'node:assert/strict';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { torture } from '../../support/exports/smbtorture.ts';
import {
  SmbSession,
  exportStatus,
  localFile,
  notices,
  runClient,
  smb,
  sumOf,
} from '../../support/exports/client-programs.ts';

/** Quotes, signs of shells and of Samba's own variables, another script, spaces at both ends. */
const ODD = ' "q" \\ %U $HOME `x` \'y\'; #é 春 & ';
const FILES = {
  'plain.bin': 5_000,
  'a:b.txt': 101,
  'ends with a dot.': 102,
  'ends with a space ': 103,
  'q?*<>|".txt': 104,
  'back\\slash': 105,
  'File.txt': 106,
  'file.txt': 107,
  CON: 108,
};
/** Programs take it for an option. */
const DASHED = '-team';
const USERS = [
  { name: 'alice', password: 'pw' },
  { name: 'Carol.X', password: ODD },
  { name: '12345', password: 'number' },
  { name: 'long', password: 'x'.repeat(300) },
];

describe('users and names over SMB', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let port: number;
  let nfsPort: number;

  const lists = async (user: string) => (await smb('team', 'ls', { port, user })).output;
  const submit = async (users: typeof USERS, guest = false) =>
    assert.equal((await daemon.submit(daemon.text({ sections: { smb: { users, guest } } }))).body.ok, true);

  /** Samba's own, which fails after a while as long as the file beside it is there. */
  const brokenTool = async (): Promise<string> => {
    await mkdir(scratch.path('bin'));
    await writeFile(
      scratch.path('bin', 'smbpasswd'),
      '#!/bin/sh\n[ -e "$0.broken" ] && sleep 2 && exit 1\nexec /usr/bin/smbpasswd "$@"\n',
      { mode: 0o755 },
    );
    return `${scratch.path('bin')}:${process.env['PATH']}`;
  };

  before(async () => {
    scratch = await createScratch('smb-users');
    nas = await Nas.create(scratch, {
      files: Object.fromEntries(Object.entries(FILES).map(([name, bytes]) => [`team/${name}`, bytes])),
    });
    [port, nfsPort] = [await freePort(), await freePort()];
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [
        { name: 'team', connection: 'nas', remote_path: 'team' },
        { name: DASHED, connection: 'nas', remote_path: 'team' },
      ],
      sections: { smb: { enabled: true, port, users: USERS } },
      env: { PATH: await brokenTool() },
    });
    await daemon.start();
    await daemon.healthy();
    await until('the share is shown', async () => (await lists('alice%pw')).includes('plain.bin'), {
      timeoutMs: 30_000,
    });
  });
  after(() => scratch.close());

  it('lets users in by any name and password that SMB can carry, and says who cannot come in', async () => {
    for (const user of [`Carol.X%${ODD}`, `carol.x%${ODD}`, '12345%number'])
      assert.match(await lists(user), /plain\.bin/, user);
    for (const user of [
      `Carol.X%${ODD.trim()}`,
      '12345%Number',
      `long%${'x'.repeat(300)}`,
      `long%${'x'.repeat(254)}`,
    ])
      assert.match(await lists(user), /LOGON_FAILURE/, user);
    await until(
      'it says who cannot',
      async () =>
        /the SMB user \\"long\\" cannot log in: the password is longer than 254 bytes/.test(
          await notices(daemon),
        ),
      { timeoutMs: 20_000 },
    );
    await until('the server is up for the others', async () => (await exportStatus(daemon)).smbd_running, {
      timeoutMs: 20_000,
    });
  });

  it("ends a removed user's open sessions at once, and nobody else's", async () => {
    const [leaves, stays] = [
      new SmbSession('team', { port, user: '12345%number' }, scratch),
      new SmbSession('team', { port, user: 'alice%pw' }, scratch),
    ];
    assert.match(await leaves.run('ls'), /plain\.bin/);
    assert.match(await stays.run('ls'), /plain\.bin/);
    await submit(USERS.slice(0, 2));
    await until(
      'the open session is refused',
      async () => !leaves.isOpen || /NT_STATUS_/.test(await leaves.run('ls')),
      { timeoutMs: 20_000 },
    );
    await leaves.run('tcon team');
    assert.match(leaves.isOpen ? await leaves.run('ls') : 'NT_STATUS_', /NT_STATUS_/);
    assert.match(await lists('12345%number'), /LOGON_FAILURE/);
    assert.match(await stays.run('ls'), /plain\.bin/);
    await submit([...USERS.slice(0, 2), { name: '12345', password: 'other' }]);
    await until(
      'one of that name is let in again',
      async () => /plain\.bin/.test(await lists('12345%other')),
      { timeoutMs: 20_000 },
    );
    assert.match(await lists('12345%number'), /LOGON_FAILURE/);
    assert.match(await stays.run('ls'), /plain\.bin/);
  });

  it("ends guests' open sessions when guests are no longer allowed", async () => {
    await submit(USERS.slice(0, 1), true);
    await until('guests are let in', async () => (await smb('team', 'ls', { port })).code === 0, {
      timeoutMs: 20_000,
    });
    const [guest, stays] = [
      new SmbSession('team', { port, user: 'stranger%' }, scratch),
      new SmbSession('team', { port, user: 'alice%pw' }, scratch),
    ];
    assert.match(await guest.run('ls'), /plain\.bin/);
    assert.match(await stays.run('ls'), /plain\.bin/);
    await submit(USERS.slice(0, 1));
    await until(
      'the guest is refused',
      async () => !guest.isOpen || /NT_STATUS_/.test(await guest.run('ls')),
      { timeoutMs: 20_000 },
    );
    assert.match(await stays.run('ls'), /plain\.bin/);
  });

  it('ends them also where the daemon was killed before it had', async () => {
    const alice = USERS.slice(0, 1);
    await submit(alice, true);
    await until('guests are let in', async () => (await smb('team', 'ls', { port })).code === 0, {
      timeoutMs: 20_000,
    });
    const guest = new SmbSession('team', { port, user: 'stranger%' }, scratch);
    assert.match(await guest.run('ls'), /plain\.bin/);
    await daemon.stop('SIGKILL');
    // All that it had done of the change.
    const file = join(daemon.stateDir, 'smb', 'smb.conf');
    const text = await readFile(file, 'utf8');
    assert.match(text, /Bad User/);
    await writeFile(file, text.replace('Bad User', 'Never'));
    await daemon.writeConfig(daemon.text({ sections: { smb: { users: alice, guest: false } } }));
    await daemon.start();
    await until(
      'the guest is refused',
      async () => !guest.isOpen || /NT_STATUS_/.test(await guest.run('ls')),
      { timeoutMs: 20_000 },
    );
    await until('alice is let in', async () => /plain\.bin/.test(await lists('alice%pw')), {
      timeoutMs: 30_000,
    });
  });

  it('sets a password that could not be set as soon as it can, and throws its user out before, too', async () => {
    const [alice] = USERS.slice(0, 1);
    const dora = (password: string) => submit([...(alice ? [alice] : []), { name: 'dora', password }]);
    const broken = scratch.path('bin', 'smbpasswd.broken');
    await dora('first');
    await until('she is let in', async () => /plain\.bin/.test(await lists('dora%first')), {
      timeoutMs: 20_000,
    });
    const session = new SmbSession('team', { port, user: 'dora%first' }, scratch);
    assert.match(await session.run('ls'), /plain\.bin/);
    await writeFile(broken, '');
    await dora('second');
    await until(
      'it says so',
      async () => /dora\\" cannot log in: smbpasswd failed/.test(await notices(daemon)),
      {
        timeoutMs: 20_000,
      },
    );
    assert.match(await session.run('ls'), /plain\.bin/);
    // As long as it takes to try again.
    for (const end = performance.now() + 14_000; performance.now() < end;)
      assert.match(await lists('dora%first'), /ACCESS_DENIED/, 'her former one lets her in nowhere');
    await rm(broken);
    await until('her new password is right', async () => /plain\.bin/.test(await lists('dora%second')), {
      timeoutMs: 20_000,
    });
    assert.match(await lists('dora%first'), /LOGON_FAILURE/);
    await writeFile(broken, '');
    await dora('third');
    await until(
      'it says so again',
      async () => /dora\\" cannot log in: smbpasswd failed/.test(await notices(daemon)),
      {
        timeoutMs: 20_000,
      },
    );
    await submit(USERS.slice(0, 1));
    await until(
      'her session is ended',
      async () => !session.isOpen || /NT_STATUS_/.test(await session.run('ls')),
      { timeoutMs: 20_000 },
    );
    await rm(broken);
  });

  it('lets in nobody by the former password of the only user either, and says so', async () => {
    const broken = scratch.path('bin', 'smbpasswd.broken');
    await writeFile(broken, '');
    await submit([{ name: 'alice', password: 'next' }]);
    await until(
      'it says so',
      async () => /alice\\" cannot log in: smbpasswd failed/.test(await notices(daemon)),
      { timeoutMs: 20_000 },
    );
    assert.match(await lists('alice%pw'), /ACCESS_DENIED/);
    assert.equal((await exportStatus(daemon)).smbd_running, false);
    await rm(broken);
    await until('her new one is right', async () => /plain\.bin/.test(await lists('alice%next')), {
      timeoutMs: 20_000,
    });
    await submit(USERS.slice(0, 1));
    await until('she has the first again', async () => /plain\.bin/.test(await lists('alice%pw')), {
      timeoutMs: 20_000,
    });
  });

  it('takes a new password in a file without being told, and the former one is wrong then', async () => {
    const file = scratch.path('password of emil');
    await writeFile(file, 'one\n');
    // Only whoever may write the configuration may name files.
    const users = [...USERS.slice(0, 1), { name: 'emil', password: { file } }];
    await daemon.writeConfig(daemon.text({ sections: { smb: { users } } }));
    await until('he is let in', async () => /plain\.bin/.test(await lists('emil%one')), {
      timeoutMs: 20_000,
    });
    await writeFile(file, 'two\n');
    await until('his new one is right', async () => /plain\.bin/.test(await lists('emil%two')), {
      timeoutMs: 20_000,
    });
    assert.match(await lists('emil%one'), /LOGON_FAILURE/);
    const session = new SmbSession('team', { port, user: 'emil%two' }, scratch);
    assert.match(await session.run('ls'), /plain\.bin/);
    await rm(file);
    // Four looks, of which two would have been enough.
    for (const end = performance.now() + 12_000; performance.now() < end;)
      assert.match(await lists('emil%two'), /plain\.bin/, 'a file that is away throws nobody out');
    assert.match(await session.run('ls'), /plain\.bin/);
    await submit(USERS.slice(0, 1));
  });

  it('keeps a share of others out of the list, and tells who asks for it that it is closed', async () => {
    const users = USERS.slice(0, 2);
    const shares = [
      { name: 'team', connection: 'nas', remote_path: 'team' },
      { name: DASHED, connection: 'nas', remote_path: 'team' },
      { name: 'boss', connection: 'nas', remote_path: 'team', users: ['Carol.X'] },
    ];
    await daemon.submit(daemon.text({ shares, sections: { smb: { users } } }));
    const enters = async (share: string, user: string) => (await smb(share, 'ls', { port, user })).output;
    await until('it is shown', async () => /plain\.bin/.test(await enters('boss', `Carol.X%${ODD}`)), {
      timeoutMs: 30_000,
    });
    assert.match(await enters('boss', 'alice%pw'), /ACCESS_DENIED/);
    assert.match(await enters('bose', 'alice%pw'), /BAD_NETWORK_NAME/);
    const list = ['-L', '//127.0.0.1', '-p', String(port), '-U', 'alice%pw', '-g'];
    const { output } = await runClient('smbclient', list);
    assert.match(output, /Disk\|team\|/);
    assert.doesNotMatch(output, /boss/);
    await submit(USERS.slice(0, 1));
  });

  it('is closed to everybody in it when it goes, whatever it is called', async () => {
    const session = new SmbSession(DASHED, { port, user: 'alice%pw' }, scratch);
    assert.match(await session.run('ls'), /plain\.bin/);
    const left = daemon.text({
      shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
      sections: { smb: { users: USERS.slice(0, 1) } },
    });
    const { body } = await daemon.submit(left);
    assert.deepEqual([body.ok, body.still_open], [true, undefined]);
    assert.match(session.isOpen ? await session.run('ls') : 'NT_STATUS_', /NT_STATUS_/);
    await submit(USERS.slice(0, 1));
  });

  it('shows every name of the NAS under one by which a client can read it', async () => {
    const listing = (await smb('team', 'ls', { port, user: 'alice%pw' })).output;
    const shown = [...listing.matchAll(/^ {2}(\S.*?)\s+[A-Z]*\s+(\d+) {2}\S/gm)].filter(
      ([, , size]) => Number(size) > 100 && Number(size) < 200,
    );
    assert.deepEqual(
      new Set(shown.map(([, , size]) => Number(size))),
      new Set([101, 102, 103, 104, 105, 106, 107, 108]),
      listing,
    );
    for (const [, name = '', size] of shown) {
      const result = await smb('team', `get "${name}" "${scratch.path('got')}"`, { port, user: 'alice%pw' });
      assert.equal(result.code, 0, `${name} ${result.output}`);
      const sums = [...(await nas.checksums('team'))].map(([, sum]) => sum);
      assert.ok(sums.includes(await sumOf(scratch.path('got'))), `${name} of ${size} bytes`);
    }
  });

  it('gives no oplocks while another protocol may write the files, and gives them again after', async () => {
    const lends = async () =>
      (await torture(['smb2.oplock.exclusive1'], { share: 'team', port, user: 'alice%pw' }, 20_000)).get(
        'smb2.oplock.exclusive1',
      ) === 'success';
    const nfs = async (enabled: boolean) =>
      assert.equal(
        (
          await daemon.submit(
            daemon.text({
              sections: {
                smb: { users: USERS.slice(0, 1) },
                nfs: { enabled, port: nfsPort, allowed_clients: ['127.0.0.1'] },
              },
            }),
          )
        ).body.ok,
        true,
      );
    assert.equal(await lends(), true);
    const session = new SmbSession('team', { port, user: 'alice%pw' }, scratch);
    assert.match(await session.run('ls'), /plain\.bin/);
    await nfs(true);
    await until(
      'who holds files by then is cut off',
      async () => !session.isOpen || /NT_STATUS_/.test(await session.run('ls')),
      { timeoutMs: 20_000 },
    );
    assert.equal(await lends(), false);
    await nfs(false);
    await until('files are lent again', lends, { timeoutMs: 20_000 });
  });

  it('never lets a client make, rename to or reach a name that is kept off the NAS', async () => {
    const { path } = await localFile(scratch, 'sent', 50);
    for (const order of [
      'rename plain.bin ._plain.bin',
      'rename plain.bin .DS_Store',
      'mkdir ._folder',
      `put "${path}" "plain.bin:AFP_AfpInfo"`,
      `put "${path}" "plain.bin:x:$DATA"`,
      `put "${path}" "._plain.bin"`,
    ]) {
      assert.match(
        (await smb('team', order, { port, user: 'alice%pw' })).output,
        /NT_STATUS_(OBJECT_|ACCESS_DENIED)/,
        order,
      );
    }
    // Also what the test before wrote and removed.
    await daemon.synced(30_000);
    assert.deepEqual([...(await nas.checksums('team')).keys()].sort(), Object.keys(FILES).sort());
  });
});
