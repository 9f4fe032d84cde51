/** What rules name lies in the cache before anybody asks for it: seen by reading it while the NAS is away. */
import assert from 'node:assert/strict';
import { utimes } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { inState } from '../../support/warmup/warmup-status.ts';
import type { TaskJson, WarmShareJson } from '../../support/warmup/warmup-status.ts';

const SHARE = '照片 2024';
const FOLDER = '资料 und mehr';
const SMALL = 40;
const NAMES = [
  ...Array.from({ length: SMALL }, (_, index) => `${FOLDER}/顺序 ${index % 4}/Bild ${index}.bin`),
  `${FOLDER}/film.bin`,
  `${FOLDER}/empty.bin`,
  `${FOLDER}/zwei\nZeilen.bin`,
];
/** In the mount: rclone's stand-in for a line break. */
const shown = (name: string): string => name.replace('\n', '␊');
const LARGE_BYTES = 20 * 2 ** 20 + 4_321;

const rclone = currentRclone();

describe('warmup', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;
  let files: Files;
  const task = (stdout: string): TaskJson =>
    (JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as { tasks: TaskJson[] }).tasks[0] as TaskJson;

  before(async () => {
    scratch = await createScratch('warmup');
    const bytes = (name: string): number =>
      name.endsWith('film.bin') ? LARGE_BYTES : name.endsWith('empty.bin') ? 0 : 30_000;
    nas = await Nas.create(scratch, {
      files: {
        ...Object.fromEntries(NAMES.map((name) => [name, bytes(name)])),
        [`${FOLDER}/old.bin`]: 30_000,
        'elsewhere.bin': 30_000,
      },
    });
    const longAgo = new Date('2020-01-01T00:00:00Z');
    await utimes(nas.path(FOLDER, 'old.bin'), longAgo, longAgo);
    relay = await Relay.start(scratch, { targetPort: nas.port, delayMs: 5 });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas', relay.port)],
      shares: [{ name: SHARE, connection: 'nas' }],
      sections: { warmup: { rules: [{ share: SHARE, path: FOLDER, newer_than: '30d' }] } },
    });
    await daemon.start();
  });
  after(() => scratch.close());

  // The empty file counts as cached from the start.
  it('fetches what the rule names once the share is healthy, and tells how much that was', async () => {
    const rule = await inState(daemon, FOLDER, 'complete');
    assert.deepEqual(rule, {
      share: SHARE,
      path: FOLDER,
      newer_than: '30d',
      state: 'complete',
      total_files: NAMES.length,
      skipped: 1,
      cached: NAMES.length - 1,
      errors: 0,
    });
    const share = (await daemon.share(SHARE)) as WarmShareJson;
    assert.deepEqual(
      [share.warmup_state, share.warmup_done, share.warmup_total],
      ['complete', NAMES.length, NAMES.length],
    );
  });

  it('skips all of it the second time, and knows so beforehand', async () => {
    const counted = await daemon.cli('warmup', SHARE, FOLDER, '--dry-run', '--json');
    const {
      total_files: total,
      skipped,
      total_bytes: totalBytes,
      skipped_bytes: skippedBytes,
    } = task(counted.stdout);
    assert.deepEqual(
      [counted.code, total, skipped, totalBytes - skippedBytes],
      [0, NAMES.length + 1, NAMES.length, 30_000],
      counted.stdout,
    );
    const again = await daemon.cli('warmup', SHARE, '--json');
    assert.deepEqual(
      [again.code, task(again.stdout).skipped, task(again.stdout).cached],
      [0, NAMES.length, 0],
      again.stdout + again.stderr,
    );
    // The status is taken with each cycle; the run of before was complete, too.
    await until(
      'the status tells of this run',
      async () => (await inState(daemon, FOLDER, 'complete')).skipped === NAMES.length,
      { timeoutMs: 20_000 },
    );
  });

  it('has every byte of it while the NAS is away', async () => {
    await relay.cut();
    for (const name of NAMES)
      assert.equal(
        await files.checksum(`${daemon.mountPoint(SHARE)}/${shown(name)}`, 5_000),
        await nas.checksum(name),
        name,
      );
    await relay.restore();
  });

  it('fetches again what has changed on the NAS, and nothing else', async () => {
    await nas.put(`${FOLDER}/film.bin`, 50_000);
    const { code, stdout, stderr } = await daemon.cli('warmup', SHARE, FOLDER);
    assert.equal(code, 0, stdout + stderr);
    assert.match(
      stdout,
      new RegExp(`${NAMES.length + 1} files .*, ${NAMES.length - 1} already cached .*, 2 fetched`),
    );
    assert.equal(
      await files.checksum(`${daemon.mountPoint(SHARE)}/${FOLDER}/film.bin`, 5_000),
      await nas.checksum(`${FOLDER}/film.bin`),
    );
  });
});
