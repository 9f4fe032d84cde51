// @load alone
// @long
/** The daemon dies and comes back under a writer and a reader who must not notice. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { mountedAnew } from '../../support/config/applied-config.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files, lostFiles, readLedger } from '../../support/platform/file-worker.ts';
import type { Tally } from '../../support/platform/file-worker.ts';
import { inForm } from '../../support/platform/long-form.ts';
import { isMounted } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { middleOf, rangeOf, spanSince, tooLong } from '../../support/platform/cpu-pressure.ts';
import type { Span } from '../../support/platform/cpu-pressure.ts';
import { isAlive } from '../../support/platform/processes.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const KILLS = inForm({ short: 6, long: 20 });
const SHARES = ['alpha', '贝塔'];

const rclone = currentRclone();

describe('a daemon that ends while its mounts live', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let files: Files;
  let pids: number[];

  const rclonePids = (): Promise<number[]> => Promise.all(SHARES.map((share) => daemon.rclonePid(share)));
  /** From the start of the process until the status is right. */
  const startAgain = async (): Promise<Span> => {
    const startedAt = performance.now();
    const ended = daemon.spawn();
    ended.catch(() => undefined);
    await daemon.healthy(SHARES, 15_000);
    return spanSince(startedAt);
  };

  before(async () => {
    scratch = await createScratch('adopt');
    nas = await Nas.create(scratch, { files: { 'a/read.bin': 4_000_000, 'b/x.bin': 1000 } });
    await mkdir(nas.path('a/in'), { recursive: true });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas')],
      shares: [
        { name: 'alpha', connection: 'nas', remote_path: 'a' },
        { name: '贝塔', connection: 'nas', remote_path: 'b' },
      ],
    });
    await daemon.start();
    await daemon.healthy(SHARES);
    pids = await rclonePids();
  });
  after(() => scratch.close());

  it(`keeps reads and writes going through ${KILLS} kills, with a right status within 2 s`, async (t) => {
    const mount = daemon.mountPoint('alpha');
    const ledger = scratch.path('ledger');
    const sum = await nas.checksum('a/read.bin');
    const writer = files.begin<{ written: number; failed: number }>({
      op: 'write-many',
      dir: `${mount}/in`,
      ledger,
      bytes: 600_000,
      count: 100_000,
      pieceDelayMs: 20,
      pauseMs: 60,
    });
    const holder = files.begin<Tally>({ op: 'hold-open', path: `${mount}/read.bin` });
    const reader = files.begin<Tally>({ op: 'read-again', path: `${mount}/read.bin`, sha256: sum });
    const right: Span[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      await sleep(100 + Math.random() * 600);
      daemon.signal('SIGKILL');
      await daemon.exit(5_000);
      right.push(await startAgain());
      assert.deepEqual(await rclonePids(), pids, `after kill ${kill + 1}`);
    }
    await writer.stop();
    const tallies = [await holder.stop(), await reader.stop()];
    await daemon.synced(60_000);
    const written = await readLedger(ledger);
    t.diagnostic(
      `status right after ${rangeOf(right)}, ${middleOf(right)} ms in the middle; ` +
        `${written.closed.size} files written, ` +
        `${tallies.map((tally) => tally.reads).join(' and ')} reads`,
    );
    assert.deepEqual(
      tallies.flatMap((tally) => tally.failures),
      [],
    );
    assert.ok(tallies.every((tally) => tally.reads > KILLS));
    assert.deepEqual(written.failed, []);
    assert.ok(written.closed.size >= KILLS);
    assert.deepEqual(lostFiles(written, await nas.checksums('a/in')), []);
    assert.deepEqual(tooLong(right, 2_000), []);
  });

  it('hands its mounts over on SIGUSR2: it ends with 0, the mounts stay, the next one adopts them', async () => {
    const holder = files.begin<Tally>({ op: 'hold-open', path: `${daemon.mountPoint('alpha')}/read.bin` });
    const end = await daemon.stop('SIGUSR2', 20_000);
    assert.deepEqual(end, { code: 0, signal: null });
    for (const share of SHARES) assert.ok(await isMounted(daemon.mountPoint(share)), share);
    assert.ok(pids.every(isAlive));
    await files.write(`${daemon.mountPoint('alpha')}/in/while-away.bin`, 100_000);
    await startAgain();
    assert.deepEqual(await rclonePids(), pids);
    assert.deepEqual((await holder.stop()).failures, []);
    await until('what was written meanwhile is on the NAS', () => nas.has('a/in/while-away.bin'), {
      timeoutMs: 20_000,
    });
  });

  it('notices the death of an adopted rclone and mounts again', async () => {
    process.kill(pids[1] ?? 0, 'SIGKILL');
    await mountedAnew(daemon, '贝塔', pids[1] ?? 0, 30_000);
    assert.equal(await files.checksum(`${daemon.mountPoint('贝塔')}/x.bin`), await nas.checksum('b/x.bin'));
  });

  it('mounts again what died while no daemon ran', async () => {
    await daemon.stop('SIGUSR2', 20_000);
    const alpha = await daemon.rclonePid('alpha');
    process.kill(alpha, 'SIGKILL');
    await until('it has ended', () => !isAlive(alpha), { timeoutMs: 20_000 });
    const beta = await daemon.rclonePid('贝塔');
    await startAgain();
    assert.equal(await daemon.rclonePid('贝塔'), beta);
    // The share is up without its rclone, and says so until another one is in its place.
    await until(
      'nothing is wrong with it',
      async () => (await daemon.share('alpha')).health_message === null,
      { timeoutMs: 10_000 },
    );
    assert.equal(
      await files.checksum(`${daemon.mountPoint('alpha')}/read.bin`),
      await nas.checksum('a/read.bin'),
    );
  });
});
