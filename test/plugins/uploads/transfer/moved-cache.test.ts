/** A cache that was moved to another disk: its upper folder has other inodes, and what others saved meanwhile stays. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { lookOnly } from '../../../support/write-layer/uploader-crash.ts';
import { settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const SECOND = 1_700_000_000;

describe('a cache on another disk', () => {
  let share: TestShare;
  const put = (path: string, text: string, seconds = SECOND): void => {
    writeFileSync(join(share.nas, path), text);
    utimesSync(join(share.nas, path), seconds, seconds);
  };
  const run = async (): Promise<void> => {
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
  };
  /** To another disk, and the share is mounted there. */
  const move = async (): Promise<void> => {
    share.down();
    execFileSync('cp', ['-a', share.upper, `${share.upper}.copy`]);
    rmSync(share.upper, { recursive: true });
    renameSync(`${share.upper}.copy`, share.upper);
    await share.settle();
    share.up();
  };

  beforeEach(async () => {
    share = new TestShare();
    for (const path of ['changed', 'clean', 'waits']) put(path, 'first');
    share.up();
    writeFileSync(share.at('clean'), 'of users, up there');
    await run();
    for (const path of ['changed', 'waits']) writeFileSync(share.at(path), 'of users');
    await lookOnly(share);
  });
  afterEach(() => share.close());

  it('replaces nothing that others saved meanwhile; what waits goes up', async () => {
    for (const path of ['changed', 'clean']) put(path, 'of others since', SECOND + 1_000);
    await move();
    await run();
    const found = treeOf(share.nas);
    assert.equal(found.get('changed'), 'of others since');
    assert.equal(found.get('clean'), 'of others since');
    assert.equal(found.get('waits'), 'of users');
    const copies = share.conflicts.map(({ path, copy }) => [path, found.get(copy)] as const);
    assert.deepEqual(
      new Map(copies),
      new Map([
        ['changed', 'of users'],
        ['clean', 'of users, up there'],
      ]),
    );
  });

  it('is no conflict where nobody else was there', async () => {
    await move();
    await run();
    assert.deepEqual(
      treeOf(share.nas),
      new Map([
        ['changed', 'of users'],
        ['clean', 'of users, up there'],
        ['waits', 'of users'],
      ]),
    );
    assert.deepEqual(share.conflicts, []);
  });
});
