/** What an unmount notes in a cache, and that it does so only where nobody else has it. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { holdFolder, isLockedNow } from '../../../../core/platform/state-lock.ts';
import { noteUnmounted } from '../../../../plugins/mount/recovery/after-unmount.ts';
import { layerPaths } from '../../../../plugins/mount/layer/paths.ts';

const clock = createClock();

describe('what an unmount notes in the cache', () => {
  const root = mkdtempSync(join(tmpdir(), 'mk-unmounted-'));
  after(() => rmSync(root, { recursive: true, force: true }));

  const processes = {
    run: ({ command, args, env }: { command: string; args: readonly string[]; env?: NodeJS.ProcessEnv }) => {
      const { status, stdout, stderr } = spawnSync(command, args, { env: { ...process.env, ...env } });
      return Promise.resolve({ code: status, stdout: String(stdout), stderr: String(stderr) });
    },
  };
  const cache = (): string => {
    const cacheDir = mkdtempSync(join(root, 'share-'));
    const { upper, aside } = layerPaths(cacheDir);
    for (const folder of [upper, aside]) mkdirSync(folder, { recursive: true });
    for (const file of [join(upper, 'file'), join(cacheDir, 'boot')]) writeFileSync(file, 'x');
    return cacheDir;
  };
  const onHold = <T>(cacheDir: string, act: () => Promise<T>): Promise<T> =>
    holdFolder(cacheDir, 'mounting', () => new Error('taken'), act);
  /** Resolves with what was noted: that all is on the remote, and that no boot has to be looked at. */
  const note = async (cacheDir: string, look = (): unknown => undefined): Promise<[boolean, boolean]> => {
    const uploader = {
      waiting: async () => {
        await look();
        return { count: 0, bytes: 0, paths: [] };
      },
    };
    const log = { warn: () => undefined };
    const writeOut = { settle: () => Promise.resolve(true) };
    await noteUnmounted(
      { shareName: 'work', cacheDir },
      { uploader: uploader as never, untilMs: clock.monotonic() + 10_000 },
      { clock, log, processes, writeOut } as never,
    );
    return [existsSync(join(cacheDir, 'layer', 'all-sent')), !existsSync(join(cacheDir, 'boot'))];
  };

  it('is noted while no other daemon can make the cache ready for itself', async () => {
    const cacheDir = cache();
    let said = '';
    const noted = await note(cacheDir, () =>
      onHold(cacheDir, () => Promise.resolve()).catch((error: unknown) => (said = (error as Error).message)),
    );
    assert.deepEqual([noted, said], [[true, true], 'taken']);
  });

  it('is left to another daemon that has the cache by then, or makes it ready', async () => {
    const asked = (): never => assert.fail('looked at');
    const cacheDir = cache();
    assert.deepEqual(await onHold(cacheDir, () => note(cacheDir, asked)), [false, false]);
    const mounted = await open(join(cacheDir, 'layer'));
    try {
      assert.equal(await isLockedNow(mounted.fd), true);
      assert.deepEqual(await note(cacheDir, asked), [false, false]);
    } finally {
      await mounted.close();
    }
    assert.deepEqual(await note(cacheDir), [true, true]);
  });
});
