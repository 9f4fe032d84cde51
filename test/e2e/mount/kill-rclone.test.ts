// @load alone
// @long
/**
 * rclone is killed again and again while files are being written: what was closed arrives, reads come back at
 * once.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, readdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Files, lostFiles, readLedger } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { inForm } from '../../support/platform/long-form.ts';
import { rangeOf, SLOW_MACHINE, spanSince, tooLong } from '../../support/platform/cpu-pressure.ts';
import type { Span } from '../../support/platform/cpu-pressure.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const KILLS = inForm({ short: 4, long: 8 });
/** What is promised, and what a slow machine may take. */
const PROMISED_MS = 3_000;
const ALLOWED_S = (PROMISED_MS * SLOW_MACHINE) / 1_000;

const rclone = currentRclone();

describe(`kill -9 of rclone, ${KILLS} times`, () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let files: Files;

  before(async () => {
    scratch = await createScratch('kill');
    nas = await Nas.create(scratch, { files: { 'read/me.bin': 2_000_000, 'read/saved': 1_000 } });
    await mkdir(nas.path('in'), { recursive: true });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it(`brings reads back within ${ALLOWED_S} s of each kill and loses no file whose close() succeeded`, async (t) => {
    const mount = daemon.mountPoint('work');
    const expected = await nas.checksum('read/me.bin');
    const ledger = scratch.path('ledger');
    const writer = files.begin<{ written: number; failed: number }>({
      op: 'write-many',
      dir: `${mount}/in`,
      ledger,
      bytes: 700_000,
      count: 100_000,
      pieceDelayMs: 30,
      pauseMs: 20,
    });
    const back: Span[] = [];
    for (let kill = 0; kill < KILLS; kill += 1) {
      await sleep(300 + Math.random() * 1_200);
      const pid = await daemon.rclonePid('work');
      process.kill(pid, 'SIGKILL');
      const killedAt = performance.now();
      await until(
        `reads work after kill ${kill + 1}`,
        async () => (await files.checksum(`${mount}/read/me.bin`, 3_000)) === expected,
        { timeoutMs: 15_000, everyMs: 25 },
      );
      back.push(spanSince(killedAt));
    }
    await writer.stop();
    await daemon.synced(90_000);
    const written = await readLedger(ledger);
    t.diagnostic(
      `reads were back after ${rangeOf(back)}; ` +
        `${written.closed.size} files closed, ${written.failed.length} writes failed`,
    );
    assert.deepEqual(lostFiles(written, await nas.checksums('in')), []);
    assert.ok(written.closed.size > KILLS / 2, `only ${written.closed.size} files were written`);
    assert.deepEqual(tooLong(back, PROMISED_MS), []);
  });

  it('loses no file that was saved by renaming it over one that was just read, with the NAS away', async () => {
    const file = `${daemon.mountPoint('work')}/read/saved`;
    const save = `cat "${file}" > "${scratch.path('copy')}"; printf mine > "${file}.tmp" && mv "${file}.tmp" "${file}"`;
    const { code, output } = await runClient('sh', ['-c', save], 20_000);
    assert.equal(code, 0, output);
    await nas.stop();
    process.kill(await daemon.rclonePid('work'), 'SIGKILL');
    await nas.start();
    await daemon.healthy();
    await daemon.synced(90_000);
    assert.equal(await readFile(nas.path('read/saved'), 'utf8'), 'mine');
  });

  it('shows the share healthy with nothing left to do', async () => {
    const share = await daemon.share('work');
    assert.equal(share.health, 'healthy');
    assert.equal(share.dirty_count, 0);
    assert.equal(share.errored_files, 0);
  });

  it('has left no socket of those that were killed', async () => {
    const names = await readdir(`${daemon.stateDir}/mount`);
    assert.equal(names.filter((name) => name.endsWith('.sock')).length, 1, names.join());
  });
});
