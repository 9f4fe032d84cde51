/** What is planned again, and what is kept. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { NOTHING_LATE } from '../../../../plugins/uploads/compare/late-writes.ts';
import { PlanMemo } from '../../../../plugins/uploads/compare/plan-memo.ts';
import type { Conditions } from '../../../../plugins/uploads/compare/plan-types.ts';
import { NOTHING, Records } from '../../../../plugins/uploads/compare/records.ts';
import { createScanner } from '../../../../plugins/uploads/compare/scan.ts';
import { processes } from '../../../support/write-layer/uploader-share.ts';

const CONDITIONS: Conditions = {
  isOpen: () => false,
  isRested: () => true,
  isWhole: true,
  nameProblem: () => undefined,
  isCut: () => false,
  late: NOTHING_LATE,
  isUrgent: () => false,
  inUse: new Set(),
  quietAt: () => undefined,
};

describe('looks at an upper folder in which nothing happens', () => {
  let folder: string;
  let upper: string;
  let records: Records;
  const signal = new AbortController().signal;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'mk-memo-'));
    upper = mkdtempSync(join(folder, 'upper-'));
    writeFileSync(join(upper, 'a'), 'one');
    records = await Records.open(join(folder, 'records'), 'one');
    records.set('a', { remote: NOTHING });
  });
  afterEach(async () => {
    await records.close();
    rmSync(folder, { recursive: true });
  });

  it('read and plan once', async () => {
    const [scanner, memo] = [createScanner(upper, processes), new PlanMemo()];
    const scan = await scanner.scan(signal);
    const plan = memo.plan(scan, records, CONDITIONS, 'steady');
    assert.deepEqual([...plan.items.keys()], ['upload a']);
    const again = await scanner.scan(signal);
    assert.equal(again.entries, scan.entries);
    assert.equal(memo.plan(again, records, CONDITIONS, 'steady'), plan);
  });

  it('plan again after any change: of a file, of the records, of the conditions', async () => {
    const [scanner, memo] = [createScanner(upper, processes), new PlanMemo()];
    const first = memo.plan(await scanner.scan(signal), records, CONDITIONS, 'steady');
    writeFileSync(join(upper, 'a'), 'longer');
    const second = memo.plan(await scanner.scan(signal), records, CONDITIONS, 'steady');
    assert.deepEqual(
      [first, second].map((plan) => plan.items.get('upload a')?.bytes),
      [3, 6],
    );
    writeFileSync(join(upper, 'b'), 'another');
    records.set('b', { remote: NOTHING });
    const scan = await scanner.scan(signal);
    assert.deepEqual([...memo.plan(scan, records, CONDITIONS, 'steady').items.keys()].sort(), [
      'upload a',
      'upload b',
    ]);
    records.set('b', { remote: NOTHING, copy: { path: 'c' } });
    records.set('gone', { remote: { kind: 'folder' }, isTree: true });
    const third = memo.plan(scan, records, CONDITIONS, 'steady');
    assert.ok(third.items.has('delete gone'));
    const isOpen = (path: string): boolean => path === 'a';
    const held = memo.plan(scan, records, { ...CONDITIONS, isOpen }, {});
    assert.match(held.items.get('upload a')?.hold ?? '', /open for writing/);
    const torn = memo.plan(scan, records, { ...CONDITIONS, isWhole: false }, 'steady');
    assert.match(torn.items.get('delete gone')?.hold ?? '', /renamed just now/);
  });
});
