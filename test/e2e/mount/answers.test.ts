// @load loud
/** What is replaced below a share when one part of it gives no answer, and what is left as it is. */
import assert from 'node:assert/strict';
import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

/** More than a bindfs has threads that is built with libfuse 3. */
const READERS = 16;
/** Longer than anything that hangs is left alone. */
const AWAY_MS = 35_000;

const rclone = currentRclone();

describe('below a share', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('answers');
    const names = Array.from({ length: READERS }, (_, index) => [`file${index}`, 3_000_000] as const);
    nas = await Nas.create(scratch, { files: Object.fromEntries(names) });
    relay = await Relay.start(scratch, { targetPort: nas.port });
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas', relay.port)],
      shares: [{ name: 'work', connection: 'nas' }],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('an rclone is replaced whose remote control has died, and what waits goes up', async () => {
    const [lower, bindfs] = [await daemon.rclonePid('work'), await daemon.bindfsPid('work')];
    // Connections that are there would go on: each ends when a question on it finds no answer in time.
    process.kill(lower, 'SIGSTOP');
    const folder = `${daemon.stateDir}/mount`;
    for (const name of await readdir(folder)) if (name.endsWith('.sock')) await rm(join(folder, name));
    await sleep(8_500);
    process.kill(lower, 'SIGCONT');
    const sum = await new Files(scratch).write(`${daemon.mountPoint('work')}/mine`, 1_000);
    await until('another rclone', async () => (await daemon.rclonePid('work')) !== lower, {
      timeoutMs: 60_000,
    });
    await until('it is on the NAS', () => nas.has('mine'), { timeoutMs: 60_000 });
    assert.equal(await nas.checksum('mine'), sum);
    assert.equal(await daemon.bindfsPid('work'), bindfs, 'the share has stayed');
    await daemon.healthy();
    assert.match(await daemon.log(), /rclone's remote control does not answer/);
  });

  it('nothing is replaced while many read from a NAS that has gone silent', async (t) => {
    const [lower, bindfs] = [await daemon.rclonePid('work'), await daemon.bindfsPid('work')];
    const files = new Files(scratch);
    const first = `${daemon.mountPoint('work')}/file0`;
    await readdir(daemon.mountPoint('work'));
    await relay.blackHole();
    let ended = 0;
    const reads = Array.from({ length: READERS }, (_, index) =>
      files
        .checksum(`${daemon.mountPoint('work')}/file${index}`, 120_000)
        .then(
          () => 'read',
          () => 'failed',
        )
        .finally(() => (ended += 1)),
    );
    await sleep(10_000);
    t.diagnostic(`${ended} reads ended within 10 s`);
    await sleep(AWAY_MS);
    const unanswered = (await daemon.log()).match(/mount does not answer/g)?.length ?? 0;
    t.diagnostic(`${unanswered} looks had no answer`);
    await relay.restore();
    await Promise.all(reads);
    await daemon.healthy([], 60_000);
    assert.deepEqual([await daemon.rclonePid('work'), await daemon.bindfsPid('work')], [lower, bindfs]);
    const sum = await nas.checksum('file0');
    await until('it can be read again', async () => (await files.checksum(first)) === sum, {
      timeoutMs: 60_000,
    });
  });
});
