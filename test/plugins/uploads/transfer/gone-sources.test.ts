/** What the NAS has by its new name already, and what lies in a renamed folder: no absence counts as a deletion. */
import assert from 'node:assert/strict';
import { mkdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

describe('what was renamed', () => {
  let share: TestShare;
  beforeEach(() => {
    share = new TestShare();
  });
  afterEach(() => share.close());

  /** Long before anything that is done here. */
  const onNas = (path: string): void => {
    mkdirSync(join(share.nas, path, '..'), { recursive: true });
    writeFileSync(join(share.nas, path), path);
    utimesSync(join(share.nas, path), 1_600_000_000, 1_600_000_000);
  };
  const bringUp = async (): Promise<void> => {
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
  };
  /** The NAS has it by its new name already, and nothing here says so: its records are gone. */
  const movedUnrecorded = (from: string, to: string): void => {
    renameSync(share.at(from), share.at(to));
    share.down();
    renameSync(join(share.nas, from), join(share.nas, to));
    rmSync(share.records, { recursive: true });
    mkdirSync(share.records);
    share.up();
  };

  it('stays where the NAS has it by its new name, and only the mark tells of the former one: a folder', async () => {
    onNas('A/x');
    onNas('A/in/y');
    share.up();
    movedUnrecorded('A', 'B');
    await bringUp();
    assert.deepEqual(Object.fromEntries(treeOf(share.nas)), {
      B: '/',
      'B/in': '/',
      'B/in/y': 'A/in/y',
      'B/x': 'A/x',
    });
  });

  it('stays where the NAS has it by its new name, and only the mark tells of the former one: a file', async () => {
    onNas('a');
    share.up();
    movedUnrecorded('a', 'b');
    await bringUp();
    assert.deepEqual(Object.fromEntries(treeOf(share.nas)), { b: 'a' });
  });

  it('keeps what others put into a folder that users made in it, when the share is mounted again first', async () => {
    onNas('F/x');
    share.up();
    mkdirSync(share.at('F/sub'));
    await bringUp();
    onNas('F/sub/of others');
    share.down();
    share.up();
    renameSync(share.at('F'), share.at('G'));
    await share.renew();
    await bringUp();
    assert.deepEqual(Object.fromEntries(treeOf(share.nas)), {
      G: '/',
      'G/sub': '/',
      'G/sub/of others': 'F/sub/of others',
      'G/x': 'F/x',
    });
  });
});
