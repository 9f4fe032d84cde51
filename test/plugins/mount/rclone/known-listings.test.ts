import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createWorld, MINUTE_MS, NONE, ONE_FILE } from '../../../support/mount/listing-age-world.ts';
import type { World } from '../../../support/mount/listing-age-world.ts';

describe('a listing of the NAS that is the one that the mount is known to hold', () => {
  /** What is called in the next renewal, but for folders that cannot be listed or are not in `a`. */
  const renewed = async (world: World): Promise<readonly string[]> => {
    world.calls.length = 0;
    world.at.nowMs += 14 * MINUTE_MS;
    await world.answer();
    return world.calls.filter((call) => !/ (locked|written)\b/.test(call));
  };
  /** All has been read, and noted, once. */
  const createKnown = async (t: TestContext): Promise<World> => {
    const world = await createWorld(t);
    await renewed(world);
    return world;
  };
  const UNCHANGED = [
    'list',
    `refresh ${NONE}`,
    'list b',
    'forget b/any b/deep b/in',
    'list a',
    `refresh a/${NONE}`,
    'list a/y',
    'forget a/y/any',
    'list a/x',
    `refresh a/x/${NONE}`,
  ];
  const OF_X = ['list a/x', 'refresh a/x as a tree'];
  const lastOf = (calls: readonly string[]): readonly string[] => calls.slice(-2);

  it('drops no listing, and forgets what is in other folders without theirs', async (t) => {
    const world = await createKnown(t);
    assert.deepEqual(await renewed(world), UNCHANGED);
    assert.deepEqual(await renewed(world), UNCHANGED, 'nothing was noted by it, nothing lost');
  });

  it('sees another size, time, ID or name, and the time of a folder', async (t) => {
    const world = await createKnown(t);
    for (const file of [
      { ...ONE_FILE, Size: 8 },
      { ...ONE_FILE, ModTime: '2026-01-02T03:04:06Z' },
      { ...ONE_FILE, ID: 'other' },
      { ...ONE_FILE, Name: 'g' },
    ]) {
      world.files['a/x'] = [file];
      assert.deepEqual(lastOf(await renewed(world)), OF_X, JSON.stringify(file));
      assert.deepEqual(await renewed(world), UNCHANGED);
    }
    world.times['a/y'] = '2026-01-02T03:04:07Z';
    const calls = await renewed(world);
    assert.ok(calls.includes('refresh a') && calls.includes('forget a/y'), calls.join());
    assert.deepEqual(lastOf(calls), UNCHANGED.slice(-2));
  });

  it('reads all anew after six hours, and at once what others have had rclone read or drop', async (t) => {
    const world = await createKnown(t);
    const nothing = (): Promise<void> => Promise.resolve();
    await world.ages.changing({ folders: ['a/x'], trees: [] }, nothing);
    assert.deepEqual(lastOf(await renewed(world)), OF_X);
    await world.ages.changing({ folders: ['a'], trees: [] }, nothing);
    assert.deepEqual(lastOf(await renewed(world)), UNCHANGED.slice(-2), 'that alone');
    await world.ages.changing({ folders: [], trees: ['a'] }, nothing);
    const calls = await renewed(world);
    assert.ok(calls.includes('refresh a') && calls.includes(`refresh ${NONE}`), calls.join());
    assert.deepEqual(lastOf(calls), OF_X);
    world.at.nowMs += 6 * 60 * MINUTE_MS;
    assert.ok((await renewed(world)).includes('refresh'));
    assert.deepEqual(await renewed(world), UNCHANGED);
  });

  it('has noted nothing of what others had rclone read meanwhile', async (t) => {
    const world = await createKnown(t);
    let end = (): void => undefined;
    const over = world.ages.changing(
      { folders: ['a/x'], trees: [] },
      () => new Promise<void>((resolve) => (end = resolve)),
    );
    assert.deepEqual(lastOf(await renewed(world)), OF_X);
    end();
    await over;
    assert.deepEqual(lastOf(await renewed(world)), OF_X);
    assert.deepEqual(await renewed(world), UNCHANGED);
  });

  it('does not count what was to be read and could not be, nor what may be wrong', async (t) => {
    const world = await createKnown(t);
    world.files['a/x'] = [];
    world.at.refuses = 'refresh a/x as a tree';
    assert.deepEqual(lastOf(await renewed(world)), OF_X);
    world.at.refuses = '';
    assert.deepEqual(lastOf(await renewed(world)), OF_X, 'what it holds now is unknown');
    world.ages.distrust();
    assert.ok((await renewed(world)).includes('refresh a'));
  });

  it('drops nothing of others when the NAS goes away, and only theirs where it may not list one', async (t) => {
    const world = await createKnown(t);
    world.at.refuses = 'list a/y';
    const calls = await renewed(world);
    assert.deepEqual(calls, UNCHANGED.slice(0, UNCHANGED.indexOf('forget a/y/any')));
    world.at.refuses = '';
    await renewed(world);
    Object.assign(world.at, { refuses: 'list b', how: 'permission denied' });
    assert.deepEqual(
      await renewed(world),
      UNCHANGED.map((call) => call.replace(' b/deep b/in', '')),
    );
  });

  it('lists few other folders: where there are more in one, its listing is dropped with theirs', async (t) => {
    const world = await createKnown(t);
    world.crowd.push(...Array.from({ length: 201 }, (_, index) => `a/${index}`));
    await renewed(world);
    const calls = await renewed(world);
    assert.ok(calls.includes('refresh a') && calls.includes(`refresh ${NONE}`), calls.join());
    // With `a/y` and `b` one too many.
    world.crowd.splice(199);
    await renewed(world);
    assert.ok((await renewed(world)).includes('refresh a'));
    world.crowd.splice(198);
    await renewed(world);
    assert.ok((await renewed(world)).includes(`refresh a/${NONE}`));
  });

  it('is not compared where each time of a file costs a request', async (t) => {
    const world = await createWorld(t);
    world.at.isSlow = true;
    await renewed(world);
    assert.deepEqual(lastOf(await renewed(world)), OF_X);
  });
});
