/** When the note of the boot goes after the unmount of a share with a write layer. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { layerPaths } from '../../../../plugins/mount/layer/paths.ts';
import { forgetWhenStill } from '../../../../plugins/mount/recovery/forget-when-still.ts';

const clock = createClock();

describe('the note of the boot after an unmount', () => {
  const root = mkdtempSync(join(tmpdir(), 'mk-still-'));
  after(() => rmSync(root, { recursive: true, force: true }));

  const steps: string[] = [];
  const processes = {
    run: ({ command, args, env }: { command: string; args: readonly string[]; env?: NodeJS.ProcessEnv }) => {
      steps.push('look');
      const { status, stdout, stderr } = spawnSync(command, args, { env: { ...process.env, ...env } });
      return Promise.resolve({ code: status, stdout: String(stdout), stderr: String(stderr) });
    },
  };
  const cache = (): { cacheDir: string; files: string[] } => {
    const cacheDir = mkdtempSync(join(root, 'share-'));
    const { upper, aside } = layerPaths(cacheDir);
    // The layer of another place that the share led to, which whoever had it open may still write to.
    const former = layerPaths(join(cacheDir, 'aside', 'former')).upper;
    const files = [join(upper, 'file'), join(aside, '1-1', '0'), join(former, 'file')];
    for (const folder of [upper, join(aside, '1-1'), former]) mkdirSync(folder, { recursive: true });
    for (const file of [...files, join(cacheDir, 'boot')]) writeFileSync(file, 'x');
    return { cacheDir, files };
  };
  const stays = async (cacheDir: string, { sync = Promise.resolve(true), leftMs = 10_000 } = {}) => {
    const writeOut = { settle: () => (steps.push('sync'), sync) };
    const untilMs = clock.monotonic() + leftMs;
    await forgetWhenStill(cacheDir, { untilMs }, { clock, processes, writeOut } as never);
    return existsSync(join(cacheDir, 'boot'));
  };

  it('goes where nobody writes any more, once a later sync has succeeded', async () => {
    assert.equal(await stays(cache().cacheDir), false);
    assert.deepEqual(steps, ['look', 'sync']);
    const never = new Promise<boolean>(() => undefined);
    assert.equal(await stays(cache().cacheDir, { sync: Promise.resolve(false) }), true);
    assert.equal(await stays(cache().cacheDir, { sync: never }), true);
    assert.equal(await stays(cache().cacheDir, { leftMs: 0 }), true);
  });

  it('stays while a program has a file open for writing, also one that is leaving', async () => {
    const { cacheDir, files } = cache();
    for (const file of files) {
      const held = openSync(file, 'a');
      assert.equal(await stays(cacheDir), true, file);
      closeSync(held);
    }
    assert.equal(await stays(cacheDir), false);
  });
});
