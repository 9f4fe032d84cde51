/** A NAS loses the folder while files go up: what may have gone to another disk goes up again. */
import assert from 'node:assert/strict';
import { chmodSync, mkdirSync, renameSync, rmSync, unlinkSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteFiles } from 'mountkeeper';
import { NOTHING, Records } from '../../../../plugins/uploads/compare/records.ts';
import type { PlaceRecord } from '../../../../plugins/uploads/compare/records.ts';
import { RecentProofs } from '../../../../plugins/uploads/transfer/recent-proofs.ts';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { clock, refusal, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const SECOND = 1_700_000_000;

describe('what was proved before the folder was found to be lost', () => {
  let share: TestShare;
  let uploader: ShareUploader;
  const root = { foundAtMs: 0, isLost: false };
  const away = (): string => `${share.nas}.away`;

  beforeEach(async () => {
    share = new TestShare();
    Object.assign(root, { foundAtMs: clock.monotonic(), isLost: false });
    mkdirSync(join(share.nas, 'seen'));
    put(join(share.nas, 'seen/old'), 'of the NAS', SECOND - 100);
    share.up();
    const files = share.remote();
    share.files = new Proxy(files, {
      get: (target, name: keyof RemoteFiles) => {
        if (name === 'root') return root;
        const value = target[name];
        if (typeof value !== 'function' || name === 'nameProblem') return value;
        return async (...args: never[]) => {
          if (root.isLost) throw refusal('its path is not there', 'silent');
          return (value as (...all: never[]) => unknown).apply(target, args);
        };
      },
    });
    uploader = share.uploader();
  });
  afterEach(async () => {
    await uploader.stop();
    share.close();
  });

  function put(file: string, text: string, second: number): void {
    writeFileSync(file, text);
    utimesSync(file, second, second);
  }
  const look = () => uploader.look(new AbortController().signal);
  /** The disk goes: its empty mount point is in its place, and what goes up lands there. */
  const lose = async (): Promise<void> => {
    share.down();
    renameSync(share.nas, away());
    mkdirSync(join(share.nas, 'seen'), { recursive: true });
    share.up();
    await settle(uploader);
  };
  const bringBack = async (): Promise<void> => {
    rmSync(share.nas, { recursive: true });
    renameSync(away(), share.nas);
    root.isLost = false;
    uploader.flush();
    await settle(uploader);
  };

  it('waits again, and goes up when the folder is back; a new version beside what is there', async () => {
    put(share.at('seen/old'), 'of users', SECOND);
    await settle(uploader);
    root.foundAtMs = clock.monotonic();
    put(share.at('seen/old'), 'of users, later', SECOND + 100);
    put(share.at('seen/new'), 'written here', SECOND);
    await lose();
    assert.equal((await look()).dirtyFiles, 0, 'nobody knows yet');
    root.isLost = true;
    assert.equal((await look()).dirtyFiles, 2);
    await bringBack();
    assert.equal((await look()).dirtyFiles, 0);
    const there = treeOf(share.nas);
    assert.equal(there.get('seen/new'), 'written here');
    assert.deepEqual(
      [...there.values()].sort(),
      ['/', 'of users', 'of users, later', 'written here'].sort(),
      'the disk keeps what it has',
    );
  });

  it('waits again where its mode alone has been changed since, and it was proved anew', async () => {
    root.foundAtMs = clock.monotonic();
    share.hasHashes = true;
    put(share.at('seen/new'), 'written here', SECOND);
    await lose();
    chmodSync(share.at('seen/new'), 0o600);
    await settle(uploader);
    root.isLost = true;
    assert.equal((await look()).dirtyFiles, 1);
    await bringBack();
    assert.equal(treeOf(share.nas).get('seen/new'), 'written here');
  });

  it('a deletion of what was not there waits again, and is done when the folder is back', async () => {
    root.foundAtMs = clock.monotonic();
    // Its whiteout stays for a while.
    share.live = 'drops names';
    unlinkSync(share.at('seen/old'));
    // The disk goes before the deletion, and nobody has noticed.
    renameSync(share.nas, away());
    mkdirSync(join(share.nas, 'seen'), { recursive: true });
    const version = { bytes: 10, modifiedMs: (SECOND - 100) * 1_000 };
    share.stillShown = new Map([['seen/old', { name: 'old', kind: 'file', version }]]);
    await settle(uploader);
    root.isLost = true;
    assert.equal((await look()).dirtyFiles, 1);
    await bringBack();
    assert.equal(treeOf(share.nas).get('seen/old'), undefined);
  });

  it('is no deletion where it has left, and comes back if somebody touches it', async () => {
    const records = await Records.open(share.records, 'upper');
    try {
      const before: PlaceRecord = { remote: NOTHING, sending: { bytes: 4, modifiedMs: SECOND } };
      const proved = { inode: '7', bytes: 4, modifiedNs: '1', changedNs: '1' };
      const proofs = new RecentProofs();
      records.set('a', { remote: { kind: 'file', version: before.sending! }, proved });
      proofs.add('a', before, records, 1);
      records.set('a', { ...records.places.get('a')!, isLeaving: true, away: '7' });
      await proofs.review({ root: { foundAtMs: 0, isLost: true } } as unknown as RemoteFiles, records, 2);
      assert.deepEqual(records.places.get('a'), { ...before, isLeaving: true, away: '7' });
    } finally {
      await records.close();
    }
  });

  it('is believed where the folder has been found since', async () => {
    put(share.at('seen/new'), 'written here', SECOND);
    await settle(uploader);
    root.foundAtMs = clock.monotonic();
    await look();
    root.isLost = true;
    assert.equal((await look()).dirtyFiles, 0);
  });
});
