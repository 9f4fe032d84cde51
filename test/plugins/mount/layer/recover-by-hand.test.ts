/** The recipe of docs/operations.md by which files are recovered by hand, as it stands there, in two shells. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdir, readFile, readdir, readlink, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { SKIPS } from '../../../runner/skips.ts';
import { PROJECT } from '../../../runner/test-files.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

const run = promisify(execFile);
const WRITTEN = [
  'a.txt',
  'Holiday 2024/b c.txt',
  'it\'s "quoted" $(here)`.txt',
  'two\nlines\n.txt',
  '-n',
  ' around ',
  'back\\slash/ü*?.txt',
];

/** The first block of that chapter, with this layer and another place for what it rescues. */
async function recipe(layer: string, rescued: string): Promise<string> {
  const text = await readFile(`${PROJECT}docs/operations.md`, 'utf8');
  const [, block] = /^## Recovering files by hand\n[^]*?^```sh\n([^]*?)^```$/m.exec(text) ?? [];
  assert.ok(block, 'the chapter has a block for the shell');
  const [, shown = ''] = /^cd (\S+\/layer)\s/m.exec(block) ?? [];
  assert.ok(shown !== '' && block.includes('/root/rescued'), block);
  return block.replaceAll(shown, layer).replaceAll('/root/rescued', rescued);
}

describe('files that are recovered by hand', { skip: process.getuid?.() !== 0 && SKIPS.root.reason }, () => {
  let scratch: Scratch;
  let upper: string;
  before(async () => {
    scratch = await createScratch('by-hand');
    upper = scratch.path('layer/upper');
    for (const name of WRITTEN) {
      await mkdir(dirname(join(upper, name)), { recursive: true });
      await writeFile(join(upper, name), `content of ${name}`);
    }
    await symlink('a.txt', join(upper, 'link'));
    await symlink('/nowhere', join(upper, 'broken link'));
    await writeFile(join(upper, 'only\nrenamed'), '');
    await run('setfattr', ['-n', 'trusted.overlay.metacopy', '-v', '', join(upper, 'only\nrenamed')]);
    await run('mknod', [join(upper, "it's deleted"), 'c', '0', '0']);
  });
  after(() => scratch.close());

  for (const shell of ['dash', 'bash'])
    it(`are all that users wrote, in ${shell}`, async () => {
      const rescued = scratch.path(`rescued-${shell}`);
      const { stderr } = await run(shell, ['-c', await recipe(scratch.path('layer'), rescued)]);
      assert.equal(stderr, '');
      const found = await readdir(rescued, { recursive: true, withFileTypes: true });
      const paths = found
        .filter((entry) => !entry.isDirectory())
        .map((entry) => join(entry.parentPath, entry.name).slice(`${rescued}/upper/`.length));
      assert.deepEqual(paths.toSorted(), [...WRITTEN, 'link', 'broken link'].toSorted());
      for (const name of WRITTEN)
        assert.equal(await readFile(join(rescued, 'upper', name), 'utf8'), `content of ${name}`);
      assert.equal(await readlink(join(rescued, 'upper/broken link')), '/nowhere');
    });
});
