/** What a former version's cache holds is sent over the version that it was made on, and over no other. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, utimesSync } from 'node:fs';
import { copyFile, mkdir, rm, truncate, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { after, before, beforeEach, describe, it } from 'node:test';
import type { RemoteEntry } from 'mountkeeper';
import { createClock } from '../../../../core/platform/clock.ts';
import { sendFormer } from '../../../../plugins/mount/former/send-files.ts';
import type { FormerSending } from '../../../../plugins/mount/former/send-files.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const AT = 1_700_000_000;
const TIME = '2023-11-14 22:13:20 +0000 UTC';

describe('a file that waits in the cache of a former version', () => {
  let scratch: Scratch;
  let cacheDir: string;
  let nas: string;
  let meanwhile: (path: string) => void;
  let count = 0;
  before(async () => (scratch = await createScratch('send-former')));
  after(() => scratch.close());
  beforeEach(async () => {
    count += 1;
    [cacheDir, nas] = [scratch.path(`cache${count}`), scratch.path(`nas${count}`)];
    await mkdir(nas, { recursive: true });
    meanwhile = () => undefined;
  });

  const onNas = async (path: string, content: string | Buffer, at = AT): Promise<void> => {
    await writeFile(join(nas, path), content);
    utimesSync(join(nas, path), at, at);
  };
  const waits = async (
    path: string,
    content: string | Buffer,
    fingerprint: string,
    ranges = [{ Pos: 0, Size: content.length }],
  ): Promise<void> => {
    const [data, meta] = ['vfs', 'vfsMeta'].map((tree) => join(cacheDir, tree, 'nas', 'team', path));
    for (const file of [data!, meta!]) await mkdir(dirname(file), { recursive: true });
    await writeFile(data!, content);
    utimesSync(data!, AT + 100, AT + 100);
    const times = { ModTime: '2023-11-14T22:15:00Z', ATime: '2023-11-14T22:15:00Z' };
    const state = { Size: content.length, Rs: ranges, Fingerprint: fingerprint, Dirty: true };
    await writeFile(meta!, JSON.stringify({ ...times, ...state }));
  };
  const stat = async (path: string): Promise<RemoteEntry | undefined> => {
    const found = statSync(join(nas, path), { throwIfNoEntry: false });
    return found && { name: path, kind: 'file', version: { bytes: found.size, modifiedMs: found.mtimeMs } };
  };
  const remote = {
    precisionMs: 1_000,
    stat,
    download: (path: string, local: string) => copyFile(join(nas, path), local),
    upload: async (local: string, path: string, options: { beforeNaming?: () => Promise<void> }) => {
      meanwhile(path);
      await options.beforeNaming?.();
      await copyFile(local, join(nas, path));
      utimesSync(join(nas, path), AT + 100, AT + 100);
    },
  };
  const send = (): Promise<void> =>
    sendFormer({
      cacheDir,
      remotePath: '/team',
      remote,
      clock: createClock(),
      log: collectLog().log,
      signal: new AbortController().signal,
    } as unknown as FormerSending);
  const here = (path: string): string => readFileSync(join(nas, path), 'utf8');
  const left = (): boolean => existsSync(join(cacheDir, 'vfsMeta', 'nas', 'team', 'a'));

  it('replaces the version that it was made on, and leaves the cache', async () => {
    await onNas('a', 'first');
    await waits('a', 'mine', `5,${TIME}`);
    await send();
    assert.deepEqual([here('a'), left(), readdirSync(nas)], ['mine', false, ['a']]);
  });

  it('is new where there is nothing, also where others have deleted what it was made on', async () => {
    await waits('a', 'mine', '');
    await waits('b', 'mine', `5,${TIME}`);
    await send();
    assert.deepEqual([here('a'), here('b')], ['mine', 'mine']);
  });

  it('goes up beside what others saved, or what nobody can tell from it', async () => {
    for (const [fingerprint, at] of [
      [`5,${TIME}`, AT + 5],
      ['', AT],
      ['5', AT],
    ] as const) {
      await onNas('a', 'other', at);
      await waits('a', 'mine', fingerprint);
      await send();
      assert.deepEqual([here('a'), left()], ['other', false], fingerprint);
    }
    const copies = readdirSync(nas).filter((name) => /^a \(conflict .*\)$/.test(name));
    assert.deepEqual(copies.map(here), ['mine', 'mine', 'mine']);
  });

  it('waits on where others save it at the very moment, and goes up beside theirs with the next try', async () => {
    await onNas('a', 'first');
    await waits('a', 'mine', `5,${TIME}`);
    meanwhile = () => utimesSync(join(nas, 'a'), AT + 9, AT + 9);
    await assert.rejects(send(), /others are saving a/);
    assert.deepEqual([here('a'), left()], ['first', true]);
    meanwhile = () => undefined;
    await send();
    assert.deepEqual([here('a'), readdirSync(nas).length, left()], ['first', 2, false]);
  });

  it('is completed from the version that it was made on, with its own time', async () => {
    const first = Buffer.alloc(3_000_000, 'first ');
    await onNas('a', first);
    const content = Buffer.alloc(2_500_000);
    content.write('MINE', 1_000_000);
    await waits('a', content, `3000000,${TIME}`, [{ Pos: 1_000_000, Size: 4 }]);
    await truncate(join(cacheDir, 'vfs', 'nas', 'team', 'a'), 2_500_000);
    const want = Buffer.from(first.subarray(0, 2_500_000));
    want.write('MINE', 1_000_000);
    await send();
    assert.ok(readFileSync(join(nas, 'a')).equals(want));
    assert.equal(left(), false);
  });

  it('is kept for a person where only parts of it are here, and that version is gone', async () => {
    for (const theirs of ['others', undefined]) {
      if (theirs !== undefined) await onNas('a', theirs);
      await waits('a', 'part of', `5,${TIME}`, [{ Pos: 0, Size: 4 }]);
      await send();
      assert.deepEqual([existsSync(join(nas, 'a')), left()], [theirs !== undefined, false]);
      await rm(join(nas, 'a'), { force: true });
    }
    const kept = readdirSync(join(cacheDir, 'recovered')).map((time) =>
      readFileSync(join(cacheDir, 'recovered', time, 'team', 'a'), 'utf8'),
    );
    assert.deepEqual(kept, ['part of', 'part of']);
  });

  it('keeps no other from going up where it cannot', async () => {
    await onNas('a', 'first');
    await waits('a', 'mine', `5,${TIME}`);
    await waits('b', 'mine', '');
    let isFirst = true;
    meanwhile = (path) => {
      if (path !== 'a' || !isFirst) return;
      utimesSync(join(nas, 'a'), AT + 9, AT + 9);
      isFirst = false;
    };
    await assert.rejects(send());
    assert.equal(here('b'), 'mine');
  });
});
