/** The password of the configuration is the one that enters: no SMB user changes it, and what others set is mended. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { SmbSession, notices, runClient, smb } from '../../support/exports/client-programs.ts';

const FORMER = 'Documented-1';
const OWN = 'Of-his-own-1';

describe('passwords of SMB users', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let port: number;

  const lists = async (password: string, user = 'bob') =>
    (await smb('team', 'ls', { port, user: `${user}%${password}` })).output;
  const submit = async (users: readonly { readonly name: string; readonly password: string }[]) =>
    assert.equal((await daemon.submit(daemon.text({ sections: { smb: { users } } }))).body.ok, true);
  const told = (text: RegExp) =>
    until(`notices tell ${text}`, async () => text.test(await notices(daemon)), { timeoutMs: 30_000 });
  const enters = async (password: string): Promise<boolean> => {
    const output = await lists(password);
    if (!output.includes('plain.bin')) assert.match(output, /LOGON_FAILURE/);
    return output.includes('plain.bin');
  };
  const rpc = async (password: string, command: string): Promise<string> => {
    const args = ['-p', String(port), '-U', `bob%${password}`, '127.0.0.1', '-c', command];
    return (await runClient('rpcclient', args)).output;
  };
  /** As root at a terminal, past the daemon. */
  const pdbedit = (...args: readonly string[]) =>
    promisify(execFile)('pdbedit', ['-s', join(daemon.stateDir, 'smb', 'smb.conf'), ...args], {
      env: {
        PATH: process.env['PATH'],
        LD_PRELOAD: 'libnss_wrapper.so',
        NSS_WRAPPER_PASSWD: join(daemon.stateDir, 'smb', 'nss_passwd'),
        NSS_WRAPPER_GROUP: join(daemon.stateDir, 'smb', 'nss_group'),
      },
    });
  /** As a daemon without this rule let everybody do. */
  const changeHisOwn = async (from: string): Promise<void> => {
    await pdbedit('-P', 'minimum password age', '-C', '0');
    const said = await rpc(from, `chgpasswd2 bob ${from} ${OWN}`);
    assert.equal(await enters(OWN), true, said);
    assert.equal(await enters(from), false);
  };

  before(async () => {
    scratch = await createScratch('smb-passwords');
    const nas = await Nas.create(scratch, { files: { 'team/plain.bin': 5_000 } });
    port = await freePort();
    await mkdir(scratch.path('bin'));
    // Samba's own, which fails as long as the file beside it is there.
    await writeFile(
      scratch.path('bin', 'pdbedit'),
      '#!/bin/sh\n[ -e "$0.broken" ] && echo "no space left" >&2 && exit 1\nexec /usr/bin/pdbedit "$@"\n',
      { mode: 0o755 },
    );
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'team', connection: 'nas', remote_path: 'team' }],
      sections: { smb: { enabled: true, port, users: [{ name: 'bob', password: FORMER }] } },
      env: { PATH: `${scratch.path('bin')}:${process.env['PATH'] ?? ''}` },
    });
    await daemon.start();
    await daemon.healthy();
    await until('the share is shown', async () => (await lists(FORMER)).includes('plain.bin'), {
      timeoutMs: 30_000,
    });
  });
  after(() => scratch.close());

  it('and their names are told to those alone who have logged in', async () => {
    assert.match(await rpc(FORMER, 'enumdomusers'), /user:\[bob\]/);
    assert.match(await rpc(OWN, 'enumdomusers'), /LOGON_FAILURE/);
    const anonymous = ['-p', String(port), '-N', '-U', '%', '127.0.0.1', '-c', 'enumdomusers'];
    const { output } = await runClient('rpcclient', anonymous);
    assert.match(output, /NT_STATUS_/);
    assert.doesNotMatch(output, /bob/);
  });

  it('are changed by no call of theirs', async () => {
    const levels = [18, 21, 23, 24, 25, 26];
    for (const [call, told] of [
      [`chgpasswd2 bob ${FORMER} ${OWN}`, /ACCOUNT_RESTRICTION/],
      [`chgpasswd3 bob ${FORMER} ${OWN}`, /ACCOUNT_RESTRICTION/],
      [`chgpasswd4 bob ${FORMER} ${OWN}`, /NT_STATUS_/],
      [`chgpasswd bob ${FORMER} ${OWN}`, /NT_STATUS_/],
      ...levels.map((level) => [`setuserinfo bob ${level} ${OWN}`, /NT_STATUS_/] as const),
      ...levels.map((level) => [`setuserinfo2 bob ${level} ${OWN}`, /NT_STATUS_/] as const),
    ] as const) {
      const said = await rpc(FORMER, call);
      assert.match(said, told, call);
      assert.equal(await enters(FORMER), true, call);
      assert.equal(await enters(OWN), false, call);
    }
  });

  it('that one has changed all the same are set anew at the next start, and the log says so', async () => {
    await changeHisOwn(FORMER);
    await daemon.stop();
    await daemon.start();
    await until('the documented one enters', () => enters(FORMER), { timeoutMs: 30_000 });
    assert.equal(await enters(OWN), false);
    assert.match(await daemon.log(), /an SMB user's password was changed past the configuration/);
    assert.match(await rpc(FORMER, `chgpasswd2 bob ${FORMER} ${OWN}`), /ACCOUNT_RESTRICTION/);
  });

  it('that one has changed below a former version are set anew by this one', async () => {
    await changeHisOwn(FORMER);
    await daemon.stop('SIGKILL');
    const note = join(daemon.stateDir, 'smb', 'users.json');
    const { salt, marks } = JSON.parse(await readFile(note, 'utf8')) as Record<string, unknown>;
    await writeFile(note, JSON.stringify({ salt, marks }));
    await daemon.start();
    await until('the documented one enters', () => enters(FORMER), { timeoutMs: 30_000 });
    assert.equal(await enters(OWN), false);
  });

  it('are changed in the configuration, as ever', async () => {
    await submit([{ name: 'bob', password: 'Documented-2' }]);
    await until('the new one enters', () => enters('Documented-2'), { timeoutMs: 20_000 });
    assert.equal(await enters(FORMER), false);
  });

  it('that were set enter while nobody can look at the database; others and removed users do not', async () => {
    const broken = scratch.path('bin', 'pdbedit.broken');
    await submit([
      { name: 'bob', password: 'Documented-2' },
      { name: 'cleo', password: 'Of-cleo-1' },
      { name: 'dan', password: 'Of-dan-1' },
    ]);
    const letsIn = (user: string, password: string) =>
      until(`${user} enters`, async () => (await lists(password, user)).includes('plain.bin'), {
        timeoutMs: 30_000,
      });
    await letsIn('cleo', 'Of-cleo-1');
    await daemon.stop();
    await writeFile(broken, '');
    await daemon.start();
    await letsIn('cleo', 'Of-cleo-1');
    await told(
      /nobody can look whether .* were changed past the configuration: pdbedit failed: no space left/,
    );

    const session = new SmbSession('team', { port, user: 'cleo%Of-cleo-1' }, scratch);
    assert.match(await session.run('ls'), /plain\.bin/);
    await submit([
      { name: 'bob', password: 'Documented-3' },
      { name: 'dan', password: 'Of-dan-1' },
    ]);
    await told(/bob\\" cannot log in: pdbedit failed: no space left/);
    await until(
      'her session is ended',
      async () => !session.isOpen || /NT_STATUS_/.test(await session.run('ls')),
      {
        timeoutMs: 20_000,
      },
    );
    assert.match(await lists('Of-cleo-1', 'cleo'), /LOGON_FAILURE/);
    assert.match(await lists('Documented-2'), /ACCESS_DENIED/, 'his former one lets him in nowhere');
    await letsIn('dan', 'Of-dan-1');

    await rm(broken);
    await until('the new one enters', async () => (await lists('Documented-3')).includes('plain.bin'), {
      timeoutMs: 30_000,
    });
    assert.match(await lists('Documented-2'), /LOGON_FAILURE/);
    await until('nothing is said of it', async () => !/nobody can look|bob/.test(await notices(daemon)), {
      timeoutMs: 20_000,
    });
  });
});
