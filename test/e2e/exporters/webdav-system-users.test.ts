/** Users of the machine over WebDAV: real accounts, asked about by the real PAM, and curl. */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { unlessRoot } from '../../runner/skips.ts';
import { Daemon, MAIN } from '../../support/daemon/daemon.ts';
import { exportStatus, notices } from '../../support/exports/client-programs.ts';
import { SystemAccounts } from '../../support/exports/system-accounts.ts';
import type { Account } from '../../support/exports/system-accounts.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const run = promisify(execFile);
const GROUP = 'share people';
const PASSWORD = 'pa: ss wörd';
const person = (name: string, uid: number): Account => ({ name, uid, password: PASSWORD });
const NORA = person('nora', 4_711);
const OTTO = person('otto', 4_712);
const PETE = person('pete', 4_713);
const ROOT = person('root', 0);
const SERVICE = person('service', 500);
const FORMER: Account = { ...person('former', 4_714), expires: '19000' };
/** Has another password in the configuration. */
const ALICE = person('alice', 4_715);
const ALL = [NORA, OTTO, PETE, ROOT, SERVICE, FORMER, ALICE];
const MEMBERS = ['nora', 'otto', 'root', 'service', 'former', 'alice'];
/** The daemon looks every 5 s, and a right answer counts for 30 s. */
const REMOVED = { timeoutMs: 20_000, everyMs: 500 };
const LOCKED = { timeoutMs: 50_000, everyMs: 1_000 };

describe('users of the machine over WebDAV', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let accounts: SystemAccounts;
  let daemon: Daemon;
  let port: number;

  const url = (path: string): string => `http://127.0.0.1:${port}/${path}`;
  const status = async (user: string, path = 'open/a.bin', password = PASSWORD): Promise<string> => {
    const args = ['-sS', '-o', '/dev/null', '-w', '%{http_code}', '-u', `${user}:${password}`, url(path)];
    return (await run('curl', args, { timeout: 60_000 })).stdout;
  };
  const served = (): Promise<unknown> =>
    until('WebDAV is served', async () => (await exportStatus(daemon)).webdav_running, { timeoutMs: 30_000 });

  before(async () => {
    scratch = await createScratch('webdav-system-users');
    const nas = await Nas.create(scratch, { files: { 'open/a.bin': 20_000_000, 'team/a.bin': 1_000 } });
    accounts = await SystemAccounts.create(scratch);
    await accounts.set(ALL, { [GROUP]: MEMBERS });
    port = await freePort();
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [
        { name: 'open', connection: 'nas', remote_path: 'open' },
        { name: 'team', connection: 'nas', remote_path: 'team', users: ['nora'] },
      ],
      sections: {
        webdav: {
          enabled: true,
          port,
          system_group: GROUP,
          users: [{ name: 'alice', password: 'wonder' }],
        },
      },
      program: accounts.machine([process.execPath, MAIN]),
    });
    await daemon.start();
    await daemon.healthy();
    await served();
  });
  after(() => scratch.close());

  it('come in by their own password, to what they may enter', async () => {
    assert.deepEqual(
      [await status('nora'), await status('nora', 'team/a.bin'), await status('otto')],
      ['200', '200', '200'],
    );
    assert.equal(await status('otto', 'team/a.bin'), '404');
  });

  it('are refused with a wrong one, as late as anybody else', async () => {
    const times = new Map<string, number>();
    for (const [user, password] of [
      ['nora', 'wrong'],
      ['nobody-here', 'wrong'],
      ['former', PASSWORD],
    ] as const) {
      const begun = Date.now();
      assert.equal(await status(user, 'open/a.bin', password), '401', user);
      times.set(user, Date.now() - begun);
    }
    for (const [user, took] of times) assert.ok(took >= 3_400, `${user} was refused after ${took} ms`);
  });

  it('are neither strangers to the group, nor root, nor a service, nor who has a password here', async () => {
    const refused = await Promise.all(['pete', 'root', 'service', 'alice'].map((user) => status(user)));
    assert.deepEqual(refused, ['401', '401', '401', '401']);
    assert.equal(await status('alice', 'open/a.bin', 'wonder'), '200');
  });

  it('go on while the daemon is restarted', async () => {
    const reading = spawn(
      'curl',
      [
        '-sSf',
        '--limit-rate',
        '2M',
        '-o',
        scratch.path('read.bin'),
        '-u',
        `nora:${PASSWORD}`,
        url('open/a.bin'),
      ],
      { stdio: 'ignore' },
    );
    const ended = once(reading, 'exit');
    daemon.signal('SIGUSR2');
    await daemon.exit(20_000);
    await daemon.start();
    await served();
    assert.deepEqual(await ended, [0, null]);
    assert.equal(await status('nora', 'team/a.bin'), '200');
  });

  it('are not told apart from anybody else while the daemon is down', async () => {
    daemon.signal('SIGUSR2');
    await daemon.exit(20_000);
    const asked = await Promise.all(
      ['nora', 'pete', 'root', 'nobody-here'].map(async (user) => {
        const begun = Date.now();
        const said = await status(user, 'open/a.bin', 'wrong');
        return [said, Math.round((Date.now() - begun) / 5_000)] as const;
      }),
    );
    assert.deepEqual(
      asked,
      asked.map(() => ['503', 3]),
    );
    await daemon.start();
    await served();
  });

  it('are out at once when they leave the group, transfers and all', async () => {
    const reading = spawn(
      'curl',
      [
        '-sSf',
        '--limit-rate',
        '200k',
        '-o',
        scratch.path('half.bin'),
        '-u',
        `nora:${PASSWORD}`,
        url('open/a.bin'),
      ],
      { stdio: 'ignore' },
    );
    const ended = once(reading, 'exit');
    await until(
      'she reads',
      async () => (await readFile(scratch.path('half.bin')).catch(() => '')).length > 0,
      {
        timeoutMs: 20_000,
      },
    );
    await accounts.set(ALL, { [GROUP]: MEMBERS.filter((name) => name !== 'nora') });
    await until('she is refused', async () => (await status('nora')) === '401', REMOVED);
    const [code] = (await ended) as [number];
    assert.notEqual(code, 0);
    assert.equal(await status('otto'), '200');
  });

  it('are out soon after they are locked', async () => {
    await accounts.set([...ALL.filter(({ name }) => name !== 'otto'), { ...OTTO, isLocked: true }], {
      [GROUP]: MEMBERS,
    });
    await until('he is refused', async () => (await status('otto')) === '401', LOCKED);
    await until('nora is back', async () => (await status('nora')) === '200', REMOVED);
  });

  it('are all that come in where the configuration has no users: nobody without a password', async () => {
    await daemon.writeConfig(
      daemon.text({ sections: { webdav: { enabled: true, port, system_group: GROUP, users: [] } } }),
    );
    await until(
      'alice is out',
      async () => (await status('alice', 'open/a.bin', 'wonder')) === '401',
      REMOVED,
    );
    // The daemon looks with an account of its own.
    await served();
    const { stdout } = await run('curl', ['-sS', '-o', '/dev/null', '-w', '%{http_code}', url('open/a.bin')]);
    assert.equal(stdout, '401');
    assert.equal(await status('nora', 'team/a.bin'), '200');
  });

  it('have passwords that stand in no log, and a notice when nobody of them is left', async () => {
    assert.ok(!(await readFile(daemon.logFile, 'utf8')).includes(PASSWORD));
    await accounts.set(ALL, { [GROUP]: [] });
    await until('it is said', async () => (await notices(daemon)).includes('has no members'), REMOVED);
  });
});
