// @load quiet
// @start 5
/** A former version's rclone took the writes of a share: what waits in its cache goes up first. */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { startFormerMount } from '../../support/mount/former-mount.ts';
import { Nas } from '../../support/nas/nas.ts';
import { isMounted, mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { processesNaming, signalProcess } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { differences, treeOf } from '../../support/write-layer/folder-tree.ts';

const SHARE = 'team';
const SYNCED_MS = 90_000;
const UP_MS = 90_000;
const TOLD = /files? that a former version wrote/;

/** Changes of every kind; of the large file most is on the NAS alone. */
const CHANGES = `printf new > new; printf more >> a.bin; printf x | dd of=big bs=1 seek=100 conv=notrunc 2>/dev/null
  mv b.txt renamed.txt; mkdir made; printf 2 > made/2`;

describe('a share whose writes a former version took', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let root: string;
  let model: string;

  const sh = async (folder: string, script: string): Promise<void> => {
    const { code, output } = await runClient('sh', ['-c', `cd "${folder}" && { ${script}\n}`], 60_000);
    assert.equal(code, 0, `${script}: ${output}`);
  };
  /** On the share and on the plain folder. */
  const both = async (script: string): Promise<void> => {
    await sh(root, script);
    await sh(model, script);
  };
  const begin = async (writeBack: string): Promise<number> => {
    const pid = await startFormerMount(daemon, nas, {
      share: SHARE,
      remotePath: 'team',
      writeBack,
    });
    await sh(root, 'cat a.bin tree/c > /dev/null; ls -R . > /dev/null');
    return pid;
  };
  /** As a machine that is switched off. */
  const killAll = async (): Promise<void> => {
    for (const one of await processesNaming(daemon.stateDir)) signalProcess(one, 'SIGKILL');
    await until('all have ended', async () => (await processesNaming(daemon.stateDir)).length === 0, {
      timeoutMs: 10_000,
    });
  };
  const isLayered = (): Promise<unknown> =>
    until(
      'the share has its layer',
      async () => (await mountsBelow(root)).some(({ fsType }) => fsType === 'overlay'),
      { timeoutMs: UP_MS },
    );
  const assertOnNas = (): void =>
    assert.deepEqual(differences(treeOf(nas.path('team')), treeOf(model)), [], 'though all_synced is true');
  const assertWaits = (): Promise<unknown> =>
    until(
      'the share says that files wait',
      async () => {
        const { all_synced: isSynced, shares } = await daemon.status();
        assert.equal(isSynced, false, 'files wait');
        return (shares[0]?.dirty_count ?? 0) > 0;
      },
      { timeoutMs: 20_000 },
    );

  beforeEach(async () => {
    scratch = await createScratch('moving-over');
    nas = await Nas.create(scratch, {
      files: {
        'team/a.bin': 300_000,
        'team/b.txt': 2_000,
        'team/big': 9_000_000,
        'team/tree/c': 100,
      },
    });
    model = scratch.path('model');
    cpSync(nas.path('team'), model, { recursive: true });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: SHARE, connection: 'nas', remote_path: 'team' }],
    });
    root = daemon.mountPoint(SHARE);
  });
  afterEach(() => scratch.close());

  it('brings up first what a killed rclone left, whole or not, with the NAS away and the daemon killed', async () => {
    await begin('1h');
    await both(CHANGES);
    await nas.stop();
    await killAll();
    await daemon.start();
    await until('it waits for its NAS', async () => (await daemon.share(SHARE)).health === 'failed', {
      timeoutMs: UP_MS,
    });
    await assertWaits();
    await nas.start();
    await until('it is being sent', async () => (await readFile(daemon.logFile, 'utf8')).match(TOLD), {
      timeoutMs: UP_MS,
    });
    await daemon.end();
    await daemon.start();
    await isLayered();
    await daemon.healthy([SHARE], UP_MS);
    await daemon.synced(SYNCED_MS);
    assertOnNas();
    await both('printf later >> big; cat made/2 >> new; rm a.bin');
    await daemon.synced(SYNCED_MS);
    assertOnNas();
  });

  it('replaces nothing that others saved meanwhile, and sends what waited beside it', async () => {
    await begin('1h');
    await both(`printf mine > new; printf mine >> a.bin; printf x | dd of=big bs=1 seek=100 conv=notrunc 2>/dev/null
      printf mine > b.txt; printf more >> tree/c`);
    await nas.stop();
    await killAll();
    const theirs = 'printf theirs > new; printf theirs >> a.bin; printf theirs >> big; rm b.txt';
    await sh(nas.path('team'), theirs);
    await daemon.start();
    await nas.start();
    await daemon.healthy([SHARE], UP_MS);
    await daemon.synced(SYNCED_MS);
    const names = await readdir(nas.path('team'));
    const copyOf = (name: string): string | undefined =>
      names.find((one) => one.startsWith(`${name} (conflict `));
    assert.equal(await readFile(nas.path('team/new'), 'utf8'), 'theirs');
    assert.equal(await readFile(nas.path(`team/${copyOf('new')}`), 'utf8'), 'mine');
    assert.equal((await readFile(nas.path('team/a.bin'), 'latin1')).slice(300_000), 'theirs');
    assert.deepEqual(await readFile(nas.path(`team/${copyOf('a')}`)), await readFile(`${model}/a.bin`));
    assert.equal((await readFile(nas.path('team/big'), 'latin1')).slice(9_000_000), 'theirs');
    // rclone may have fetched all of it by then; else most is of a version that nobody has any more.
    const bigCopy = copyOf('big');
    const kept = await runClient('find', [join(daemon.cacheDir, SHARE, 'recovered'), '-name', 'big'], 5_000);
    if (bigCopy === undefined) assert.match(kept.output, /\/big$/m, 'the parts that were changed are kept');
    else assert.deepEqual(await readFile(nas.path(`team/${bigCopy}`)), await readFile(`${model}/big`));
    for (const one of ['b.txt', 'tree/c'])
      assert.deepEqual(await readFile(nas.path(`team/${one}`)), await readFile(`${model}/${one}`), one);
  });

  it('takes over a living mount once nothing waits in it', async () => {
    const pid = await begin('5s');
    await both(CHANGES);
    await daemon.start();
    await isLayered();
    assert.equal(await isMounted(root), true);
    assert.ok(!(await processesNaming(daemon.cacheDir)).some((one) => one.pid === pid));
    await daemon.healthy([SHARE], UP_MS);
    await daemon.synced(SYNCED_MS);
    assertOnNas();
    await both('printf later > later');
    await daemon.synced(SYNCED_MS);
    assertOnNas();
  });
});
