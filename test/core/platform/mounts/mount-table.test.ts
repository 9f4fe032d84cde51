import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { createMountTable, parseMountInfo } from '../../../../core/platform/mounts/mount-table.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const LINES = [
  '22 27 0:21 / /proc rw,relatime - proc proc rw',
  '27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw',
  '90 27 0:52 / /mnt/照\\040片 rw,nosuid,nodev,relatime shared:40 master:2 - fuse.rclone ' +
    'nas\\134x: rw,user_id=0,group_id=0',
  '91 27 0:53 / /mnt/a\\011b\\012c\\134d ro,relatime - fuse.rclone nas: rw',
  '92 27 0:54 / /mnt/e rw,relatime - ext4 /dev/vdb ro,errors=continue',
  '93 27 0:55 / /mnt/f rw,relatime - ext4 /dev/vdc rw,errors=remount-ro,emergency_ro',
  '',
].join('\n');

describe('mount table', () => {
  let scratch: Scratch;
  before(async () => {
    scratch = await createScratch('table');
  });
  after(() => scratch.close());

  it("undoes the kernel's escapes in names of any language", () => {
    const entries = parseMountInfo(Buffer.from(LINES));
    assert.deepEqual(
      entries.map((entry) => entry.mountPoint),
      ['/proc', '/', '/mnt/照 片', '/mnt/a\tb\nc\\d', '/mnt/e', '/mnt/f'],
    );
    assert.equal(entries[2]?.source, 'nas\\x:');
    assert.equal(entries[2]?.fsType, 'fuse.rclone');
    assert.equal(entries[2]?.deviceMinor, 52);
  });

  it("knows read-only mounts by the mount's or the file system's option", () => {
    assert.deepEqual(
      parseMountInfo(Buffer.from(LINES)).map((entry) => entry.readOnly),
      [false, false, false, true, true, true],
    );
  });

  it('leaves out lines that it cannot read', () => {
    assert.deepEqual(parseMountInfo(Buffer.from('garbage\n1 2 3\n\n')), []);
  });

  it('finds the topmost of several mounts at one path, in whatever order they stand', async () => {
    const file = scratch.path('mountinfo');
    const [below, above] = [
      '50 27 0:60 / /mnt/x rw - fuse.rclone old: rw',
      '51 50 0:61 / /mnt/x rw - fuse.rclone new: rw',
    ];
    for (const lines of [
      [below, above],
      [above, below],
    ]) {
      await writeFile(file, `27 1 254:0 / / rw - ext4 /dev/vda rw\n${lines.join('\n')}\n`);
      assert.equal((await createMountTable({ file }).find('/mnt/x'))?.source, 'new:');
    }
    assert.equal(await createMountTable({ file }).find('/mnt'), undefined);
    assert.equal(await createMountTable({ file }).find('/mnt/x/'), undefined);
  });

  it('shows what was mounted before the call, never what an earlier call saw', async () => {
    const file = scratch.path('changing');
    const table = createMountTable({ file });
    await writeFile(file, '');
    const earlier = table.find('/mnt/x');
    assert.equal(await earlier, undefined);
    await writeFile(file, '50 27 0:60 / /mnt/x rw - fuse.rclone nas: rw\n');
    const [one, two] = await Promise.all([table.find('/mnt/x'), table.list()]);
    assert.equal(one?.source, 'nas:');
    assert.equal(two.length, 1);
  });

  it('reads the real table', async () => {
    const table = createMountTable();
    assert.ok((await table.find('/proc'))?.fsType === 'proc');
    assert.ok((await table.list()).length > 1);
  });

  it('gives the very same list as long as nothing has changed', async () => {
    const file = scratch.path('standing');
    await writeFile(file, LINES);
    const table = createMountTable({ file });
    const before = await table.list();
    assert.equal(await table.list(), before);
    await writeFile(file, `${LINES}95 27 0:60 / /mnt/x rw - fuse.rclone nas: rw\n`);
    assert.notEqual(await table.list(), before);
  });

  it('shares one read among all who ask within a turn of the event loop', async () => {
    const file = scratch.path('asked');
    await writeFile(file, '');
    const table = createMountTable({ file });
    const asked = [table.find('/mnt/x'), Promise.resolve().then(() => table.find('/mnt/x'))];
    // Written before the read, and after the first has asked.
    writeFileSync(file, '50 27 0:60 / /mnt/x rw - fuse.rclone nas: rw\n');
    assert.deepEqual(
      (await Promise.all(asked)).map((entry) => entry?.source),
      ['nas:', 'nas:'],
    );
  });
});
