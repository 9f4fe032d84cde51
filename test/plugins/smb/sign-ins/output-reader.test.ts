import assert from 'node:assert/strict';
import { appendFileSync, renameSync, writeFileSync } from 'node:fs';
import { appendFile, readFile, rename, stat, truncate, writeFile } from 'node:fs/promises';
import { after, before, beforeEach, describe, it } from 'node:test';
import { OutputReader } from '../../../../plugins/smb/sign-ins/output-reader.ts';
import { createScratch } from '../../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../../support/platform/scratch-folder.ts';

describe("what is read of a process's output", () => {
  let scratch: Scratch;
  let reader: OutputReader;
  let file: string;
  const note = (): string => scratch.path('read.json');
  const lines = async (): Promise<string[]> => {
    const found: string[] = [];
    await reader.read(file, (line) => found.push(line));
    return found;
  };
  before(async () => (scratch = await createScratch('output-reader')));
  after(() => scratch.close());
  beforeEach(async () => {
    file = scratch.path('log');
    await writeFile(file, '');
    await writeFile(note(), '');
    reader = new OutputReader(note());
  });

  it('is each line once, when it is whole, also after a start of the daemon', async () => {
    assert.deepEqual(await lines(), []);
    await appendFile(file, 'one\ntwo\nthr');
    assert.deepEqual(await lines(), ['one', 'two']);
    assert.deepEqual(await lines(), []);
    reader = new OutputReader(note());
    await appendFile(file, 'ee\nfour\n');
    assert.deepEqual(await lines(), ['three', 'four']);
  });

  it('begins anew in a file that was cut, or that is another one', async () => {
    await appendFile(file, 'one\ntwo\n');
    await lines();
    await truncate(file, 0);
    await appendFile(file, 'new\n');
    assert.deepEqual(await lines(), ['new']);
    await rename(file, `${file}.1`);
    await writeFile(file, 'next\nlast\n');
    assert.deepEqual(await lines(), ['next', 'last']);
  });

  it('leaves no large file: a flood ends before the disk is full', async () => {
    for (let round = 0; round < 3; round += 1) {
      await appendFile(file, `${'x'.repeat(1_000)}\n`.repeat(5_000));
      assert.equal((await lines()).length, 5_000);
      assert.equal((await stat(file)).size, 0);
    }
    await appendFile(file, 'last\n');
    assert.deepEqual(await lines(), ['last']);
    assert.equal((await stat(file)).size, 5);
  });

  it('is also what came while a large file was read, which is cut, and not another one of its name', async () => {
    const large = `${'x'.repeat(1_000)}\n`.repeat(5_000);
    const during = async (act: () => void): Promise<string[]> => {
      const found: string[] = [];
      await reader.read(file, (line) => {
        if (found.push(line) === 5_000) act();
      });
      return found;
    };
    await appendFile(file, large);
    assert.equal((await during(() => appendFileSync(file, 'late\n'))).at(-1), 'late');
    assert.equal((await stat(file)).size, 0);
    await appendFile(file, large);
    await during(() => {
      renameSync(file, `${file}.1`);
      writeFileSync(file, 'new\n');
    });
    assert.deepEqual(await lines(), ['new']);
  });

  it('is all of a large file and nothing of a line without an end; a broken note costs nothing', async () => {
    for (const text of ['{', '[]', '{"inode":"x","offset":1}', '\u0000']) {
      await writeFile(note(), text);
      reader = new OutputReader(note());
      await writeFile(file, 'one\n');
      assert.deepEqual(await lines(), ['one']);
    }
    const many = Array.from({ length: 20_000 }, (_none, index) => `${index} ${'x'.repeat(40)}`);
    await appendFile(file, `${many.join('\n')}\n${'y'.repeat(700_000)}`);
    assert.deepEqual(await lines(), many);
    await appendFile(file, '\nafter\n');
    assert.equal((await lines()).at(-1), 'after');
    assert.ok((await readFile(note(), 'utf8')).length < 100);
  });
});
