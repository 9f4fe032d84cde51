import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { recoveryReport } from '../../../../plugins/mount/recovery/recovery-report.ts';

describe('files that go nowhere by themselves', () => {
  let root: string;
  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'mk-leftovers-'));
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it('are told with the folder in which they lie, share by share', async () => {
    await mkdir(join(root, 'work', 'vfsMeta'), { recursive: true });
    assert.deepEqual(await recoveryReport(root), []);
    await mkdir(join(root, 'work', 'recovered', '2026', 'd'), {
      recursive: true,
    });
    await writeFile(join(root, 'work', 'recovered', '2026', 'd', 'a'), 'x');
    for (const tree of ['vfs', 'vfsMeta'])
      await mkdir(join(root, 'photos', 'aside', '77', tree, 'nas'), {
        recursive: true,
      });
    await writeFile(join(root, 'photos', 'aside', '77', 'vfs', 'nas', 'b'), 'x');
    await writeFile(
      join(root, 'photos', 'aside', '77', 'vfsMeta', 'nas', 'b'),
      JSON.stringify({ Dirty: true }),
    );
    const messages = (await recoveryReport(root)).map(({ message }) => message).sort();
    assert.equal(messages.length, 2);
    assert.match(messages[0] ?? '', /One file of the share photos .*photos\/aside\/77/);
    assert.match(messages[1] ?? '', /One file of the share work .*work\/recovered/);
  });
});
