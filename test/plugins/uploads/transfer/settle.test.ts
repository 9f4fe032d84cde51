/** What is cleared before a share is mounted again, while somebody still works in it through the former mount. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, lstatSync, mkdirSync, renameSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { it } from 'node:test';
import { Records } from '../../../../plugins/uploads/compare/records.ts';
import { keyOf } from '../../../../plugins/uploads/compare/scan.ts';
import { settleUpper } from '../../../../plugins/uploads/transfer/leaving/settle.ts';
import { processes, TestShare } from '../../../support/write-layer/uploader-share.ts';

it('removes nothing outside of the share, by a link in the place of a folder', async () => {
  const share = new TestShare();
  const outside = join(share.root, 'outside');
  try {
    for (const folder of [join(share.nas, 'p/d'), join(share.nas, 'other'), join(outside, 'd')])
      mkdirSync(folder, { recursive: true });
    share.up();
    for (const folder of ['p/d', 'other']) chmodSync(share.at(folder), 0o700);
    share.down();
    const { ino, birthtimeNs } = lstatSync(share.upper, { bigint: true });
    const records = await Records.open(share.records, `${ino} ${birthtimeNs}`);
    // So that the remote is asked, after the upper folder was read.
    const other = lstatSync(join(share.upper, 'other'), { bigint: true });
    records.setMove(keyOf(other.ino, other.birthtimeNs), { at: 'x', going: 'y' });
    await records.close();
    const swap = (): void => {
      renameSync(join(share.upper, 'p'), join(share.upper, 'q'));
      symlinkSync(outside, join(share.upper, 'p'));
    };
    const remote = share.remote();
    const stat: typeof remote.stat = async (...args) => {
      if (existsSync(join(share.upper, 'p/d')) && !existsSync(join(share.upper, 'q'))) swap();
      return remote.stat(...args);
    };
    const options = {
      upper: share.upper,
      records: share.records,
      remote: { ...remote, stat },
      signal: new AbortController().signal,
    };
    await assert.rejects(settleUpper(options, processes), /ELOOP|ENOTDIR|is being renamed/);
    assert.ok(existsSync(join(outside, 'd')));
    // The next one sees what is there.
    await settleUpper({ ...options, remote }, processes);
    assert.ok(existsSync(join(outside, 'd')));
  } finally {
    share.close();
  }
});
