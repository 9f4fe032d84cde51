/** Folders that are made on the remote: one that it only says it has, and one in the place of what nobody has seen. */
import assert from 'node:assert/strict';
import { existsSync, lstatSync, mkdirSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Item } from '../../../../plugins/uploads/compare/plan-types.ts';
import { Records } from '../../../../plugins/uploads/compare/records.ts';
import { keyOf } from '../../../../plugins/uploads/compare/scan.ts';
import { makeFolder } from '../../../../plugins/uploads/transfer/folders.ts';
import type { StepTools } from '../../../../plugins/uploads/transfer/step-tools.ts';
import { startRemote } from '../../../support/write-layer/uploader-remote.ts';
import type { TestRemote } from '../../../support/write-layer/uploader-remote.ts';
import { clock, settle, TestShare } from '../../../support/write-layer/uploader-share.ts';

describe('a new folder on a NAS over WebDAV', () => {
  let share: TestShare;
  let remote: TestRemote;
  const setReadOnly = (is: boolean): void => void execFileSync('chattr', [is ? '+i' : '-i', share.nas]);

  beforeEach(async () => {
    share = new TestShare();
    remote = await startRemote('webdav', share.nas);
    share.files = remote.files;
    share.up();
  });
  afterEach(async () => {
    await remote.close();
    share.close();
  });

  it('is there when it counts as made, also where the NAS was read-only for a while', async () => {
    mkdirSync(share.at('d'));
    setReadOnly(true);
    const uploader = share.uploader();
    try {
      await uploader.look(new AbortController().signal);
      uploader.flush();
      await uploader.settled();
      assert.equal(existsSync(join(share.nas, 'd')), false);
      assert.ok(
        uploader.queue().some(({ path }) => path === 'd'),
        'it waits',
      );
    } finally {
      setReadOnly(false);
    }
    await settle(uploader);
    await uploader.stop();
    assert.equal(existsSync(join(share.nas, 'd')), true);
  });
});

describe('a folder that is made where one was removed that nobody saw', () => {
  it('leaves on record what waits in that one to be moved out, with all in it', async () => {
    const share = new TestShare();
    const records = await Records.open(share.records, 'upper');
    try {
      for (const path of ['nas/e', 'upper/e']) mkdirSync(join(share.root, path));
      const { ino, birthtimeNs } = lstatSync(join(share.upper, 'e'), { bigint: true });
      const entry = { path: 'e', kind: 'folder', key: keyOf(ino, birthtimeNs) } as Item['entry'];
      const saved = { kind: 'file', version: { bytes: 1, modifiedMs: 1_700_000_000_000 } } as const;
      for (const path of ['e/f/z', 'e/x']) records.set(path, { remote: saved });
      records.setMove('of g', { at: 'e/f', former: ['d/f'] });
      records.setMove('of one at the very place', { at: 'e' });
      const item = { action: 'make folder', path: 'e', place: 'e', entry, isOverUnseen: true } as Item;
      await makeFolder(item, {
        layer: { upper: share.upper },
        remote: share.remote(),
        records,
        clock,
        signal: new AbortController().signal,
        onConflict: () => undefined,
        touched: () => undefined,
      } as unknown as StepTools);
      assert.deepEqual(
        ['e/f/z', 'e/x'].map((path) => records.places.has(path)),
        [true, false],
      );
    } finally {
      await records.close();
      share.close();
    }
  });
});
