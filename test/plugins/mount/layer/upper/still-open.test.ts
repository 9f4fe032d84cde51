/** Whether programs write to files of a layer: no process is started where there is no file. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { layerPaths } from '../../../../../plugins/mount/layer/paths.ts';
import { recoverUnmounted } from '../../../../../plugins/mount/layer/upper/set-aside.ts';
import { isWrittenTo, withoutLease } from '../../../../../plugins/mount/layer/upper/still-open.ts';
import { collectLog } from '../../../../support/platform/collected-log.ts';
import { processes } from '../../../../support/write-layer/uploader-share.ts';

const PERL_BASE = 'BEGIN { @INC = grep { m{/perl-base\\z} } @INC or die }';

describe('writers to files of a layer', () => {
  let root: string;
  let started: number;
  /** With the modules of `perl-base` alone: many a machine has no others. */
  const counting: Pick<Processes, 'run'> = {
    run: ({ args, ...spec }) => {
      started += 1;
      return processes.run({ ...spec, args: ['-e', PERL_BASE, ...args] });
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

  it('are asked of no link, pipe or name that is no folder, and found by any name', async () => {
    const upper = join(root, 'upper');
    mkdirSync(join(upper, 'a\nb'), { recursive: true });
    const elsewhere = join(root, 'elsewhere');
    writeFileSync(elsewhere, '');
    symlinkSync(elsewhere, join(upper, 'link'));
    symlinkSync(root, join(upper, 'to folder'));
    execFileSync('mkfifo', [join(upper, 'pipe')]);
    const written = [openSync(elsewhere, 'a')];
    try {
      assert.equal(await isWrittenTo([upper], counting), false);
      written.push(openSync(join(upper, 'a\nb', '$x "y" -l'), 'a'));
      assert.equal(await isWrittenTo([upper], counting), true);
    } finally {
      for (const descriptor of written) closeSync(descriptor);
    }
    assert.equal(started, 2);
  });

  it('are not given a lease', async () => {
    const files = ['free', 'read', 'written'].map((name) => join(root, name));
    for (const file of files) writeFileSync(file, '');
    const open = [openSync(files[1] ?? '', 'r'), openSync(files[2] ?? '', 'a')];
    try {
      assert.deepEqual(await withoutLease(files, 'read', counting), new Set(files.slice(2)));
      assert.deepEqual(await withoutLease(files, 'write', counting), new Set(files.slice(1)));
    } finally {
      for (const descriptor of open) closeSync(descriptor);
    }
  });

  it('are not looked for where nothing was being taken out', async () => {
    const paths = layerPaths(root);
    mkdirSync(join(paths.aside, '.nothing'), { recursive: true });
    assert.equal(await recoverUnmounted(paths, { log: collectLog().log, processes: counting }), 0);
    assert.equal(started, 0);
  });
});
