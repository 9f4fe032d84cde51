/** What is found of files that processes hold open and that have no name any more. */
import assert from 'node:assert/strict';
import { closeSync, openSync, unlinkSync, writeSync } from 'node:fs';
import { lstat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { namelessFiles } from '../../../../../core/plugins/runner/process/nameless-files.ts';
import { createScratch } from '../../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../../support/platform/scratch-folder.ts';

const BYTES = 1_048_576;

describe('files that have no name any more', () => {
  let scratch: Scratch;
  beforeEach(async () => {
    scratch = await createScratch('nameless');
  });
  afterEach(() => scratch.close());

  function opened(file: string): number {
    const fd = openSync(file, 'w');
    scratch.defer(() => closeSync(fd));
    writeSync(fd, Buffer.alloc(BYTES, 1));
    return fd;
  }

  const found = async (): Promise<readonly (readonly [string, number])[]> =>
    (await namelessFiles([scratch.root, scratch.path('missing')], [{ pid: process.pid }]))
      .filter(({ file }) => path.basename(file).startsWith('mk-'))
      .map(({ file, bytes }) => [path.basename(file), bytes] as const);

  it('are counted once, with the room that they take, and only on the disk that was asked about', async () => {
    const fd = opened(scratch.path('mk-gone'));
    unlinkSync(scratch.path('mk-gone'));
    const again = openSync(`/proc/self/fd/${String(fd)}`, 'r');
    scratch.defer(() => closeSync(again));
    opened(scratch.path('mk-there'));
    await writeFile(scratch.path('mk-named (deleted)'), '');
    opened(scratch.path('mk-named (deleted)'));
    const elsewhere = `/dev/shm/mk-elsewhere-${String(process.pid)}`;
    opened(elsewhere);
    unlinkSync(elsewhere);
    assert.notEqual((await lstat('/dev/shm')).dev, (await lstat(scratch.root)).dev);
    const [gone, ...more] = await found();
    assert.deepEqual([gone?.[0], more], ['mk-gone', []]);
    // Some file systems keep less, and some a bit of their own beside it.
    assert.ok(gone![1] > 0 && gone![1] < 2 * BYTES, `${String(gone![1])} bytes`);
  });

  it('are none of a process that is not there', async () => {
    assert.deepEqual(await namelessFiles([scratch.root], [{ pid: 999_999_999 }]), []);
  });
});
