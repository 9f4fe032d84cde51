/** The file of records while it is in use. */
import assert from 'node:assert/strict';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Records } from '../../../../plugins/uploads/compare/records.ts';

const CONFLICT = { path: 'a', copy: 'a (conflict)', what: 'changed', at: 1 } as const;

describe('the file of records', () => {
  let folder: string;
  let file: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'mk-records-'));
    file = join(folder, 'places.jsonl');
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  /** Renames a file to and fro, and has each on the disk before the next. */
  const rename = async (records: Records, times: number): Promise<void> => {
    records.set('d/0', { remote: { kind: 'file', version: { bytes: 1, modifiedMs: 1 } } });
    records.setConflict(CONFLICT);
    for (let at = 0; at < times; at += 1) {
      records.renamed(`d/${at}`, `d/${at + 1}`);
      records.drop(`d/${at}`);
      if (at % 20 === 0) await records.saved();
    }
    await records.saved();
  };
  const isRight = async (times: number): Promise<void> => {
    const after = await Records.open(folder, 'one');
    assert.deepEqual(
      [...after.places],
      [[`d/${times}`, { remote: { kind: 'file', version: { bytes: 1, modifiedMs: 1 } } }]],
    );
    assert.deepEqual(after.conflicts, [CONFLICT]);
    await after.close();
  };

  it('does not grow with what is outdated, and says the same', async () => {
    const records = await Records.open(folder, 'one');
    await rename(records, 20_000);
    assert.ok(statSync(file).size < 300_000, `${statSync(file).size} bytes`);
    // What came after it was written anew is there, too.
    records.noteTwin('Twin');
    await records.saved();
    assert.match(readFileSync(file, 'utf8'), /"twin"/);
    await records.close();
    await isRight(20_000);
  });

  it('keeps of another upper folder only what the remote had at the files that are in it', async () => {
    const remote = { kind: 'file', version: { bytes: 1, modifiedMs: 1 } } as const;
    const proved = { inode: '1', bytes: 1, modifiedNs: '1', changedNs: '1' };
    const records = await Records.open(folder, 'one');
    for (const place of ['here', 'gone'])
      records.set(place, { remote, proved, copy: { path: `${place} (copy)` } });
    records.setMove('key', { at: 'here' });
    await records.close();
    const moved = await Records.open(folder, 'another', (place) => place === 'here');
    assert.deepEqual([...moved.places], [['here', { remote, copy: { path: 'here (copy)' } }]]);
    assert.equal(moved.moves.size, 0);
    await moved.close();
    const again = await Records.open(folder, 'another');
    assert.deepEqual([...again.places.keys()], ['here']);
    await again.close();
  });

  it('renames a copy beside a file with the folder of both, also in what is told of the conflict', async () => {
    const records = await Records.open(folder, 'one');
    const remote = { kind: 'file', version: { bytes: 1, modifiedMs: 1 } } as const;
    records.set('d/f', { remote, copy: { path: 'd/f (conflict)' } });
    records.set('d/g', { remote, copy: { path: 'other/g' } });
    records.setConflict({ ...CONFLICT, path: 'd/f', copy: 'd/f (conflict)' });
    records.renamed('d', 'e/d');
    await records.close();
    const after = await Records.open(folder, 'one');
    assert.deepEqual(after.places.get('e/d/f'), { remote, copy: { path: 'e/d/f (conflict)' } });
    assert.deepEqual(after.places.get('e/d/g'), { remote, copy: { path: 'other/g' } });
    assert.deepEqual(after.conflicts, [{ ...CONFLICT, path: 'e/d/f', copy: 'e/d/f (conflict)' }]);
    await after.close();
  });

  it('has whoever saves wait for what is known by then, not for what others add meanwhile', async () => {
    const records = await Records.open(folder, 'one');
    records.noteTwin('mine');
    const saved = records.saved();
    records.noteTwin('later');
    await saved;
    assert.match(readFileSync(file, 'utf8'), /"mine"/);
    assert.doesNotMatch(readFileSync(file, 'utf8'), /"later"/);
    await records.close();
    assert.match(readFileSync(file, 'utf8'), /"later"/);
  });

  it('has no part of a line in its midst after a write that failed', async () => {
    const records = await Records.open(folder, 'one');
    records.set('a', { remote: { kind: 'nothing' } });
    await records.saved();
    // Stands for what a full disk took of a line.
    appendFileSync(file, '{"place":"b","rec');
    records.set('c', { remote: { kind: 'nothing' } });
    await records.close();
    const after = await Records.open(folder, 'one');
    assert.deepEqual([...after.places.keys()], ['a', 'c']);
    await after.close();
  });

  it('is believed in nothing where something is missing in its midst, but for what users are to see to', async () => {
    const records = await Records.open(folder, 'one');
    records.setConflict(CONFLICT);
    records.set('a', { remote: { kind: 'file', version: { bytes: 1, modifiedMs: 1 } } });
    await records.close();
    appendFileSync(file, `{"place":"b","rec\n${JSON.stringify({ place: 'a', record: null })}\n`);
    const after = await Records.open(folder, 'one');
    assert.deepEqual([[...after.places], after.conflicts], [[], [CONFLICT]]);
    await after.close();
    appendFileSync(file, '{"place":"b","rec');
    const cut = await Records.open(folder, 'one');
    assert.deepEqual(cut.conflicts, [CONFLICT]);
    await cut.close();
  });

  it('goes on as it is where it cannot be written anew', async () => {
    const records = await Records.open(folder, 'one');
    mkdirSync(`${file}.new/in the way`, { recursive: true });
    await rename(records, 20_000);
    assert.ok(statSync(file).size > 600_000, `${statSync(file).size} bytes`);
    await records.close();
    rmSync(`${file}.new`, { recursive: true });
    await isRight(20_000);
  });
});
