/** Folders of a bucket, which has none of its own, through the remote's side of a write layer. */
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { after, before, describe, it } from 'node:test';
import type { RemoteFiles } from 'mountkeeper';
import { createScratch } from '../support/platform/scratch-folder.ts';
import type { Scratch } from '../support/platform/scratch-folder.ts';
import { startRemote } from '../support/write-layer/uploader-remote.ts';
import type { TestRemote } from '../support/write-layer/uploader-remote.ts';

const FOLDERS = ['emptied', 'moved-from', 'holder/moved', 'renamed'];

describe('a folder in a bucket', () => {
  let scratch: Scratch;
  let remote: TestRemote;
  let files: RemoteFiles;
  const signal = (): AbortSignal => AbortSignal.timeout(20_000);

  before(async () => {
    scratch = await createScratch('bucket');
    for (const folder of FOLDERS) {
      mkdirSync(scratch.path('nas', folder), { recursive: true });
      writeFileSync(scratch.path('nas', folder, 'x'), 'x');
    }
    remote = await startRemote('s3', scratch.path('nas'));
    ({ files } = remote);
  });
  after(async () => {
    await remote.close();
    await scratch.close();
  });

  const names = async (folder: string): Promise<string[] | undefined> =>
    (await files.list(folder, { signal: signal() }))?.map(({ name }) => name);

  it('is there when it is made, and gone when it is removed', async () => {
    await files.makeFolder('new', { signal: signal() });
    assert.deepEqual(await names('new'), []);
    await files.removeFolder('new', { signal: signal() });
    assert.equal(await names('new'), undefined);
  });

  it('stays when the last file in it is deleted', async () => {
    await files.deleteFile('emptied/x', { signal: signal() });
    assert.deepEqual(await names('emptied'), []);
  });

  it('stays when the last file or folder in it is moved away', async () => {
    await files.moveFile('moved-from/x', 'y', { signal: signal() });
    assert.deepEqual(await names('moved-from'), []);
    await files.moveFolder('holder/moved', 'elsewhere', { signal: signal() });
    assert.deepEqual(await names('holder'), []);
    assert.deepEqual(await names('elsewhere'), ['x']);
  });

  it('is moved when nothing is left in it', async () => {
    await files.deleteFile('renamed/x', { signal: signal() });
    await files.moveFolder('renamed', 'anew', { signal: signal() });
    assert.deepEqual(await names('anew'), []);
    assert.equal(await names('renamed'), undefined);
  });
});
