/** What users put in the place of a file that is compared is neither read nor waited for. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RemoteFiles, RemoteHash } from 'mountkeeper';
import { identityOf } from '../../../../plugins/uploads/compare/records.ts';
import { withLocalFile } from '../../../../plugins/uploads/proof/local-file.ts';
import { localStats } from '../../../../plugins/uploads/transfer/step-tools.ts';
import type { ShareUploader } from '../../../../plugins/uploads/transfer/share-uploads.ts';
import { sleep } from '../../../support/platform/wait.ts';
import { settle, TestShare } from '../../../support/write-layer/uploader-share.ts';

describe('a file that is compared', () => {
  let share: TestShare;
  let uploader: ShareUploader;
  /** Runs while the remote is asked. */
  let meanwhile: () => void = () => undefined;
  const here = (path: string): string => join(share.upper, path);

  beforeEach(async () => {
    share = new TestShare();
    share.up();
    const plain = share.remote();
    const hash: RemoteHash = { kind: 'md5', value: createHash('md5').update('mine').digest('hex') };
    const stat: RemoteFiles['stat'] = async (path, options) => {
      const entry = await plain.stat(path, options);
      if (entry?.kind !== 'file' || options.hash !== true) return entry;
      meanwhile();
      return { ...entry, version: { ...entry.version, hash } };
    };
    share.files = Object.assign(Object.create(plain) as RemoteFiles, { stat });
    uploader = share.uploader();
    mkdirSync(share.at('d'));
    writeFileSync(share.at('d/mine'), 'mine');
    await settle(uploader);
  });
  afterEach(async () => {
    meanwhile = () => undefined;
    await uploader.stop();
    share.close();
  });

  const options = () => ({ signal: AbortSignal.timeout(20_000), onProgress: () => undefined });
  /** Whoever waits for the pipe goes on, so that the test ends where it fails. */
  const inTime = async <T>(work: Promise<T>): Promise<T | 'waits'> => {
    const result = await Promise.race([work, sleep(15_000).then(() => 'waits' as const)]);
    if (result !== 'waits') return result;
    closeSync(openSync(here('d/mine'), constants.O_RDWR | constants.O_NONBLOCK));
    await work.catch(() => undefined);
    return result;
  };
  const pipe = (): void => {
    meanwhile = () => undefined;
    rmSync(here('d/mine'));
    execFileSync('mkfifo', [here('d/mine')]);
  };

  it('is told equal where nobody touches it', async () => {
    assert.deepEqual(
      (await uploader.verify('', options())).files.map(({ path, result }) => [path, result]),
      [['d/mine', 'hash']],
    );
    const { proved } = await uploader.receipt('', options());
    assert.deepEqual(
      proved.map(({ path, isCompared }) => [path, isCompared]),
      [['d/mine', true]],
    );
  });

  it('may be a pipe by then: nobody waits for who writes into it', async () => {
    meanwhile = pipe;
    assert.deepEqual(await inTime(uploader.verify('', options())), { files: [], waiting: 1 });
  });

  it('may be a pipe by then for a receipt, too', async () => {
    meanwhile = pipe;
    const receipt = await inTime(uploader.receipt('', options()));
    assert.notEqual(receipt, 'waits');
    assert.deepEqual(receipt !== 'waits' && receipt.proved, []);
  });

  it('is not read where a link has taken its place, or that of its folder', async () => {
    const stats = await localStats({ upper: share.upper } as Parameters<typeof localStats>[0], 'd/mine');
    const identity = identityOf(stats!);
    const read = (): Promise<string | undefined> =>
      withLocalFile(here('d/mine'), identity, (handle) => handle.readFile('utf8'));
    assert.equal(await read(), 'mine');
    writeFileSync(join(share.root, 'mine'), 'of somebody else');
    renameSync(here('d/mine'), here('d/other'));
    symlinkSync(join(share.root, 'mine'), here('d/mine'));
    assert.equal(await read(), undefined);
    renameSync(here('d'), here('e'));
    symlinkSync(share.root, here('d'));
    assert.equal(await read(), undefined);
  });
});
