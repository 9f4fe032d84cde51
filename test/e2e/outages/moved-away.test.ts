// @load quiet
// @start 2
/**
 * The place of a share changes while its NAS is away: it is frozen until what waits has gone up. Whether its cached
 * files can be read meanwhile, the status and the overview say as it is.
 */
import assert from 'node:assert/strict';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

describe('a share whose place changes while its NAS is away', () => {
  let scratch: Scratch;
  let relay: Relay;
  let daemon: Daemon;

  beforeEach(async () => {
    scratch = await createScratch('moved-away');
    const nas = await Nas.create(scratch, { files: { 'a/x.bin': 1_000, 'b/y.bin': 1_000 } });
    relay = await Relay.start(scratch, { targetPort: nas.port });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas', relay.port)],
      shares: [{ name: 'files', connection: 'nas', remote_path: 'a' }],
    });
    await daemon.start();
    await daemon.healthy();
    await readFile(path('x.bin'));
    // From then on they are usable in all folders, and that is what has to be said.
    await until(
      'its folders are listed',
      async () => /folders with cached files listed/.test(await daemon.log()),
      {
        timeoutMs: 30_000,
      },
    );
    await relay.cut();
    await until(
      'it is known to be away',
      async () => (await daemon.get<{ readonly nas_offline: boolean }>('/api/status')).body.nas_offline,
      { timeoutMs: 60_000 },
    );
    await writeFile(path('waits.txt'), 'x');
  });
  afterEach(() => scratch.close());

  const path = (name: string): string => `${daemon.mountPoint('files')}/${name}`;
  const overview = async (): Promise<string> =>
    (await daemon.get('/')).text.replaceAll(/<[^>]+>/g, ' ').replaceAll(/\s+/g, ' ');
  const move = async (): Promise<void> => {
    const shares = [{ name: 'files', connection: 'nas', remote_path: 'b' }];
    assert.equal((await daemon.submit(daemon.text({ shares }))).status, 200);
    await until(
      'it takes no more writes',
      () =>
        writeFile(path('late.txt'), '').then(
          () => false,
          (error: NodeJS.ErrnoException) => error.code === 'EROFS',
        ),
      { timeoutMs: 60_000 },
    );
  };
  const isMoved = (): Promise<unknown> =>
    until('it shows its new folder', async () => (await readdir(path(''))).join() === 'y.bin', {
      timeoutMs: 90_000,
    });

  it('stays readable, and is told so', { timeout: 240_000 }, async () => {
    await move();
    assert.equal((await readFile(path('x.bin'))).length, 1_000);
    assert.equal((await daemon.share('files')).health, 'healthy');
    assert.match(await overview(), /; cached files are usable /);
    await relay.restore();
    await isMoved();
  });

  it('stays readable also where a file is open for writing', { timeout: 240_000 }, async () => {
    const held = await open(path('held.txt'), 'w');
    try {
      await move();
      const shown = await readdir(path(''));
      for (const name of ['held.txt', 'waits.txt', 'x.bin']) assert.ok(shown.includes(name), shown.join());
      assert.equal((await readFile(path('x.bin'))).length, 1_000);
      assert.equal((await daemon.share('files')).health, 'healthy');
      assert.match(await overview(), /; cached files are usable /);
    } finally {
      await held.close();
    }
    await relay.restore();
    await isMoved();
  });
});
