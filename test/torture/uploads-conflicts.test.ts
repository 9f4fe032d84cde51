/**
 * Two people change the same thing: both versions stay, and each conflict is told once. One alone is never
 * told of a conflict.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, it } from 'node:test';
import { lookOnly } from '../support/write-layer/uploader-crash.ts';
import { settle, TestShare, treeOf } from '../support/write-layer/uploader-share.ts';

interface Side {
  readonly act: (path: string) => void;
  /** What of it must be on the NAS. */
  readonly keeps?: string;
}

const OURS: Readonly<Record<string, Side>> = {
  'overwrites it': { act: (path) => writeFileSync(path, 'ours'), keeps: 'ours' },
  'saves by renaming over it': {
    act: (path) => {
      writeFileSync(`${path}.tmp`, 'ours');
      renameSync(`${path}.tmp`, path);
    },
    keeps: 'ours',
  },
  'deletes it': { act: (path) => rmSync(path) },
  'makes a folder of it': {
    act: (path) => {
      rmSync(path);
      mkdirSync(path);
      writeFileSync(join(path, 'in'), 'ours');
    },
    keeps: 'ours',
  },
};
const THEIRS: Readonly<Record<string, Side>> = {
  'overwrite it': {
    act: (path) => {
      rmSync(path);
      writeFileSync(path, 'of others');
      utimesSync(path, 1_700_000_000, 1_700_000_000);
    },
    keeps: 'of others',
  },
  'delete it': { act: (path) => rmSync(path) },
};
const PAIRS = Object.entries(OURS).flatMap(([our, ours]) =>
  Object.entries(THEIRS).map(([their, theirs]) => ({ our, ours, their, theirs })),
);
/**
 * Deleted by both: there is nothing to tell. A folder in the place of what others deleted replaces nothing.
 */
const isTold = ({ our, their }: { readonly our: string; readonly their: string }): boolean =>
  their === 'overwrite it' || our.startsWith('over') || our.startsWith('saves');

describe('conflicts', () => {
  let share: TestShare;
  afterEach(() => share.close());

  it('keep both versions and are told once, 304 times', async () => {
    share = new TestShare();
    const rounds = 38;
    const all = Array.from({ length: rounds }, (_, round) =>
      PAIRS.map((pair, index) => ({ ...pair, path: `n${round % 5}/${round} ${index}.txt` })),
    ).flat();
    for (const { path } of all) {
      mkdirSync(join(share.nas, path, '..'), { recursive: true });
      writeFileSync(join(share.nas, path), 'first');
    }
    share.up();
    for (const { ours, path } of all) ours.act(share.at(path));
    await lookOnly(share);
    for (const { theirs, path } of all) theirs.act(join(share.nas, path));
    const uploader = share.uploader();
    await settle(uploader);
    await uploader.stop();
    for (const pair of all) {
      const { ours, theirs, path } = pair;
      const told = share.conflicts.filter((one) => one.path === path);
      const what = `"${path}": one ${pair.our}, others ${pair.their}`;
      assert.equal(told.length, isTold(pair) ? 1 : 0, `${what}: told ${JSON.stringify(told)}`);
      const places = [path, `${path}/in`, ...told.map(({ copy }) => copy)];
      const found = places
        .map((one) => join(share.nas, one))
        .filter((one) => existsSync(one))
        .flatMap((one) => contentOf(one));
      for (const { keeps } of [ours, theirs])
        if (keeps !== undefined)
          assert.ok(found.includes(keeps), `${what}: "${keeps}" is gone, there is ${found.join(', ')}`);
    }
    await share.renew();
    assert.deepEqual(treeOf(share.mount), treeOf(share.nas), 'users see both');
  });

  it('are not seen where one side alone has changed things, 10,000 times', async () => {
    share = new TestShare();
    const paths = Array.from({ length: 5_000 }, (_, index) => `n${index % 50}/${index}`);
    for (const path of paths) {
      mkdirSync(join(share.nas, path, '..'), { recursive: true });
      writeFileSync(join(share.nas, path), 'first');
    }
    share.up();
    for (let round = 1; round <= 2; round += 1) {
      for (const [index, path] of paths.entries()) {
        if (index % 2 === 0) writeFileSync(share.at(path), `${round} ours`);
        else {
          rmSync(join(share.nas, path));
          writeFileSync(join(share.nas, path), `${round} of others`);
        }
      }
      await share.renew();
      const uploader = share.uploader();
      await settle(uploader);
      await uploader.stop();
    }
    assert.deepEqual(share.conflicts, []);
    for (const [index, path] of paths.entries())
      assert.equal(readFileSync(join(share.nas, path), 'utf8'), index % 2 === 0 ? '2 ours' : '2 of others');
  });
});

function contentOf(path: string): string[] {
  try {
    return [readFileSync(path, 'utf8')];
  } catch {
    // A folder.
    return [];
  }
}
