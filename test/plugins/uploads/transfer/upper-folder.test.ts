/**
 * The path of the upper folder may come to lead to another one while the share is mounted. What is missing there,
 * nobody has deleted, and what lies in it is another share's.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { processes, settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

const OTHER = /is not the folder any more that this share writes to: another daemon works on its cache/;

describe('another folder at the path of the upper folder', () => {
  let share: TestShare;
  let uploader: ShareUploader | undefined;
  beforeEach(() => {
    share = new TestShare();
    share.up();
  });
  afterEach(async () => {
    await uploader?.stop();
    share.close();
  });

  const look = (): Promise<unknown> => uploader!.look(AbortSignal.timeout(20_000));
  /** As another daemon does that sets the cache aside, and mounts its own share. */
  const swap = (): void => {
    renameSync(share.upper, `${share.upper}-former`);
    mkdirSync(share.upper);
    writeFileSync(join(share.upper, 'theirs'), 'of another share');
  };
  const swapBack = (): void => {
    rmSync(join(share.upper, 'theirs'));
    rmdirSync(share.upper);
    renameSync(`${share.upper}-former`, share.upper);
  };
  /** Two files that went up, of which the layer has a copy. */
  const written = async (): Promise<void> => {
    for (const name of ['a', 'b']) writeFileSync(share.at(name), name);
    await settle(uploader!);
  };
  const onNas = (): readonly string[] => [...treeOf(share.nas).keys()];

  it('is not looked at: nothing is deleted, nothing of it goes up, until the former one is there again', async () => {
    uploader = share.uploader();
    await written();
    swap();
    for (let looks = 0; looks < 3; looks += 1) {
      uploader.flush();
      await assert.rejects(look(), OTHER);
      await uploader.settled();
    }
    assert.deepEqual(onNas(), ['a', 'b']);
    swapBack();
    rmSync(share.at('a'));
    await settle(uploader);
    assert.deepEqual(onNas(), ['b']);
  });

  it('tells nothing where there is none at all', async () => {
    uploader = share.uploader();
    await written();
    renameSync(share.upper, `${share.upper}-former`);
    uploader.flush();
    await assert.rejects(look(), OTHER);
    renameSync(`${share.upper}-former`, share.upper);
    await settle(uploader);
    assert.deepEqual(onNas(), ['a', 'b']);
  });

  it('that came there while it was listed tells nothing', async () => {
    let isDue = false;
    uploader = share.uploader(undefined, {
      processes: {
        run: (spec) => {
          if (isDue) swap();
          isDue = false;
          return processes.run(spec);
        },
      },
    });
    await written();
    isDue = true;
    uploader.flush();
    await assert.rejects(look(), OTHER);
    await uploader.settled();
    assert.deepEqual(onNas(), ['a', 'b']);
  });

  it('that came there while a deletion was under way ends it', async () => {
    let isDue = false;
    uploader = share.uploader((call, when) => {
      if (!isDue || call !== 'stat' || when !== 'after') return;
      isDue = false;
      swap();
    });
    await written();
    rmSync(share.at('a'));
    isDue = true;
    // A deletion waits for a look in which nothing has just changed.
    for (let looks = 0; looks < 40 && isDue; looks += 1) {
      uploader.flush();
      await look();
      await uploader.settled();
    }
    assert.equal(existsSync(`${share.upper}-former`), true);
    assert.equal(readFileSync(join(share.nas, 'a'), 'utf8'), 'a');
    swapBack();
    await settle(uploader);
    assert.deepEqual(onNas(), ['b']);
  });
});
