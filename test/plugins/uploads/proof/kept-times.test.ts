/** What is learnt of the remote's times, from how many files. */
import assert from 'node:assert/strict';
import { beforeEach, describe, it } from 'node:test';
import { KeptTimes } from '../../../../plugins/uploads/proof/kept-times.ts';

const SENT = Date.UTC(2020, 1, 2);
const FAR = Date.UTC(2110, 0, 1);
const EARLY = Date.UTC(1975, 0, 1);

describe('the times of a remote', () => {
  let times: KeptTimes;
  let told: number[];
  let warnings: unknown[];
  const records = {
    precisionMs: 0,
    notePrecision: (ms: number): void => void (records.precisionMs = ms),
  };
  beforeEach(() => {
    records.precisionMs = 0;
    told = [];
    warnings = [];
    times = new KeptTimes({
      shareName: 'files',
      remote: { notePrecision: (ms) => void told.push(ms) },
      log: { warn: (fields: unknown) => void warnings.push(fields) },
    });
  });
  const note = (place: string, sentMs: number, shownMs: number): void =>
    times.note(place, { sentMs, shownMs }, records);

  it('are coarser than said after one file', () => {
    note('a', SENT, SENT - 1_900);
    note('b', SENT, SENT + 1_900);
    assert.deepEqual(told, [2_100]);
    assert.equal(records.precisionMs, 2_100);
    assert.deepEqual(warnings, []);
  });

  it('count for nothing once a second file has shown another one, which is told once', () => {
    note('a', SENT, SENT + 60_000);
    note('a', SENT, SENT + 90_000);
    assert.deepEqual(told, []);
    for (const place of ['b', 'c']) note(place, SENT, SENT + 60_000);
    note('d', SENT, SENT + 1_900);
    assert.deepEqual(told, [Infinity]);
    assert.equal(records.precisionMs, Infinity);
    assert.deepEqual(warnings, [{ share: 'files', files: ['a', 'b'] }]);
  });

  it('are believed where single files have one that many protocols and disks cannot keep', () => {
    for (const place of ['a', 'b', 'c']) note(place, FAR, FAR - 2 ** 32 * 1_000);
    for (const place of ['a', 'b', 'c']) note(place, EARLY, Date.UTC(1980, 0, 1));
    assert.equal(records.precisionMs, 0);
    assert.deepEqual(told, []);
  });
});
