import assert from 'node:assert/strict';
import { mkdir, readFile, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { writeWhole } from '../../../../core/platform/files/atomic-file.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

describe('a file that is written whole or not at all', () => {
  let scratch: Scratch;
  before(async () => (scratch = await createScratch('atomic')));
  after(() => scratch.close());

  it("has the new content, is the daemon's user's alone, and leaves nothing beside it", async () => {
    const file = scratch.path('made/below/state.json');
    await writeWhole(file, 'one');
    await writeWhole(file, 'two');
    await writeWhole(file, 'three', { isDurable: false });
    assert.equal(await readFile(file, 'utf8'), 'three');
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(scratch.path('made/below')), ['state.json']);
  });

  it('writes through no link, and takes over nothing that lies beside it', async () => {
    const [file, victim] = [scratch.path('linked'), scratch.path('victim')];
    await writeFile(victim, 'untouched');
    await symlink(victim, `${file}.new`);
    await writeWhole(file, 'new');
    assert.deepEqual([await readFile(file, 'utf8'), await readFile(victim, 'utf8')], ['new', 'untouched']);
    await writeFile(`${file}.own`, 'of a run that was killed', { mode: 0o666 });
    await writeWhole(file, 'newer', { beside: `${file}.own` });
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    assert.deepEqual(
      (await readdir(scratch.path('.'))).filter((name) => name.startsWith('linked')),
      ['linked'],
    );
  });

  it('stays as it was where it cannot be written', async () => {
    const file = scratch.path('folder');
    await mkdir(scratch.path('folder/inside'), { recursive: true });
    await assert.rejects(writeWhole(file, 'new'), /EISDIR|ENOTEMPTY/);
    assert.ok((await stat(file)).isDirectory());
    assert.deepEqual(
      (await readdir(scratch.path('.'))).filter((name) => name.startsWith('folder')),
      ['folder'],
    );
  });
});
