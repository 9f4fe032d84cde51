// @load quiet
/**
 * A NAS of which rclone believes that it keeps times, and that shows when a file arrived: what users write goes up
 * once, and is no conflict. Where the NAS changes what it is given, one copy is the most that is left there.
 */
import assert from 'node:assert/strict';
import { readdir, utimes, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { startForgetful } from '../../support/nas/forgetful-webdav.ts';
import type { ForgetfulWebdav } from '../../support/nas/forgetful-webdav.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { unlessRoot } from '../../runner/skips.ts';

const SHARE = 'files';
const SYNCED_MS = 60_000;
const UNTIMED = /the remote does not keep the times of files/;

describe('a WebDAV NAS that keeps no times, although rclone says so', { skip: unlessRoot }, () => {
  let scratch: Scratch;
  let nas: Nas;
  let front: ForgetfulWebdav | undefined;
  let daemon: Daemon;

  const start = async (change?: (text: string) => string): Promise<void> => {
    front = await startForgetful(nas.port, change);
    const { options, ...connection } = nas.connection('nas', front.port);
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [{ ...connection, options: { ...options, vendor: 'rclone' } }],
      shares: [{ name: SHARE, connection: 'nas', remote_path: SHARE }],
    });
    await daemon.start();
    await daemon.healthy();
  };
  const sh = async (script: string): Promise<void> => {
    const { code, output } = await runClient(
      'sh',
      ['-c', `cd "${daemon.mountPoint(SHARE)}" && ${script}`],
      30_000,
    );
    assert.equal(code, 0, `${script}: ${output}`);
  };
  const queue = async (): Promise<string> => (await daemon.cli('queue', SHARE)).stdout;

  beforeEach(async () => {
    scratch = await createScratch('layer-unkept-times');
    nas = await Nas.create(scratch, { protocol: 'webdav', files: { 'files/theirs': 10 } });
  });
  afterEach(async () => {
    await scratch.close();
    await front?.close();
  });

  it('is sent each file once, also after a restart, and leaves what others save', async () => {
    await start();
    // Written long ago: what arrives now shows another time.
    await sh('printf "notes 1" > notes; touch -d "2020-02-02 10:00" notes');
    await daemon.synced(SYNCED_MS);
    assert.deepEqual((await readdir(nas.path(SHARE))).sort(), ['notes', 'theirs']);
    assert.equal(front!.puts(), 1);
    assert.doesNotMatch(await daemon.log(), UNTIMED);
    await sh('printf "plan 1" > plan; touch -d "2020-02-02 10:00" plan');
    await daemon.synced(SYNCED_MS);
    assert.equal(front!.puts(), 2);
    assert.match(await daemon.log(), UNTIMED);
    await daemon.stop();
    await daemon.start();
    await daemon.healthy();
    await sh('printf "notes 2" > notes; touch -d "2020-02-02 10:00" notes');
    await daemon.synced(SYNCED_MS);
    assert.deepEqual((await readdir(nas.path(SHARE))).sort(), ['notes', 'plan', 'theirs']);
    assert.equal(front!.puts(), 3);
    await daemon.cli('queue', SHARE, '--pause', '1h');
    await sh('printf "notes 3" > notes');
    await writeFile(nas.path(SHARE, 'notes'), 'notes 9');
    const hour = Date.now() / 1_000 - 3_600;
    await utimes(nas.path(SHARE, 'notes'), hour, hour);
    await daemon.cli('queue', SHARE, '--resume');
    await daemon.synced(SYNCED_MS);
    const names = (await readdir(nas.path(SHARE))).sort().filter((name) => name !== 'plan');
    assert.equal(names.length, 3, names.join(', '));
    assert.deepEqual(
      await Promise.all(
        names.map(async (name) => (await runClient('cat', [nas.path(SHARE, name)], 5_000)).output),
      ),
      ['notes 9', 'notes 3', (await runClient('cat', [nas.path(SHARE, 'theirs')], 5_000)).output].sort(
        (a, b) => Number(b === 'notes 9') - Number(a === 'notes 9'),
      ),
    );
  });

  for (const { what, change } of [
    { what: 'ends of lines', change: (text: string) => text.replaceAll('\n', '\r\n') },
    { what: 'letters', change: (text: string) => text.toUpperCase() },
  ])
    it(`is left one copy at the most where it changes ${what}, and the file is stuck with a sentence`, async () => {
      await start(change);
      await sh('printf "one\\ntwo\\n" > notes; touch -d "2020-02-02 10:00" notes');
      const stuck = /stuck .*(sizes differ|shows another file)/;
      await until('the file is stuck', async () => stuck.test(await queue()), { timeoutMs: 90_000 });
      assert.ok(front!.puts() >= 3);
      const names = (await readdir(nas.path(SHARE))).filter((name) => name.startsWith('notes'));
      assert.ok(names.length <= 2, names.join(', '));
    });
});
