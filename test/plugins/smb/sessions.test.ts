/** Whose connection to a share is ended when what may be done there changes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { smbPaths } from '../../../plugins/smb/paths.ts';
import type { ServedShare } from '../../../plugins/smb/server-config.ts';
import { disconnectChanged, endSessions } from '../../../plugins/smb/sessions.ts';

const HEAD =
  'PID     Username     Group        Machine'.padEnd(82) + 'Protocol Version  Encryption           Signing';
const session = (pid: number, user: string, port: number): string =>
  `${String(pid).padEnd(8)}${user.padEnd(13)}nogroup      ` +
  `127.0.0.1 (ipv4:127.0.0.1:${port})          SMB3_11           -                    partial(AES-128-GMAC)`;

const STATUS = `
Samba version 4.17.12-Debian
${HEAD}
${'-'.repeat(136)}
${session(101, 'alice', 47004)}
${session(102, 'bob', 47006)}
${session(103, 'Carol', 47008)}
${session(103, 'bob', 47008)}
${session(104, 'nobody', 47010)}
`;
const TEAM: ServedShare = {
  name: 'team',
  path: '/mnt/team',
  readOnly: false,
  isShared: false,
};

/** The orders that smbd got. */
async function ordersFor(
  before: readonly ServedShare[],
  now: readonly ServedShare[],
  status = 0,
): Promise<readonly string[]> {
  const orders: string[] = [];
  const run = async ({ command, args }: { command: string; args: readonly string[] }) => {
    if (command === 'smbcontrol') orders.push(args.slice(3).join(' '));
    return {
      code: command === 'smbstatus' ? status : 0,
      stdout: STATUS,
      stderr: '',
    };
  };
  const byName = (shares: readonly ServedShare[]) => new Map(shares.map((share) => [share.name, share]));
  await disconnectChanged(byName(before), byName(now), {
    processes: { run } as unknown as Processes,
    paths: smbPaths('/var/lib/mountkeeper'),
    env: {},
  });
  return orders;
}

const out = (...pids: readonly number[]): string[] =>
  pids.flatMap((pid) => [`${pid} reload-config`, `${pid} close-share team`]);

describe('sessions of SMB', () => {
  it('leave a share when their user may do more or less there, and stay otherwise', async () => {
    const of = (write: string[], read: string[] = []): ServedShare => ({
      ...TEAM,
      access: { write, read },
    });
    assert.deepEqual(await ordersFor([of(['alice', 'bob'])], [of(['alice'])]), out(102, 103));
    assert.deepEqual(await ordersFor([of(['alice', 'bob'])], [of(['alice'], ['BOB'])]), out(102, 103));
    assert.deepEqual(await ordersFor([of(['alice'])], [of(['ALICE', 'dora'])]), []);
    assert.deepEqual(await ordersFor([TEAM], [of(['alice', 'bob', 'carol'])]), out(104));
    assert.deepEqual(await ordersFor([of(['carol'])], [of([])]), out(103));
    assert.deepEqual(await ordersFor([of(['bob'])], [of(['bob'])]), []);
  });

  it('all leave a share that is gone or another, or when the server does not say who they are', async () => {
    const mine = { ...TEAM, access: { write: ['alice'], read: [] } };
    assert.deepEqual(await ordersFor([mine], []), ['smbd close-share team']);
    assert.deepEqual(await ordersFor([mine], [{ ...mine, readOnly: true }]), ['smbd close-share team']);
    assert.deepEqual(await ordersFor([TEAM], [mine], 1), ['smbd close-share team']);
    assert.deepEqual(await ordersFor([], [mine]), []);
  });

  it('that cannot be told keep no other from being told, and are named unless they have ended', async () => {
    const gone = 2 ** 22 + 1;
    const orders: string[] = [];
    const run = async ({ command, args }: { command: string; args: readonly string[] }) => {
      if (command === 'smbcontrol') orders.push(args.slice(3).join(' '));
      const stdout = [session(gone, 'alice', 1), session(process.pid, 'bob', 2), session(103, 'bob', 3)].join(
        '\n',
      );
      return { code: command === 'smbcontrol' && args[3] !== '103' ? 1 : 0, stdout, stderr: 'no' };
    };
    const tools = { processes: { run } as unknown as Processes, paths: smbPaths('/nowhere'), env: {} };
    const of = (...write: string[]) => new Map([['team', { ...TEAM, access: { write, read: [] } }]]);
    assert.deepEqual(await disconnectChanged(of('alice'), of(), tools), new Map());
    assert.deepEqual(orders.splice(0), out(gone));
    assert.deepEqual(
      await disconnectChanged(of('bob'), of(), tools),
      new Map([
        [
          'team',
          {
            reason: `smbcontrol ${process.pid} reload-config ended with 1: no`,
            pids: new Set([String(process.pid)]),
          },
        ],
      ]),
    );
    assert.deepEqual(orders.splice(0), [`${process.pid} reload-config`, ...out(103)]);
    await endSessions(new Set(['alice']), tools);
    await assert.rejects(endSessions(new Set(['bob']), tools), /shutdown ended with 1: no/);
    assert.deepEqual(orders, [`${gone} shutdown`, `${process.pid} shutdown`, '103 shutdown']);
  });
});
