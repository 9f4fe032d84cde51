// @load alone
/** One rclone stands still: the daemon, its API and the other shares do not care, and the share is healed. */
import assert from 'node:assert/strict';
import { mkdirSync, rmdirSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import { CONTROL_GROUPS, unlessControlGroups } from '../../runner/skips.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import type { Tally } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { pressure, tooLong } from '../../support/platform/cpu-pressure.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, timed, until } from '../../support/platform/wait.ts';

function percentile(values: readonly number[], share: number): number {
  return (
    [...values].sort((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
    Number.NaN
  );
}

interface Healing {
  readonly answerMs: readonly number[];
  readonly toldMs: number | undefined;
  readonly healedMs: number | undefined;
}

/**
 * Asks for the status all the time until it told that the share hangs and tells no more of it, for a minute at
 * most.
 */
async function watchHealing(daemon: Daemon): Promise<Healing> {
  const answerMs: number[] = [];
  const start = performance.now();
  let toldMs: number | undefined;
  while (performance.now() - start < 60_000) {
    answerMs.push(await timed(daemon.status()));
    const { health, health_message: told, mounted } = await daemon.share('hung');
    if (health !== 'healthy' || told !== null) toldMs ??= performance.now() - start;
    else if (toldMs !== undefined && mounted)
      return { answerMs, toldMs, healedMs: performance.now() - start };
    await sleep(40);
  }
  return { answerMs, toldMs, healedMs: undefined };
}

const rclone = currentRclone();

interface Hang {
  readonly pid: (daemon: Daemon) => Promise<number>;
  readonly begin: (pid: number) => void;
  readonly toldMs: number;
  readonly healedMs: number;
}

const stop = (pid: number): void => void process.kill(pid, 'SIGSTOP');
const FREEZER = `${CONTROL_GROUPS}/mk-hang-${process.pid}`;
/** As threads that wait for something in the kernel: no signal has stopped them. */
function freeze(pid: number): void {
  mkdirSync(FREEZER);
  writeFileSync(`${FREEZER}/cgroup.procs`, String(pid));
  writeFileSync(`${FREEZER}/cgroup.freeze`, '1');
}

/** Each is replaced in its own way: rclone below the share, bindfs with the share. */
const HANGS: Readonly<Record<string, Hang>> = {
  'SIGSTOP of one rclone': {
    pid: (daemon) => daemon.rclonePid('hung'),
    begin: stop,
    toldMs: 20_000,
    healedMs: 30_000,
  },
  'SIGSTOP of one bindfs': {
    pid: (daemon) => daemon.bindfsPid('hung'),
    begin: stop,
    toldMs: 20_000,
    healedMs: 30_000,
  },
};

const FROZEN = {
  name: 'one bindfs that stands still, which no signal has stopped,',
  hang: {
    pid: (daemon) => daemon.bindfsPid('hung'),
    begin: freeze,
    toldMs: 35_000,
    healedMs: 50_000,
  } satisfies Hang,
};

const suiteOf =
  (hang: Hang): (() => void) =>
  () => {
    let scratch: Scratch;
    let nas: Nas;
    let daemon: Daemon;

    before(async () => {
      scratch = await createScratch('hang');
      nas = await Nas.create(scratch, { files: { 'a/x.bin': 2_000_000, 'b/y.bin': 2_000_000 } });
      daemon = await Daemon.create(scratch, {
        rclone,
        connections: [nas.connection('nas')],
        shares: [
          { name: 'hung', connection: 'nas', remote_path: 'a' },
          { name: 'other', connection: 'nas', remote_path: 'b' },
        ],
      });
      await daemon.start();
      await daemon.healthy();
    });
    after(async () => {
      await scratch.close();
      if (hang.begin === freeze) rmdirSync(FREEZER);
    });

    const [toldS, healedS] = [hang.toldMs / 1_000, hang.healedMs / 1_000];
    it(`is told within ${toldS} s and healed within ${healedS} s, while the daemon answers as before`, async (t) => {
      const other = new Files(scratch);
      const stuck = [new Files(scratch), new Files(scratch), new Files(scratch)];
      const reader = other.begin<Tally>({
        op: 'read-again',
        path: `${daemon.mountPoint('other')}/y.bin`,
        sha256: await nas.checksum('b/y.bin'),
      });
      const sum = await nas.checksum('a/x.bin');
      const [pid, bindfs] = [await hang.pid(daemon), await daemon.bindfsPid('hung')];
      hang.begin(pid);
      // Users who are caught in the hung mount, so that its healing has somebody to free.
      const caught = stuck.map((files) =>
        files.checksum(`${daemon.mountPoint('hung')}/x.bin`, 60_000).then(
          () => 'read',
          () => 'failed',
        ),
      );
      const { answerMs, toldMs, healedMs } = await watchHealing(daemon);
      const tally = await reader.stop();
      t.diagnostic(
        `told after ${Math.round(toldMs ?? -1)} ms, ` +
          `healed after ${Math.round(healedMs ?? -1)} ms, ` +
          `p99 of the status ${percentile(answerMs, 0.99).toFixed(1)} ms over ` +
          `${answerMs.length}; the other share was read ${tally.reads} times`,
      );
      assert.ok(toldMs !== undefined && toldMs <= hang.toldMs, 'told too late');
      assert.ok(healedMs !== undefined && healedMs <= hang.healedMs, 'not healed in time');
      assert.deepEqual(tooLong([{ ms: percentile(answerMs, 0.99), pressure: pressure() }], 100), []);
      assert.deepEqual(tally.failures, []);
      assert.ok(tally.reads > 50);
      const fresh = new Files(scratch);
      assert.equal(await fresh.checksum(`${daemon.mountPoint('hung')}/x.bin`), sum);
      assert.notEqual(await hang.pid(daemon), pid);
      if (pid !== bindfs) assert.equal(await daemon.bindfsPid('hung'), bindfs, 'the share has stayed');
      await until('who was caught is free', () => Promise.all(caught), { timeoutMs: 10_000 });
    });
  };

for (const [name, hang] of Object.entries(HANGS)) describe(name, suiteOf(hang));
describe(FROZEN.name, { skip: unlessControlGroups }, suiteOf(FROZEN.hang));
