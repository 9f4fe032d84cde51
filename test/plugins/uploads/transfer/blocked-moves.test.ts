/** Renames that wait for other renames, with what they wait for. On a real overlay. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { lookOnly } from '../../../support/write-layer/uploader-crash.ts';
import { settle, TestShare, treeOf } from '../../../support/write-layer/uploader-share.ts';

describe('renames that others have to make room for', () => {
  let share: TestShare;
  beforeEach(() => {
    share = new TestShare();
  });
  afterEach(() => share.close());

  const has = (...paths: readonly string[]): void => {
    for (const path of paths) {
      mkdirSync(dirname(join(share.nas, path)), { recursive: true });
      writeFileSync(join(share.nas, path), path);
    }
    share.up();
    share.live = 'drops names';
  };
  const moves = (from: string, to: string): void => renameSync(share.at(from), share.at(to));
  const savesAll = async (): Promise<void> => {
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
  };
  /** An uploader that is killed when the NAS has done what it asked for, before the answer is there. */
  const crashOnce = async (asked: string): Promise<void> => {
    let strike = (): void => undefined;
    const struck = new Promise<void>((resolve) => (strike = resolve));
    const uploader = share.uploader((call, when) => {
      if (call !== asked || when !== 'after') return undefined;
      strike();
      return new Promise(() => undefined);
    });
    await Promise.race([settle(uploader), struck]);
  };
  const makes = (folder: string): void => mkdirSync(share.at(folder));
  const fileOnNas = (path: string): string => readFileSync(join(share.nas, path), 'utf8');

  it('go where the one waits for a deletion in the other, and that deletion for the first', async () => {
    has('A/f', 'A/g', 'E/r');
    moves('A/f', 'A/y');
    moves('E', 'A/f');
    unlinkSync(share.at('A/f/r'));
    moves('A', 'E');
    await savesAll();
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
    assert.deepEqual(
      [fileOnNas('E/y'), fileOnNas('E/g'), existsSync(join(share.nas, 'A'))],
      ['A/f', 'A/g', false],
    );
  });

  it('leave what others save meanwhile in the folder that they will replace', async () => {
    has('d/x', 'e/c');
    mkdirSync(join(share.nas, 'a'));
    moves('e/c', 'c');
    rmSync(share.at('e'), { recursive: true });
    moves('d', 'e');
    await lookOnly(share);
    writeFileSync(join(share.nas, 'e/others'), 'of others');
    await savesAll();
    assert.equal(fileOnNas('c'), 'e/c');
    assert.equal(fileOnNas('e/x'), 'd/x');
    assert.equal(fileOnNas('e/others'), 'of others');
  });

  it('go where the answer to one was lost, and users put a new folder with it into its former place', async () => {
    has('E/r');
    moves('E', 'F');
    await crashOnce('moveFolder');
    makes('E');
    moves('F', 'E/F');
    await savesAll();
    assert.deepEqual(treeOf(share.nas), treeOf(share.mount));
    assert.equal(fileOnNas('E/F/r'), 'E/r');
  });
});
