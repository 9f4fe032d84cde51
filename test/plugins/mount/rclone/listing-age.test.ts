import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { rcloneDirCacheMs } from '../../../../plugins/mount/rclone/listing-age.ts';
import { createWorld, MINUTE_MS, NONE } from '../../../support/mount/listing-age-world.ts';

describe('the age of listings', () => {
  it('is kept below dir_cache_time: folders with something cached or written are read, others forgotten', async (t) => {
    const world = await createWorld(t);
    world.at.nowMs = 13 * MINUTE_MS;
    await world.answer();
    assert.equal(world.calls.length, 0);
    world.at.nowMs = 14 * MINUTE_MS;
    await world.answer();
    assert.deepEqual(
      world.calls.filter((call) => !/ (locked|written)\b/.test(call)),
      [
        'list',
        'forget b',
        'refresh',
        'list a',
        'forget a/y',
        'refresh a',
        'list a/x',
        'refresh a/x as a tree',
      ],
    );
    await world.answer();
    assert.ok(world.calls.includes('refresh written as a tree'), 'nothing in it is in the cache');
    assert.equal(world.calls.length, 11, 'nothing is due');
  });

  it('is none for a new rclone: what holds cached files is read at the first answer, nothing is dropped', async (t) => {
    const world = await createWorld(t, { isRead: false });
    await world.answer();
    assert.deepEqual(
      world.calls.filter((call) => !/ (locked|written)\b/.test(call)),
      ['list', `refresh ${NONE}`, 'list a', `refresh a/${NONE}`, 'list a/x', `refresh a/x/${NONE}`],
    );
    assert.equal(world.ages.hasUnread, true, 'one could not be read');
    await world.answer();
    Object.assign(world.at, { isLocked: false, nowMs: 16 * MINUTE_MS });
    await world.answer();
    assert.equal(world.ages.hasUnread, false);
    Object.assign(world.at, { isLocked: true, nowMs: 32 * MINUTE_MS });
    await world.answer();
    assert.equal(world.ages.hasUnread, false, 'it keeps its listing');
  });

  it('is unknown once the first reading of a new rclone has failed: others have read meanwhile', async (t) => {
    const world = await createWorld(t, { isRead: false });
    world.at.isThere = false;
    await world.answer();
    assert.deepEqual([world.calls.splice(0), world.ages.hasUnread], [['list'], true]);
    Object.assign(world.at, { isThere: true, nowMs: 4_000 });
    await world.answer();
    assert.deepEqual(world.calls, [], 'too soon');
    world.at.nowMs = 6_000;
    await world.answer();
    assert.deepEqual(
      world.calls.filter((call) => !/ (locked|written)\b/.test(call)),
      [
        'list',
        'forget b',
        'refresh',
        'list a',
        'forget a/y',
        'refresh a',
        'list a/x',
        'refresh a/x as a tree',
      ],
    );
  });

  it('is none that counts once what was read may be wrong, though the first reading is still to come', async (t) => {
    const world = await createWorld(t, { isRead: false });
    world.ages.distrust();
    await world.answer();
    assert.ok(world.calls.includes('forget b') && world.calls.includes('forget a/y'), world.calls.join());
  });

  it('is unknown for an adopted rclone until all has been read', async (t) => {
    const world = await createWorld(t, { isNew: false });
    assert.equal(world.ages.hasUnread, true);
    await world.ages.during(true, () => Promise.resolve({ ok: 3, failed: [] }));
    assert.equal(world.ages.hasUnread, false);
  });

  it('counts what a refresh of the whole share has read, and nothing less', async (t) => {
    const world = await createWorld(t);
    world.at.nowMs = 10 * MINUTE_MS;
    await world.ages.during(true, () => Promise.resolve({ ok: 3, failed: [{ path: 'locked', reason: '' }] }));
    world.at.nowMs = 20 * MINUTE_MS;
    await world.ages.during(false, () => Promise.resolve({ ok: 1, failed: [] }));
    await world.ages.during(true, () => Promise.resolve({ ok: 0, failed: [{ path: '', reason: '' }] }));
    await world.answer();
    assert.deepEqual(world.calls, []);
    world.at.nowMs = 24 * MINUTE_MS;
    await world.answer();
    assert.notDeepEqual(world.calls, []);
  });

  it('counts for nothing after what was read may be wrong: all is read again at the next answer', async (t) => {
    const world = await createWorld(t);
    world.at.nowMs = MINUTE_MS;
    await world.answer();
    assert.deepEqual(world.calls, []);
    world.ages.distrust();
    assert.equal(world.ages.isDistrusted, true);
    await world.answer();
    assert.equal(world.calls.length, 11);
    assert.equal(world.ages.isDistrusted, false);
    await world.answer();
    assert.equal(world.calls.length, 11, 'nothing is due');
    // One that was begun before does not count.
    world.ages.distrust();
    world.at.nowMs += 10;
    const renewal = world.answer();
    world.at.nowMs += 10;
    world.ages.distrust();
    await renewal;
    assert.equal(world.ages.isDistrusted, true);
    await world.answer();
    assert.equal(world.ages.isDistrusted, false);
    world.ages.distrust();
    await world.ages.during(true, () => Promise.resolve({ ok: 3, failed: [] }));
    assert.equal(world.ages.isDistrusted, false);
  });

  it('drops nothing when the remote does not answer after all, and tries again', async (t) => {
    const world = await createWorld(t, { isNew: false });
    world.at.isThere = false;
    await world.answer();
    await world.answer();
    assert.deepEqual(world.calls, ['list']);
    Object.assign(world.at, { isThere: true, nowMs: 2 * MINUTE_MS });
    await world.answer();
    assert.ok(world.calls.includes('refresh a/x as a tree'));
  });

  it('is limited by rclone to some days, so that it outlasts an outage and ends without a daemon', () => {
    assert.deepEqual([5_000, 15 * MINUTE_MS, 10 * 86_400_000].map(rcloneDirCacheMs), [
      5_000,
      3 * 86_400_000,
      10 * 86_400_000,
    ]);
  });
});
