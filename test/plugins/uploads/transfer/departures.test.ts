/** Which scans are believed about what was taken out of the upper folder while they went on. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import type { ScanEntry } from '../../../../plugins/uploads/compare/scan.ts';
import { Departures } from '../../../../plugins/uploads/transfer/leaving/departures.ts';
import type { TimedScan } from '../../../../plugins/uploads/compare/scan.ts';

function entry(path: string): ScanEntry {
  return { path, kind: 'file', inode: 1n, bytes: 0, modifiedNs: 0n, changedNs: 0n, isOpaque: false };
}

function scanFrom(startedMs: number, ...paths: readonly string[]): TimedScan {
  const entries = new Map(paths.map((path) => [path, entry(path)]));
  return { entries, folders: new Map(), startedMs, startedAt: 0 };
}

it('believes no scan from before the end about what was being taken out, whether it left or came back', () => {
  let now = 10;
  const departures = new Departures({ monotonic: () => now });
  const end = departures.begin(['left', 'back']);
  now = 20;
  const meanwhile = scanFrom(now, 'left', 'other');
  assert.equal(departures.mayReturn(meanwhile, 'left'), true);
  assert.equal(departures.hasLeft(meanwhile, 'left'), false);
  now = 30;
  end(new Set(['left', 'never begun']));
  assert.deepEqual([...departures.without(meanwhile).entries.keys()], ['other']);
  for (const place of ['left', 'back']) assert.equal(departures.mayReturn(meanwhile, place), true);
  assert.equal(departures.hasLeft(meanwhile, 'back'), false);
  assert.equal(departures.hasLeft(meanwhile, 'never begun'), false);
  const later = scanFrom(31, 'left', 'other');
  assert.equal(departures.without(later), later);
  for (const place of ['left', 'back']) assert.equal(departures.mayReturn(later, place), false);
});

it('still knows what left while something by the same name is taken out, and comes back', () => {
  let now = 10;
  const departures = new Departures({ monotonic: () => now });
  const before = scanFrom(now, 'a');
  now = 20;
  departures.begin(['a'])(new Set(['a']));
  const end = departures.begin(['a']);
  assert.equal(departures.hasLeft(before, 'a'), true);
  now = 30;
  end(new Set());
  assert.equal(departures.hasLeft(before, 'a'), true);
  assert.equal(departures.hasLeft(scanFrom(25, 'a'), 'a'), false);
});
