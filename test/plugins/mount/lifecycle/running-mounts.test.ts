/** A share is not mounted while the uploader of its former mount is at work. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { RunningMounts } from '../../../../plugins/mount/lifecycle/running-mounts.ts';

it('the next mount of a share waits until the one before has uploaded, also when it was lost', async () => {
  let endUploads = (): void => undefined;
  const uploadsEnded = new Promise<void>((resolve) => (endUploads = resolve));
  const mounts = new RunningMounts();
  const mount = { shareName: 'photos', exited: Promise.resolve('gone'), uploadsEnded };
  mounts.add(mount as never);
  await mount.exited;
  const { signal } = new AbortController();
  let isEnded = false;
  const waiting = mounts.uploadsEnded('photos', signal).then(() => assert.ok(isEnded));
  await mounts.uploadsEnded('another', signal);
  await assert.rejects(mounts.uploadsEnded('photos', AbortSignal.abort(new Error('given up'))), /given up/);
  isEnded = true;
  endUploads();
  await waiting;
});
