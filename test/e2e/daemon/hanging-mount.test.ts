// @load alone
/** One share's rclone stands still: clients of the other shares do not feel it, whatever their protocol. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Nas } from '../../support/nas/nas.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, timed, until } from '../../support/platform/wait.ts';
import { CLIENTS } from '../../support/clients/protocols.ts';
import { startWithExports, shownToAll } from '../../support/clients/daemon-with-exports.ts';
import type { DaemonWithExports } from '../../support/clients/daemon-with-exports.ts';
import { pauses, transfersOf } from '../../support/clients/transfers.ts';

const [PAUSE_MS, BACK_MS] = [2_000, 30_000];

describe('a share that hangs', () => {
  let scratch: Scratch;
  let nas: Nas;
  let house: DaemonWithExports;

  before(async () => {
    scratch = await createScratch('cross-hang');
    nas = await Nas.create(scratch, { files: { 'hung/x.bin': 50_000, 'other/film.mov': 80_000_000 } });
    house = await startWithExports(scratch, {
      connections: [nas.connection('nas')],
      shares: ['hung', 'other'].map((name) => ({ name, connection: 'nas', remote_path: name })),
    });
    await house.daemon.healthy();
    for (const share of ['hung', 'other']) await shownToAll(house.access, share);
  });
  after(() => scratch.close());

  it('makes no client of another share wait for longer than 2 s, and is back within 30 s', async (t) => {
    const sum = await nas.checksum('hung/x.bin');
    const transfers = await transfersOf(house.access, {
      share: 'other',
      path: 'film.mov',
      sha256: await nas.checksum('other/film.mov'),
      bytesPerSecond: 7_000_000,
    });
    // Users who are caught: each in a session of its own.
    const caught = await Promise.all(
      CLIENTS.map(async (client) => ({
        label: client.label,
        session: await client.session(house.access, 'hung'),
      })),
    );
    const pid = await house.daemon.rclonePid('hung');
    process.kill(pid, 'SIGSTOP');
    const stopped = performance.now();
    const state = { isBack: false };
    const stuck = caught.map(({ session }) => session.get('x.bin').catch(() => undefined));
    // Who comes in meanwhile, again and again.
    const comers = CLIENTS.map(async ({ label, isShown }) => {
      let longestMs = 0;
      while (!state.isBack) {
        longestMs = Math.max(
          longestMs,
          Math.round(
            await timed(isShown(house.access, 'other').then((isThere) => assert.ok(isThere, label))),
          ),
        );
        await sleep(250);
      }
      return { label, longestMs };
    });
    const back = Promise.all(
      CLIENTS.map(async (client) => {
        await until(
          `${client.label} serves it again`,
          async () => {
            const session = await client.session(house.access, 'hung');
            try {
              return (await house.daemon.rclonePid('hung')) !== pid && (await session.get('x.bin')) === sum;
            } finally {
              session.close();
            }
          },
          { timeoutMs: 60_000, everyMs: 200 },
        );
        return { label: client.label, ms: Math.round(performance.now() - stopped) };
      }),
    );
    const times = await back.finally(() => {
      state.isBack = true;
    });
    t.diagnostic(`back: ${times.map(({ label, ms }) => `${label} after ${ms} ms`).join(', ')}`);
    const came = await Promise.all(comers);
    t.diagnostic(
      `who came in waited at most: ${came.map(({ label, longestMs }) => `${label} ${longestMs} ms`).join(', ')}`,
    );
    const outcomes = await transfers();
    t.diagnostic(
      `transfers of the other share: ${outcomes
        .map(({ label, transfer }) => `${label} ${transfer.whole}, longest pause ${transfer.longestMs} ms`)
        .join('; ')}`,
    );
    for (const { label, transfer } of outcomes) assert.deepEqual(transfer.failures, [], label);
    assert.deepEqual(pauses(outcomes, PAUSE_MS), []);
    for (const { label, longestMs } of came)
      assert.ok(longestMs <= PAUSE_MS, `a new ${label} client waited ${longestMs} ms`);
    for (const { label, ms } of times) assert.ok(ms <= BACK_MS, `${label} took ${ms} ms`);
    await Promise.all(stuck);
    caught.forEach(({ session }) => session.close());
  });
});
