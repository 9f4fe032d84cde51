/** What a stop may say of caches in which nothing was found. */
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { CleanCaches } from '../../../../plugins/mount/cache/clean-caches.ts';

it('caches are clean where the last look at each found nothing, and nobody has begun a mount since', () => {
  const clean = new CleanCaches();
  const all = ['a', 'b'];
  assert.equal(clean.are(all), false);
  for (const share of all) clean.look(share)();
  assert.equal(clean.are(all), true);
  assert.equal(clean.are([...all, 'c']), false);
  const isOver = clean.mounting();
  assert.equal(clean.are(all), false);
  const late = clean.look('a');
  isOver();
  late();
  assert.equal(clean.are(['a']), false, 'a look from before the mount says nothing');
  clean.look('a')();
  clean.begin();
  assert.equal(clean.are(['a']), false);
});
