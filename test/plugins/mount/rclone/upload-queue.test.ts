import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { uploadQueue } from '../../../../plugins/mount/rclone/upload-queue.ts';

const signal = new AbortController().signal;
const queueOf = (answer: unknown) =>
  uploadQueue({ call: async () => answer as never }, 'nas:', { now: 1_000_000, signal });

describe("rclone's queue of uploads", () => {
  it('tells what goes up, what has failed how often, and when what waits goes', async () => {
    const queue = [
      { name: 'a/goes', size: 5, expiry: -3, tries: 1, uploading: true },
      { name: 'again', size: 6, expiry: -3, tries: 3, uploading: true },
      { name: 'failed', size: 7, expiry: 42.4, tries: 2, uploading: false },
      { name: 'waits', size: 8, expiry: -1, tries: 0, uploading: false },
    ];
    assert.deepEqual(await queueOf({ queue }), [
      { path: 'a/goes', bytes: 5, isUploading: true, failures: 0 },
      { path: 'again', bytes: 6, isUploading: true, failures: 2 },
      { path: 'failed', bytes: 7, isUploading: false, failures: 2, goesAt: 1_045_000 },
      { path: 'waits', bytes: 8, isUploading: false, failures: 0 },
    ]);
  });

  it('is empty where rclone names none', async () => {
    assert.deepEqual([await queueOf({}), await queueOf({ queue: null })], [[], []]);
  });
});
