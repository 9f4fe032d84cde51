/** What is looked through after a power cut: all layers of a share, also those that wait for it to lead back. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { layerPaths } from '../../../../plugins/mount/layer/paths.ts';
import { keepLateWrites } from '../../../../plugins/mount/recovery/late-writes.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

it('files that were being written when the power went are looked for in what was set aside, too', async (t) => {
  const cacheDir = mkdtempSync(join(tmpdir(), 'mk-late-'));
  t.after(() => rmSync(cacheDir, { recursive: true, force: true }));
  const folders = [cacheDir, join(cacheDir, 'aside', 'former'), join(cacheDir, 'aside', 'empty')];
  for (const folder of folders) mkdirSync(layerPaths(folder).upper, { recursive: true });
  for (const folder of folders.slice(0, 2)) writeFileSync(join(layerPaths(folder).upper, 'file'), 'x');
  writeFileSync(join(cacheDir, 'boot'), 'another');
  utimesSync(join(cacheDir, 'boot'), 1_000, 1_000);
  const asked: unknown[] = [];
  const uploader = () => ({
    noteLateWrites: ({ upper, records, sinceMs }: Record<string, unknown>) => {
      asked.push([upper, records, sinceMs]);
      return Promise.resolve(1);
    },
  });
  const { log, messages } = collectLog();
  const { signal } = new AbortController();
  await keepLateWrites({ cacheDir, log, signal }, { uploader } as never);
  const expected = folders.slice(0, 2).map(layerPaths);
  assert.deepEqual(
    asked,
    expected.map(({ upper, records }) => [upper, records, 1_000_000 - 100]),
  );
  assert.equal(messages().filter((one) => /when the power went/.test(one)).length, 2);
});
