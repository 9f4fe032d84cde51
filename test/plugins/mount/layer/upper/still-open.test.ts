/** Whether programs write to files of a layer: no process is started where there is no file. */
import assert from 'node:assert/strict';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { layerPaths } from '../../../../../plugins/mount/layer/paths.ts';
import { recoverUnmounted } from '../../../../../plugins/mount/layer/upper/set-aside.ts';
import { isWrittenTo } from '../../../../../plugins/mount/layer/upper/still-open.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { processes } from '../../../../support/write-layer/uploader-share.ts';

describe('writers to files of a layer', () => {
  let root: string;
  let started: number;
  const counting: Pick<Processes, 'run'> = {
    run: (spec) => {
      started += 1;
      return processes.run(spec);
    },
  };

  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), 'mk-still-open-'));
    started = 0;
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));

  it('are none, without a look, where there are no files', async () => {
    mkdirSync(join(root, 'upper/a/b'), { recursive: true });
    assert.equal(await isWrittenTo([join(root, 'upper'), join(root, 'missing')], counting), false);
    assert.equal(started, 0);
  });

  it('are found below folders', async () => {
    mkdirSync(join(root, 'upper/a/b'), { recursive: true });
    const file = join(root, 'upper/a/b/f');
    writeFileSync(file, '');
    assert.equal(await isWrittenTo([join(root, 'upper')], counting), false);
    const descriptor = openSync(file, 'a');
    try {
      assert.equal(await isWrittenTo([join(root, 'upper')], counting), true);
    } finally {
      closeSync(descriptor);
    }
    assert.equal(started, 2);
  });

  it('are not looked for where nothing was being taken out', async () => {
    const paths = layerPaths(root);
    mkdirSync(join(paths.aside, '.nothing'), { recursive: true });
    assert.equal(await recoverUnmounted(paths, { log: collectLog().log, processes: counting }), 0);
    assert.equal(started, 0);
  });
});
