/** When a write layer that was unmounted is marked as being on the remote as a whole. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { layerPaths } from '../../../../plugins/mount/layer/paths.ts';
import type { LayerPaths } from '../../../../plugins/mount/layer/paths.ts';
import { dropSentMark, markAllSent } from '../../../../plugins/mount/layer/sent-mark.ts';

const clock = createClock();

describe('the mark of a write layer that the remote has as a whole', () => {
  const root = mkdtempSync(join(tmpdir(), 'mk-sent-'));
  after(() => rmSync(root, { recursive: true, force: true }));

  const layer = (): { paths: LayerPaths; file: string; mark: string } => {
    const paths = layerPaths(mkdtempSync(join(root, 'share-')));
    for (const folder of [paths.upper, join(paths.aside, '.nothing')]) mkdirSync(folder, { recursive: true });
    const file = join(paths.upper, 'file');
    writeFileSync(file, 'x');
    return { paths, file, mark: join(paths.folder, 'all-sent') };
  };
  const processes = {
    run: ({ command, args, env }: { command: string; args: readonly string[]; env?: NodeJS.ProcessEnv }) => {
      const { status, stdout, stderr } = spawnSync(command, args, { env: { ...process.env, ...env } });
      return Promise.resolve({ code: status, stdout: String(stdout), stderr: String(stderr) });
    },
  };
  const tools = { clock, log: { warn: () => undefined }, processes } as never;
  const make = (paths: LayerPaths, { count = 0, leftMs = 10_000, during = (): void => undefined } = {}) =>
    markAllSent(
      paths,
      {
        uploader: {
          waiting: () => {
            during();
            return Promise.resolve({ count, bytes: 0, paths: [] });
          },
        } as never,
        untilMs: clock.monotonic() + leftMs,
      },
      tools,
    );

  it('is made where nothing waits, and goes before the next mount', async () => {
    const { paths, mark } = layer();
    await make(paths);
    assert.equal(existsSync(mark), true);
    await dropSentMark(paths);
    assert.equal(existsSync(mark), false);
    await dropSentMark(layerPaths(join(root, 'never-mounted')));
  });

  it('is not made while something waits, is open for writing, or lies aside, nor too late', async () => {
    const waits = layer();
    await make(waits.paths, { count: 1 });
    const late = layer();
    await make(late.paths, { leftMs: 0 });
    const open = layer();
    const held = openSync(open.file, 'a');
    await make(open.paths);
    closeSync(held);
    const aside = layer();
    mkdirSync(join(aside.paths.aside, '1-1'));
    writeFileSync(join(aside.paths.aside, '1-1/0'), 'x');
    const changedNs = String(statSync(join(aside.paths.aside, '1-1/0'), { bigint: true }).ctimeNs);
    writeFileSync(join(aside.paths.aside, '1-1/names.json'), JSON.stringify([{ path: 'a', changedNs }]));
    const kept = openSync(join(aside.paths.aside, '1-1/0'), 'a');
    await make(aside.paths);
    closeSync(kept);
    for (const { mark } of [waits, late, open, aside])
      assert.deepEqual([existsSync(mark), existsSync(`${mark}.new`)], [false, false], mark);
  });

  it('is older than whatever changes once nothing was seen to wait', async () => {
    const { paths, file, mark } = layer();
    await make(paths, { during: () => writeFileSync(file, 'other') });
    assert.ok(statSync(file).ctimeMs > statSync(mark).mtimeMs);
  });
});
