// @start 6
/** Shares come, go and change, and the daemon itself dies and returns, a reload under transfers over every protocol. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { mountedAnew } from '../../support/config/applied-config.ts';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { CLIENTS } from '../../support/clients/protocols.ts';
import type { Protocol } from '../../support/clients/protocols.ts';
import { startWithExports, serversOf, shownToAll } from '../../support/clients/daemon-with-exports.ts';
import type { DaemonWithExports } from '../../support/clients/daemon-with-exports.ts';
import { pauses, transfersOf } from '../../support/clients/transfers.ts';
import type { Outcome } from '../../support/clients/transfers.ts';
import { localFile } from '../../support/exports/client-programs.ts';

/** What a user would take for a standstill; the daemon's start and three clients' own work are in it. */
const PAUSE_MS = 2_000;
const STEADY = { name: 'steady', connection: 'nas', remote_path: 'steady' };
const GUEST = { name: 'guest', connection: 'nas', remote_path: 'one' };

describe('a reload under transfers over every protocol', () => {
  let scratch: Scratch;
  let nas: Nas;
  let house: DaemonWithExports;
  let sum: string;

  const transfers = () =>
    transfersOf(house.access, { share: 'steady', path: 'film.mov', sha256: sum, bytesPerSecond: 4_000_000 });
  const settle = async (
    shares: readonly Readonly<Record<string, string | boolean | readonly string[]>>[],
  ): Promise<void> => {
    assert.equal((await house.daemon.submit(house.daemon.text({ shares }))).body.ok, true);
  };
  const shownOver = async (wanted: readonly Protocol[]): Promise<void> => {
    for (const { label, protocol, isShown } of CLIENTS)
      await until(
        `${label} ${wanted.includes(protocol) ? 'shows' : 'does not show'} the guest`,
        async () => (await isShown(house.access, 'guest')) === wanted.includes(protocol),
        { timeoutMs: 30_000 },
      );
  };
  const undisturbed = (outcomes: readonly Outcome[], limitMs: number): void => {
    for (const { label, transfer } of outcomes) {
      assert.deepEqual(transfer.failures, [], label);
      assert.ok(transfer.whole > 0, label);
    }
    assert.deepEqual(pauses(outcomes, limitMs), []);
  };
  const told = (outcomes: readonly Outcome[]): string =>
    outcomes
      .map(
        ({ label, transfer }) =>
          `${label} ${transfer.whole} transfers, longest pause ${transfer.longestMs} ms`,
      )
      .join('; ');

  before(async () => {
    scratch = await createScratch('cross-reload');
    nas = await Nas.create(scratch, {
      files: { 'steady/film.mov': 40_000_000, 'one/first.bin': 10, 'two/second.bin': 10 },
    });
    sum = await nas.checksum('steady/film.mov');
    house = await startWithExports(scratch, { connections: [nas.connection('nas')], shares: [STEADY] });
    await house.daemon.healthy();
    await shownToAll(house.access, 'steady');
  });
  after(() => scratch.close());

  it('adds a share, takes a protocol from it, makes it read-only, moves it and removes it', async (t) => {
    const end = await transfers();
    const { path } = await localFile(scratch, 'new', 100);
    const lists = async (): Promise<string[]> =>
      Promise.all(
        CLIENTS.map(async (client) => {
          const session = await client.session(house.access, 'guest');
          return session.list().finally(() => session.close());
        }),
      );
    const writes = async (): Promise<string[]> =>
      (
        await Promise.all(
          CLIENTS.map(async (client) => {
            const session = await client.session(house.access, 'guest');
            return session
              .put(path, `${client.label}.bin`)
              .then(
                () => client.label,
                () => '',
              )
              .finally(() => session.close());
          }),
        )
      ).filter((label) => label !== '');
    const labels = CLIENTS.map(({ label }) => label);
    await settle([STEADY, GUEST]);
    await shownOver(['smb', 'nfs', 'webdav']);
    assert.deepEqual(await writes(), labels);
    for (const protocols of [['smb'], ['nfs', 'webdav'], ['smb', 'nfs', 'webdav']] as const) {
      await settle([STEADY, { ...GUEST, protocols }]);
      await shownOver(protocols);
    }
    await house.daemon.synced(30_000);
    const writable = await house.daemon.rclonePid('guest');
    await settle([STEADY, { ...GUEST, read_only: true }]);
    await mountedAnew(house.daemon, 'guest', writable);
    await shownToAll(house.access, 'guest');
    assert.deepEqual(await writes(), []);
    await settle([STEADY, { ...GUEST, remote_path: 'two' }]);
    await until(
      'all find the other folder',
      async () => (await lists()).every((list) => list.includes('second.bin') && !list.includes('first.bin')),
      { timeoutMs: 60_000 },
    );
    await settle([STEADY]);
    await shownOver([]);
    const outcomes = await end();
    t.diagnostic(told(outcomes));
    undisturbed(outcomes, PAUSE_MS);
  });

  it('takes one protocol from the share that is read: clients of the other do not notice', async (t) => {
    const end = await transfers();
    for (const { label, protocol } of CLIENTS.filter((client) => client.protocol !== 'smb')) {
      await sleep(500);
      const former = await house.daemon.rclonePid('steady');
      await settle([{ ...STEADY, protocols: ['smb', 'nfs', 'webdav'].filter((one) => one !== protocol) }]);
      await until(
        `${label} shows it no more`,
        async () =>
          !(await CLIENTS.find((client) => client.label === label)?.isShown(house.access, 'steady')),
        { timeoutMs: 30_000 },
      );
      assert.equal(await house.daemon.rclonePid('steady'), former);
      await settle([STEADY]);
      await shownToAll(house.access, 'steady');
    }
    const outcomes = await end();
    t.diagnostic(told(outcomes));
    undisturbed(
      outcomes.filter(({ label }) => label === 'SMB'),
      PAUSE_MS,
    );
  });

  for (const signal of ['SIGKILL', 'SIGUSR2'] as const) {
    it(`and an end of the daemon by ${signal}: the next one adopts the servers with their sessions`, async (t) => {
      const [former, end] = [await serversOf(house.daemon), await transfers()];
      const sessions = await Promise.all(
        CLIENTS.map(async (client) => ({ client, session: await client.session(house.access, 'steady') })),
      );
      for (let round = 0; round < 2; round += 1) {
        await sleep(1_000);
        house.daemon.signal(signal);
        await house.daemon.exit(30_000);
        await sleep(500);
        await house.daemon.start();
        await house.daemon.healthy();
      }
      const { path } = await localFile(scratch, `kept ${signal}`, 5_000);
      for (const { client, session } of sessions) {
        await session.put(path, `${signal} ${client.label}.bin`);
        session.close();
      }
      await shownToAll(house.access, 'steady');
      const now = await serversOf(house.daemon);
      assert.deepEqual(
        [...now].map(([label, { pids }]) => [label, pids]),
        [...former].map(([label, { pids }]) => [label, pids]),
      );
      const outcomes = await end();
      t.diagnostic(told(outcomes));
      undisturbed(outcomes, PAUSE_MS);
      await house.daemon.synced(60_000);
      for (const { label } of CLIENTS) assert.ok(await nas.has(`steady/${signal} ${label}.bin`), label);
    });
  }
});
