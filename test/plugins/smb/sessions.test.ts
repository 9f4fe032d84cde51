/** Whose connection to a share is ended when what may be done there changes. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { smbPaths } from '../../../plugins/smb/paths.ts';
import type { ServedShare } from '../../../plugins/smb/server-config.ts';
import { disconnectChanged } from '../../../plugins/smb/sessions.ts';

const STATUS = `
Samba version 4.17.12-Debian
PID     Username     Group        Machine                                   Protocol Version  Encryption           Signing
----------------------------------------------------------------------------------------------------------------------------------------
101     alice        nogroup      127.0.0.1 (ipv4:127.0.0.1:47004)          SMB3_11           -                    partial(AES-128-GMAC)
102     bob          nogroup      127.0.0.1 (ipv4:127.0.0.1:47006)          SMB3_11           -                    partial(AES-128-GMAC)
103     Carol        nogroup      127.0.0.1 (ipv4:127.0.0.1:47008)          SMB3_11           -                    partial(AES-128-GMAC)
103     bob          nogroup      127.0.0.1 (ipv4:127.0.0.1:47008)          SMB3_11           -                    partial(AES-128-GMAC)
104     nobody       nogroup      127.0.0.1 (ipv4:127.0.0.1:47010)          SMB3_11           -                    partial(AES-128-GMAC)
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
    if (command === 'smbcontrol') orders.push(args.slice(2).join(' '));
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
});
