// @start 5
/**
 * What serves is killed under clients of every protocol: they go on, and nothing they write is lost or lands
 * elsewhere.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Nas } from '../../support/nas/nas.ts';
import { isAlive } from '../../support/platform/processes.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { SLOW_MACHINE } from '../../support/platform/cpu-pressure.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { CLIENTS } from '../../support/clients/protocols.ts';
import type { Client, Session } from '../../support/clients/protocols.ts';
import { startWithExports, serversOf, shownToAll } from '../../support/clients/daemon-with-exports.ts';
import type { DaemonWithExports } from '../../support/clients/daemon-with-exports.ts';
import { localFile } from '../../support/exports/client-programs.ts';

const SHARE = '照片 Photos';
const KILLS = 4;

const rclone = currentRclone();

describe('a kill -9 under clients of every protocol', () => {
  let scratch: Scratch;
  let nas: Nas;
  let house: DaemonWithExports;
  /** The mount points without what is mounted there. */
  let below: string;
  const sessions = new Map<Client, Session>();

  const enter = async (): Promise<void> => {
    sessions.forEach((session) => session.close());
    for (const client of CLIENTS) sessions.set(client, await client.session(house.access, SHARE));
  };
  /** What lies in the mount points below what is mounted there. */
  const layBelow = async (): Promise<string[]> =>
    (await Promise.all((await readdir(below)).map((folder) => readdir(`${below}/${folder}`)))).flat();

  before(async () => {
    scratch = await createScratch('cross-kill');
    nas = await Nas.create(scratch, { files: { 'photos/from nas.bin': 300_000, 'other/x.bin': 1_000 } });
    house = await startWithExports(scratch, {
      rclone,
      connections: [nas.connection('nas')],
      shares: [
        { name: SHARE, connection: 'nas', remote_path: 'photos' },
        { name: 'other', connection: 'nas', remote_path: 'other' },
      ],
    });
    await house.daemon.healthy();
    for (const share of [SHARE, 'other']) await shownToAll(house.access, share);
    below = scratch.path('below');
    await mkdir(below);
    assert.equal(spawnSync('mount', ['--bind', '--make-private', house.daemon.mountRoot, below]).status, 0);
    await enter();
  });
  after(async () => {
    sessions.forEach((session) => session.close());
    await scratch.close();
  });

  it("of the share's rclone: clients list, read and write again in their session within 5 s", async (t) => {
    const sum = await nas.checksum('photos/from nas.bin');
    for (const [{ label }, session] of sessions) assert.equal(await session.get('from nas.bin'), sum, label);
    process.kill(await house.daemon.rclonePid(SHARE), 'SIGKILL');
    const killed = performance.now();
    const { path, sum: written } = await localFile(scratch, 'written', 200_000);
    const back = await Promise.all(
      [...sessions].map(async ([{ label }, session]) => {
        let refused = 0;
        await until(
          `${label} goes on`,
          async () => {
            refused += 1;
            assert.match(await session.list(), /from nas\.bin/);
            assert.equal(await session.get('from nas.bin'), sum);
            await session.put(path, `after the kill over ${label}.bin`);
            return true;
          },
          { timeoutMs: 15_000 },
        );
        return { label, ms: Math.round(performance.now() - killed), refused: refused - 1 };
      }),
    );
    t.diagnostic(
      back.map(({ label, ms, refused }) => `${label} after ${ms} ms and ${refused} refusals`).join(', '),
    );
    for (const { label, ms } of back) assert.ok(ms < 5_000, `${label} took ${ms} ms`);
    assert.equal(
      back.find(({ label }) => label === 'WebDAV')?.refused,
      0,
      'the next request over WebDAV is answered',
    );
    for (const { label } of back)
      await until(
        `the NAS has what came over ${label}`,
        async () => (await nas.checksum(`photos/after the kill over ${label}.bin`)) === written,
        { timeoutMs: 30_000 },
      );
  });

  it(`of the share's rclone ${KILLS} times under writers: no acknowledged write is lost`, async (t) => {
    const { path, sum } = await localFile(scratch, 'small', 20_000);
    const taken: string[] = [];
    const state = { isOver: false, refused: 0 };
    scratch.defer(() => {
      state.isOver = true;
    });
    const writers = [...sessions].map(async ([{ label }, session]) => {
      for (let index = 0; !state.isOver; index += 1) {
        const name = `${label} ${index}.bin`;
        await session.put(path, name).then(
          () => taken.push(name),
          () => {
            state.refused += 1;
          },
        );
        await sleep(10);
      }
    });
    const looks: string[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      await sleep(300 + Math.random() * 700);
      process.kill(await house.daemon.rclonePid(SHARE), 'SIGKILL');
      for (let moment = 0; moment < 10; moment += 1) {
        looks.push(...(await layBelow()));
        await sleep(40);
      }
      // Clients tell: the status may be of before the kill.
      await shownToAll(house.access, SHARE);
    }
    state.isOver = true;
    await Promise.all(writers);
    await house.daemon.synced(90_000);
    const arrived = await nas.checksums('photos');
    t.diagnostic(`${taken.length} files were taken, ${state.refused} refused`);
    assert.deepEqual(looks, []);
    for (const folder of await readdir(below))
      await assert.rejects(writeFile(`${below}/${folder}/unnoticed`, ''), /EPERM|EACCES/);
    assert.deepEqual(
      taken.filter((name) => arrived.get(name) !== sum),
      [],
    );
    for (const { label } of CLIENTS)
      assert.ok(taken.filter((name) => name.startsWith(label)).length > KILLS, `${label} wrote`);
  });

  it('of all servers at once: they serve within 3 s, and every mount is untouched', async (t) => {
    const [former, rclone] = [await serversOf(house.daemon), await house.daemon.rclonePid(SHARE)];
    assert.deepEqual([...former.keys()].sort(), CLIENTS.map(({ label }) => label).sort());
    for (const { pids } of former.values()) for (const pid of pids) process.kill(pid, 'SIGKILL');
    const shown = await shownToAll(house.access, SHARE);
    t.diagnostic([...shown].map(([label, ms]) => `${label} after ${ms} ms`).join(', '));
    for (const [label, ms] of shown) assert.ok(ms < 3_000 * SLOW_MACHINE, `${label} took ${ms} ms`);
    for (const [label, { family }] of former)
      await until(`nothing is left of ${label}`, () => !family.some(isAlive), { timeoutMs: 20_000 });
    assert.equal(await house.daemon.rclonePid(SHARE), rclone);
    await enter();
    for (const [{ label }, session] of sessions) assert.match(await session.list(), /from nas\.bin/, label);
  });

  it('leaves no file in the bare mount points when all is unmounted under writers', async () => {
    const { path } = await localFile(scratch, 'last', 20_000);
    const state = { isOver: false };
    scratch.defer(() => {
      state.isOver = true;
    });
    const writers = [...sessions].map(async ([{ label }, session]) => {
      for (let index = 0; !state.isOver; index += 1)
        await session.put(path, `last ${label} ${index}.bin`).catch(() => sleep(10));
    });
    const end = house.daemon.stop();
    const looks: string[] = [];
    await until(
      'the daemon has ended',
      async () => {
        looks.push(...(await layBelow().catch(() => [])));
        return !house.daemon.alive;
      },
      { timeoutMs: 120_000 },
    ).finally(() => {
      state.isOver = true;
    });
    assert.equal((await end).code, 0);
    await Promise.all(writers);
    assert.deepEqual(looks, []);
    spawnSync('umount', [below]);
  });
});
