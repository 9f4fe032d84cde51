import assert from 'node:assert/strict';
import { chmod, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { fuseProblem } from '../../../../plugins/mount/lifecycle/fuse-access.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';

const found = (): Promise<string> => Promise.resolve('/usr/bin/fusermount3');

describe("the way to the kernel's FUSE", () => {
  it('says what to do where the device is missing, closed to this user, or fusermount3 is not installed', async () => {
    const scratch = await createScratch('fuse-device');
    try {
      const device = scratch.path('fuse');
      assert.match((await fuseProblem(found, device)) ?? '', /ENOENT.*modprobe fuse/);
      await writeFile(device, '', { mode: 0o666 });
      assert.equal(await fuseProblem(found, device), undefined);
      assert.match(
        (await fuseProblem(() => Promise.resolve(undefined), device)) ?? '',
        /install the package fuse3/,
      );
      await chmod(device, 0o000);
      // Modes do not bind root.
      if (process.getuid?.() !== 0) assert.match((await fuseProblem(found, device)) ?? '', /chmod 0666/);
    } finally {
      await scratch.close();
    }
  });
});
