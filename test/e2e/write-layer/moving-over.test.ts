// @load quiet
// @start 5
/**
 * A share goes over to the write layer and back again, while files wait that the former way of writing has
 * not brought to the NAS. At every moment at which the status says that all is synced, the NAS has it all.
 */
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { runClient } from '../../support/exports/client-programs.ts';
import { Nas } from '../../support/nas/nas.ts';
import { processesNaming, signalProcess } from '../../support/platform/processes.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { differences, treeOf } from '../../support/write-layer/folder-tree.ts';

const SHARE = 'team';
const SYNCED_MS = 90_000;
/** The NAS answers no sooner than a check of it is due. */
const OVER_MS = 60_000;
const TURNING = /another way of writing is set/;

describe('a share goes over to another way of writing', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let root: string;
  let model: string;

  const text = (isLayered: boolean, writeBack = '1s'): string =>
    daemon.text({ sections: { mount: { write_layer: isLayered, write_back: writeBack } } });
  const setLayer = (isLayered: boolean, writeBack?: string): Promise<void> =>
    daemon.writeConfig(text(isLayered, writeBack));

  const sh = async (folder: string, script: string): Promise<void> => {
    const { code, output } = await runClient('sh', ['-c', `cd "${folder}" && { ${script}\n}`], 60_000);
    assert.equal(code, 0, `${script}: ${output}`);
  };
  /** On the share and on the plain folder. */
  const both = async (script: string): Promise<void> => {
    await sh(root, script);
    await sh(model, script);
  };
  const kindOf = async (): Promise<string> =>
    /^\S+ (?:fuse\.rclone|overlay) /m
      .exec(
        (await readFile('/proc/self/mounts', 'utf8'))
          .split('\n')
          .filter((line) => line.split(' ')[1] === root)
          .map((line) => `${line.split(' ')[0]} ${line.split(' ')[2]} `)
          .join('\n'),
      )?.[0]
      .split(' ')[1] ?? 'none';
  const isKind = (kind: 'overlay' | 'fuse.rclone'): Promise<unknown> =>
    until(`the share is mounted as ${kind}`, async () => (await kindOf()) === kind, { timeoutMs: OVER_MS });
  const assertOnNas = (when: string): void =>
    assert.deepEqual(differences(treeOf(nas.path('team')), treeOf(model)), [], when);
  const synced = async (): Promise<void> => {
    await daemon.synced(SYNCED_MS);
    assertOnNas('though all_synced is true');
  };
  const isUp = (): Promise<void> => daemon.healthy([SHARE], OVER_MS);
  /** The daemon and all that it left running, as a machine that is switched off. */
  const killAll = async (): Promise<void> => {
    await daemon.end();
    for (const one of await processesNaming(daemon.stateDir)) signalProcess(one, 'SIGKILL');
    await until('all have ended', async () => (await processesNaming(daemon.stateDir)).length === 0, {
      timeoutMs: 10_000,
    });
  };
  const assertWaits = async (): Promise<void> => {
    const isSaid = async (): Promise<boolean> => {
      const { all_synced: isSynced, shares } = await daemon.status();
      assert.equal(isSynced, false, 'files wait');
      return (shares[0]?.dirty_count ?? 0) > 0;
    };
    await until('the share says that files wait', isSaid, { timeoutMs: 20_000 });
  };
  const assertTurning = (): Promise<unknown> =>
    until('the share says why', async () => TURNING.test((await daemon.share(SHARE)).health_message ?? ''), {
      timeoutMs: 20_000,
    });

  /** A share in one way of writing, its first files read, and nothing waiting. */
  const begin = async (isLayered: boolean, writeBack?: string): Promise<void> => {
    await setLayer(isLayered, writeBack);
    await daemon.start();
    await isUp();
    await sh(root, 'cat a.bin tree/c > /dev/null; ls -R . > /dev/null');
    await daemon.synced(SYNCED_MS);
  };

  beforeEach(async () => {
    scratch = await createScratch('moving-over');
    nas = await Nas.create(scratch, {
      files: { 'team/a.bin': 300_000, 'team/b.txt': 2_000, 'team/big': 9_000_000, 'team/tree/c': 100 },
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

  /** Changes of every kind; of the large file most is on the NAS alone. */
  const CHANGES = `printf new > new; printf more >> a.bin; printf x | dd of=big bs=1 seek=100 conv=notrunc 2>/dev/null
    mv b.txt renamed.txt; mkdir made; printf 2 > made/2`;
  /** Not with a kill of rclone: its own cache forgets such a file, with or without a layer to come. */
  const SAVE = 'printf 1 > saved.tmp; mv saved.tmp tree/c';

  describe('to the write layer', () => {
    it('brings up first what a killed rclone left, whole or not', async () => {
      await begin(false, '30s');
      await both(CHANGES);
      await nas.stop();
      await killAll();
      await setLayer(true);
      await daemon.start();
      await until(
        'the share waits for its NAS',
        async () => (await daemon.share(SHARE)).health === 'failed',
        {
          timeoutMs: OVER_MS,
        },
      );
      await assertWaits();
      await nas.start();
      await isUp();
      await synced();
      await isKind('overlay');
      await isUp();
      await both('printf later >> big; cat made/2 >> new; rm a.bin');
      await synced();
      await nas.stop();
      await until('the layer needs no NAS', () => sh(root, 'printf away > made/away').then(() => true), {
        timeoutMs: 10_000,
      });
    });

    it('leaves an adopted share writable while its NAS is away, and takes it over afterwards', async () => {
      await begin(false, '10s');
      await both(CHANGES);
      await nas.stop();
      await daemon.end();
      await setLayer(true, '10s');
      await daemon.start();
      await isUp();
      await assertTurning();
      await assertWaits();
      await both('printf later > later; printf more >> new');
      assert.equal(await kindOf(), 'fuse.rclone');
      process.kill(await daemon.rclonePid(SHARE), 'SIGKILL');
      await nas.start();
      await isKind('overlay');
      await isUp();
      await synced();
      assert.equal((await daemon.share(SHARE)).health_message, null);
    });

    it('takes over a living share, and programs go on writing until then', async () => {
      await begin(false, '8s');
      await both(`${CHANGES}; ${SAVE}`);
      await daemon.writeConfig(text(true, '8s'));
      await assertTurning();
      await both('printf later > later');
      await isKind('overlay');
      assertOnNas('before the layer came');
      await isUp();
      await both('printf later >> later');
      await synced();
    });
  });

  describe('back from it', () => {
    const upper = (): string => join(daemon.cacheDir, SHARE, 'layer', 'upper');

    it('shows and brings up what waits in the layer, also after all was killed with the NAS away', async () => {
      const former = join(daemon.cacheDir, SHARE, 'former-layer');
      mkdirSync(former, { recursive: true });
      await begin(true, '30s');
      assert.equal(existsSync(former), false, 'the removal of a former layer that was cut off is finished');
      await both(`${CHANGES}; ${SAVE}; mv tree moved; rm moved/c`);
      await nas.stop();
      await killAll();
      await setLayer(false);
      await daemon.start();
      await isUp();
      assert.equal(await kindOf(), 'overlay', 'what waits is not hidden');
      await assertTurning();
      await assertWaits();
      await sh(root, 'test "$(cat new)" = new');
      await nas.start();
      await isKind('fuse.rclone');
      assertOnNas('before rclone took over');
      await isUp();
      assert.equal(existsSync(upper()), false, 'nothing of the layer may hide what is written now');
      await both('printf later >> big; printf again > b.txt; mkdir -p tree; printf 3 > tree/c');
      await synced();
      await setLayer(true);
      await isKind('overlay');
      await isUp();
      await both('cat b.txt tree/c > both');
      await synced();
    });

    it('drains an adopted layer, also when rclone is killed below it', async () => {
      await begin(true, '10s');
      await nas.stop();
      await both('printf more >> a.bin; printf root > root');
      await daemon.end();
      await setLayer(false, '10s');
      await daemon.start();
      await isUp();
      await assertTurning();
      await assertWaits();
      process.kill(await daemon.rclonePid(SHARE), 'SIGKILL');
      await both('printf more >> root');
      await nas.start();
      await isKind('fuse.rclone');
      assertOnNas('before rclone took over');
      await isUp();
      await synced();
    });
  });
});
