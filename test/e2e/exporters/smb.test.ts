import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { createServer } from 'node:net';
import { once } from 'node:events';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { allProcesses, isAlive } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SLOW_MACHINE } from '../../support/platform/cpu-pressure.ts';
import { until } from '../../support/platform/wait.ts';
import {
  SmbSession,
  exportStatus,
  flagged,
  localFile,
  notices,
  runClient,
  smb,
  sumOf,
} from '../../support/exports/client-programs.ts';

const PHOTOS = '照片 Photos';
const NAMES = ['plain.txt', 'with space & ünïcode 春节.jpg', `long ${'n'.repeat(180)}.raw`];
const USER = 'alice%s3cret Wort';
/** All that a path may hold and a configuration could take for something else. */
const ODD = "odd #1; {x} = $y [z] 'q' & co";

describe('shares over SMB', () => {
  let scratch: Scratch;
  let nas: Nas;
  let frail: Nas;
  let files: Files;
  let daemon: Daemon;
  let port: number;

  const access = () => ({ port, user: USER });
  const lists = async (share: string) => (await smb(share, 'ls', access())).code === 0;
  const smbdPid = async () =>
    (await allProcesses()).find(
      (one) =>
        one.args[0]?.endsWith('smbd') === true &&
        one.command.includes(daemon.stateDir) &&
        one.args.includes('--foreground'),
    )?.pid;
  const sambaPids = async () =>
    (await allProcesses())
      .filter((one) => one.command.includes(`${daemon.stateDir}/smb`))
      .map((one) => one.pid);

  before(async () => {
    scratch = await createScratch('smb');
    nas = await Nas.create(scratch, {
      files: {
        'photos/from nas.bin': 300_000,
        'team/a': 10,
        'archive/old.bin': 1_000,
        'photos/sub/deep.bin': 100,
      },
    });
    frail = await Nas.create(scratch, { name: 'frail', files: { 'data/x.bin': 5_000 } });
    files = new Files(scratch);
    // What lies outside, by way of the NAS's own links.
    await symlink('/etc/passwd', `${nas.dir}/team/link`);
    await symlink('/etc', `${nas.dir}/team/links`);
    port = await freePort();
    await mkdir(scratch.path('out'));
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas'), frail.connection('frail')],
      shares: [
        { name: PHOTOS, connection: 'nas', remote_path: 'photos' },
        { name: 'team', connection: 'nas', remote_path: 'team' },
        {
          name: 'archive',
          connection: 'nas',
          remote_path: 'archive',
          read_only: true,
          mount_point: scratch.path(ODD),
        },
        { name: 'frail', connection: 'frail', remote_path: 'data' },
        { name: 'hidden', connection: 'nas', remote_path: 'team', protocols: ['nfs'] },
      ],
      sections: { smb: { enabled: true, port, users: [{ name: 'alice', password: 's3cret Wort' }] } },
    });
    await daemon.start();
    await daemon.healthy();
    await until('SMB is served', async () => (await exportStatus(daemon)).smbd_running, {
      timeoutMs: 30_000,
    });
    for (const share of [PHOTOS, 'team', 'archive', 'frail'])
      await until(`${share} is shown`, () => lists(share), { timeoutMs: 30_000 });
  });
  after(() => scratch.close());

  it('takes files of every kind and gives them back byte for byte, here, to clients and to the NAS', async () => {
    const sent = new Map<string, string>();
    for (const [index, name] of NAMES.entries()) {
      const { path, sum } = await localFile(scratch, `send-${index}`, [0, 3_000_000, 4_097][index] ?? 0);
      const result = await smb(PHOTOS, `put "${path}" "${name}"`, access());
      assert.equal(result.code, 0, result.output);
      sent.set(name, sum);
      assert.equal(await files.checksum(`${daemon.mountPoint(PHOTOS)}/${name}`), sum);
    }
    await files
      .write(`${daemon.mountPoint(PHOTOS)}/local.bin`, 70_000)
      .then((sum) => sent.set('local.bin', sum));
    sent.set('from nas.bin', await nas.checksum('photos/from nas.bin'));
    for (const [name, sum] of sent) {
      const result = await smb(PHOTOS, `get "${name}" "${scratch.path('out', 'back')}"`, access());
      assert.equal(result.code, 0, result.output);
      assert.equal(await sumOf(scratch.path('out', 'back')), sum, name);
    }
    for (const [name, sum] of sent)
      await until(`the NAS has ${name}`, async () => (await nas.checksum(`photos/${name}`)) === sum, {
        timeoutMs: 30_000,
      });
    await daemon.synced(30_000);
  });

  it('brings files that clients overwrote to the NAS within 15 s', async () => {
    const sums = new Map<string, string>();
    for (const [round, bytes] of [2_000, 40_000].entries()) {
      const puts: string[] = [];
      for (let index = 0; index < 50; index += 1) {
        const { path, sum } = await localFile(scratch, `over-${round}-${index}`, bytes + index);
        puts.push(`put "${path}" "over ${index}.bin"`);
        sums.set(`team/over ${index}.bin`, sum);
      }
      const { code, output } = await smb('team', puts.join('; '), access());
      assert.equal(code, 0, output);
    }
    await until(
      'all are on the NAS',
      async () => {
        for (const [name, sum] of sums)
          if (!(await nas.has(name)) || (await nas.checksum(name)) !== sum) return false;
        return true;
      },
      { timeoutMs: 15_000, everyMs: 300 },
    );
  });

  it('refuses wrong users, guests, and paths outside of the share', async () => {
    assert.match((await smb(PHOTOS, 'ls', { port, user: 'alice%wrong' })).output, /LOGON_FAILURE/);
    assert.match((await smb(PHOTOS, 'ls', { port, user: 'nobody%' })).output, /NT_STATUS_/);
    assert.match((await smb(PHOTOS, 'ls', { port })).output, /ACCESS_DENIED/);
    assert.match((await smb('hidden', 'ls', access())).output, /BAD_NETWORK_NAME/);
    assert.match(
      (await smb('archive', `put "${scratch.path('send-2')}" new`, access())).output,
      /ACCESS_DENIED|MEDIA_WRITE_PROTECTED/,
    );
    assert.match((await smb('archive', 'get old.bin /dev/null', access())).output, /getting file/);
    for (const name of ['Guest', 'root', ''])
      assert.match(
        (await smb(PHOTOS, 'ls', { port, user: `${name}%` })).output,
        /NT_STATUS_(LOGON_FAILURE|ACCESS_DENIED)/,
        name,
      );
    for (const way of ['../../../../etc/passwd', '..\\..\\etc\\passwd', 'link', 'links/passwd'])
      assert.match(
        (await smb('team', `get ${way} "${scratch.path('stolen')}"`, access())).output,
        /NT_STATUS_/,
        way,
      );
    assert.match(
      (await smb('team', `symlink /etc/passwd made-link; rename made-link x; rm x`, access())).output,
      /NT_STATUS_|not supported|command not found|doesn't support/i,
    );
    for (const order of ['rm old.bin', 'mkdir new', 'rename old.bin new.bin', 'setmode old.bin +r'])
      assert.match((await smb('archive', order, access())).output, /NT_STATUS_/, order);
    assert.equal(await nas.has('archive/old.bin'), true);
    assert.match(
      (await smb(PHOTOS, `put "${scratch.path('send-2')}" .DS_Store`, access())).output,
      /NT_STATUS_/,
    );
  });

  it('keeps the metadata files of macOS and Windows off the NAS', async () => {
    await nas.put('team/folder/._leftover', 10);
    await nas.put('team/folder/.DS_Store', 10);
    await nas.put('team/plain.bin', 500);
    const sum = await nas.checksum('team/plain.bin');
    await until(
      'the folder shows',
      async () =>
        (await daemon.request('POST', '/api/refresh/team')).status === 200 &&
        (await smb('team', 'ls', access())).output.includes('folder'),
      { timeoutMs: 20_000, everyMs: 300 },
    );
    assert.doesNotMatch((await smb('team', 'cd folder; ls', access())).output, /leftover|DS_Store/);
    for (const name of ['._plain.bin', '.DS_Store', 'plain.bin:com.apple.label', 'plain.bin:Zone.Identifier'])
      assert.match(
        (await smb('team', `put "${scratch.path('send-2')}" "${name}"`, access())).output,
        /NT_STATUS_/,
        name,
      );
    assert.equal(
      (await smb('team', `put "${scratch.path('send-2')}" "Shot 10\u{F022}45.jpg"`, access())).code,
      0,
    );
    assert.equal((await smb('team', 'rmdir folder', access())).code, 0);
    await until('the NAS has the name with its colon', () => nas.has('team/Shot 10:45.jpg'), {
      timeoutMs: 30_000,
    });
    await until('the NAS has lost the folder', async () => !(await nas.has('team/folder')), {
      timeoutMs: 20_000,
    });
    assert.equal(await nas.checksum('team/plain.bin'), sum);
    assert.equal((await nas.has('team/._plain.bin')) || (await nas.has('team/.DS_Store')), false);
  });

  it('goes on in the same session when a mount is killed, and writes nothing to the local disk', async () => {
    const session = new SmbSession(PHOTOS, access(), scratch);
    const other = new SmbSession('team', access(), scratch);
    assert.match(await session.run('ls'), /from nas\.bin/);
    assert.match(await other.run('ls'), /\ba\b/);
    const killed = performance.now();
    process.kill(await daemon.rclonePid(PHOTOS), 'SIGKILL');
    await until(
      'the session lists again',
      async () => {
        await session.run(`tcon "${PHOTOS}"`);
        return (await session.run('ls')).includes('from nas.bin');
      },
      { timeoutMs: 20_000, everyMs: 100 },
    );
    const ms = performance.now() - killed;
    assert.ok(ms < 3_000 * SLOW_MACHINE, `back after ${Math.round(ms)} ms`);
    assert.match(await session.run(`put "${scratch.path('send-1')}" again.bin`), /putting file/);
    assert.match(await other.run('ls'), /\ba\b/);
    assert.ok(other.isOpen);
    const sum = await sumOf(scratch.path('send-1'));
    await until('the NAS has it', async () => (await nas.checksum('photos/again.bin')) === sum, {
      timeoutMs: 30_000,
    });
  });

  it('keeps the session of a share whose NAS is gone, fails in it alone, and goes on when it is back', async () => {
    const other = new SmbSession(PHOTOS, access(), scratch);
    const held = new SmbSession('frail', access(), scratch);
    assert.match(await held.run('ls'), /x\.bin/);
    await frail.stop();
    process.kill(await daemon.rclonePid('frail'), 'SIGKILL');
    // Nobody can tell what is on the NAS: nothing of it is shown as missing, and nothing is written beside it. smbd
    // shows what it cannot read as empty, so it may not show the share.
    await until('the folder is not listed', async () => /NT_STATUS_/.test(await held.run('ls')), {
      timeoutMs: 20_000,
    });
    assert.match(await held.run(`put "${scratch.path('send-2')}" lost.bin`), /NT_STATUS_/);
    assert.match(await other.run('ls'), /from nas\.bin/);
    await until(
      'the share says why',
      async () => /does not answer/.test((await daemon.share('frail')).health_message ?? ''),
      { timeoutMs: 30_000 },
    );
    await flagged(daemon, { smbd_running: true });
    await frail.start();
    await until(
      'the session lists again',
      async () => {
        await held.run('tcon frail');
        return /x\.bin/.test(await held.run('ls'));
      },
      { timeoutMs: 60_000 },
    );
    assert.match(await held.run(`put "${scratch.path('send-2')}" kept.bin`), /putting file/);
    await until('it is on the NAS', () => frail.has('data/kept.bin'), { timeoutMs: 30_000 });
    assert.equal(await frail.has('data/lost.bin'), false);
    assert.match(await other.run('ls'), /from nas\.bin/);
  });

  it('takes a share that cannot be mounted off the server, and shows it once it can', async () => {
    // It has just come back.
    await until('the share is shown', () => lists('frail'), { timeoutMs: 30_000 });
    const held = new SmbSession('frail', access(), scratch);
    const other = new SmbSession(PHOTOS, access(), scratch);
    for (const session of [held, other]) assert.match(await session.run('ls'), /\.bin/);
    const nowhere = daemon.traits.shares.map((share) =>
      share.name === 'frail' ? { ...share, remote_path: 'not there' } : share,
    );
    await daemon.submit(daemon.text({ shares: nowhere }));
    await until('the share has failed', async () => (await daemon.share('frail')).health === 'failed', {
      timeoutMs: 60_000,
    });
    await until(
      'the share is off the server',
      async () => /BAD_NETWORK_NAME/.test((await smb('frail', 'ls', access())).output),
      { timeoutMs: 20_000 },
    );
    assert.match(await held.run(`put "${scratch.path('send-2')}" lost.bin`), /NT_STATUS_/);
    await assert.rejects(writeFile(`${daemon.mountPoint('frail')}/lost.bin`, 'x'));
    assert.match(await other.run('ls'), /from nas\.bin/);
    await flagged(daemon, { smbd_running: true });
    await daemon.submit(daemon.text());
    await until('the share is back', () => lists('frail'), { timeoutMs: 30_000 });
    assert.match(await other.run('ls'), /from nas\.bin/);
  });

  it('serves again within 3 s of a kill -9 and leaves no stray process', async () => {
    // Who asks for the list of shares starts a helper that lives in a session of its own.
    assert.match(
      (await runClient('smbclient', ['-L', '127.0.0.1', '-p', String(port), '-U', USER, '-m', 'SMB3']))
        .output,
      /team/,
    );
    assert.ok(
      (await allProcesses()).some(
        (one) => one.command.includes('samba-dcerpcd') && one.command.includes(daemon.stateDir),
      ),
    );
    const before = await sambaPids();
    const pid = await smbdPid();
    assert.ok(pid !== undefined);
    process.kill(pid, 'SIGKILL');
    const killed = performance.now();
    await until('it serves again', () => lists(PHOTOS), { timeoutMs: 30_000 });
    assert.ok(
      performance.now() - killed < 3_000 * SLOW_MACHINE,
      `back after ${Math.round(performance.now() - killed)} ms`,
    );
    await until('the old processes are gone', () => before.every((one) => !isAlive(one)), {
      timeoutMs: 20_000,
    });
  });

  it('is adopted with its sessions by the next daemon', async () => {
    const session = new SmbSession(PHOTOS, access(), scratch);
    assert.match(await session.run('ls'), /from nas\.bin/);
    const pid = await smbdPid();
    await daemon.end();
    assert.match(await session.run('ls'), /from nas\.bin/);
    await daemon.start();
    await until('it says that SMB is served', async () => (await exportStatus(daemon)).smbd_running, {
      timeoutMs: 20_000,
    });
    assert.match(await session.run(`put "${scratch.path('send-2')}" adopted.bin`), /putting file/);
    assert.equal(await smbdPid(), pid);
  });

  it('changes users and port on the fly, says when the port is taken, and is off when switched off', async () => {
    const taken = createServer();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
    scratch.defer(() => taken.close());
    const busy = (taken.address() as { port: number }).port;
    const session = new SmbSession(PHOTOS, access(), scratch);
    assert.match(await session.run('ls'), /from nas\.bin/);
    const users = [
      { name: 'alice', password: 'other' },
      { name: 'carol', password: 'päss wörd' },
    ];
    assert.equal((await daemon.submit(daemon.text({ sections: { smb: { users } } }))).body.ok, true);
    await until(
      'the new user is let in',
      async () => (await smb(PHOTOS, 'ls', { port, user: 'carol%päss wörd' })).code === 0,
      { timeoutMs: 20_000 },
    );
    assert.match((await smb(PHOTOS, 'ls', access())).output, /LOGON_FAILURE/);
    assert.match(await session.run('ls'), /from nas\.bin/);
    await daemon.submit(daemon.text({ sections: { smb: { users, port: busy } } }));
    await until(
      'it says that the port is taken',
      async () => /port \d+ on 127\.0\.0\.1 is taken/.test(await notices(daemon)),
      { timeoutMs: 20_000 },
    );
    await flagged(daemon, { smbd_running: false });
    assert.equal((await daemon.share(PHOTOS)).mounted, true);
    taken.close();
    await until(
      'it serves on the port that became free',
      async () => (await smb(PHOTOS, 'ls', { port: busy, user: 'alice%other' })).code === 0,
      { timeoutMs: 30_000 },
    );
    await daemon.submit(daemon.text({ sections: { smb: { users, port: busy, guest: true } } }));
    await until(
      'guests are let in',
      async () => (await smb(PHOTOS, `put "${scratch.path('send-2')}" guest.bin`, { port: busy })).code === 0,
      { timeoutMs: 20_000 },
    );
    await daemon.submit(daemon.text({ sections: { smb: { enabled: false } } }));
    await until('nothing of the server is left', async () => (await sambaPids()).length === 0, {
      timeoutMs: 20_000,
    });
    await flagged(daemon, { smbd_running: false });
    assert.equal((await daemon.stop()).code, 0);
  });
});
