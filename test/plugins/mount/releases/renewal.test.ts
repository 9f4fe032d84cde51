import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LiveShare, MountStats } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { outdatedNotices, QuietRenewal } from '../../../../plugins/mount/releases/renewal.ts';
import type { Outdated, RunningRclone } from '../../../../plugins/mount/releases/renewal.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

const QUIET: MountStats = {
  cacheBytes: 100,
  dirtyFiles: 0,
  erroredFiles: 0,
  speed: 0,
  transfers: 0,
  errors: 3,
  uploading: false,
};
const LOOK_MS = 10_000;

interface Faked {
  isOpen: boolean;
  isUsed: boolean;
  stats: Partial<MountStats>;
  health: LiveShare['health'];
  remoteAnswers: boolean;
  figuresAgeMs: number;
  readonly outdated: Outdated;
}

/** Shares with the older rclone, looked at every ten seconds as the plugin does. */
function start(names: readonly string[], { after = '1m', isLayered = false, next = 'rclone v1.75.2' } = {}) {
  const clock = createManualClock();
  const renewed: string[] = [];
  const fakes = names.map((name): Faked => {
    const mount = {
      shareName: name,
      isIdle: () => Promise.resolve(!fake.isOpen),
      isFree: () => Promise.resolve(!fake.isUsed),
      ...(isLayered && { renewRclone: () => void renewed.push(`below ${name}`) }),
    } as unknown as RunningRclone;
    const fake: Faked = {
      isOpen: false,
      isUsed: false,
      stats: {},
      health: 'healthy',
      remoteAnswers: true,
      figuresAgeMs: 0,
      outdated: { mount, rclone: 'rclone v1.74.3', next },
    };
    return fake;
  });
  const { log, entries } = collectLog();
  const renewal = new QuietRenewal({
    clock,
    log,
    after: () => after,
    shares: () =>
      fakes.map(({ outdated: { mount }, stats, health, remoteAnswers, figuresAgeMs }) => ({
        spec: { share: { name: mount.shareName } } as LiveShare['spec'],
        health,
        mount,
        remoteAnswers,
        figures: { stats: { ...QUIET, ...stats }, takenAtMs: clock.monotonic() - figuresAgeMs },
      })),
    reconnect: async (share) => void renewed.push(share),
  });
  const pass = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += LOOK_MS) {
      await clock.advance(LOOK_MS);
      await renewal.look(fakes.map(({ outdated }) => outdated));
    }
  };
  const [first] = fakes;
  assert.ok(first);
  return { fakes, first, renewed, pass, entries };
}

describe('a mount by an older rclone', () => {
  it('is renewed once, when nobody has used its share for as long as is set', async () => {
    const { pass, renewed } = start(['files']);
    await pass(60_000);
    assert.deepEqual(renewed, [], 'seen to be quiet for 50 s');
    await pass(10_000);
    assert.deepEqual(renewed, ['files']);
    await pass(600_000);
    assert.deepEqual(renewed, ['files'], 'not again for the same version, whatever came of it');
  });

  const uses: readonly (readonly [what: string, use: (fake: Faked) => void])[] = [
    ['a file is open', (fake) => (fake.isOpen = true)],
    ['a file waits', (fake) => (fake.stats = { dirtyFiles: 1 })],
    ['a file was refused', (fake) => (fake.stats = { erroredFiles: 1 })],
    ['something is transferred', (fake) => (fake.stats = { transfers: 1 })],
    ['bytes move', (fake) => (fake.stats = { speed: 1 })],
    ['the NAS is away', (fake) => (fake.remoteAnswers = false)],
    ['the share is not healthy', (fake) => (fake.health = 'failed')],
    ['nothing is known of it', (fake) => (fake.figuresAgeMs = 60_000)],
  ];
  for (const [what, use] of uses)
    it(`stays while ${what}, and for the whole quiet time after`, async () => {
      const { pass, renewed, first } = start(['files']);
      await pass(50_000);
      const before = { ...first };
      use(first);
      await pass(120_000);
      assert.deepEqual(renewed, []);
      Object.assign(first, before);
      await pass(50_000);
      assert.deepEqual(renewed, []);
      await pass(20_000);
      assert.deepEqual(renewed, ['files']);
    });

  it('stays while a program works in a folder of it', async () => {
    const { pass, renewed, first } = start(['files']);
    first.isUsed = true;
    await pass(300_000);
    assert.deepEqual(renewed, []);
    first.isUsed = false;
    await pass(70_000);
    assert.deepEqual(renewed, ['files']);
  });

  it('follows another one only when that is up again', async () => {
    const { pass, renewed, first } = start(['one', 'two', 'three']);
    await pass(70_000);
    assert.deepEqual(renewed, ['one'], 'one at a time');
    first.health = 'failed';
    await pass(300_000);
    assert.deepEqual(renewed, ['one'], 'the new rclone may not work here');
    first.health = 'healthy';
    await pass(20_000);
    assert.deepEqual(renewed, ['one', 'two', 'three']);
  });

  it('below a write layer is replaced there, and the share stays mounted', async () => {
    const { pass, renewed } = start(['team'], { isLayered: true });
    await pass(70_000);
    assert.deepEqual(renewed, ['below team']);
  });

  it('stays where nobody wants it to be renewed, and where the choice is an older one', async () => {
    const off = start(['files'], { after: '0' });
    await off.pass(600_000);
    assert.deepEqual(off.renewed, []);
    const older = start(['files'], { next: 'rclone v1.73.0' });
    await older.pass(600_000);
    assert.deepEqual(older.renewed, []);
  });

  it('is named in a notice, which says what happens by itself', () => {
    const outdated = start(['one', 'two']).fakes.map((fake) => fake.outdated);
    const said = (after: string, some = outdated) =>
      outdatedNotices(some, after).map(({ message }) => message);
    assert.deepEqual(said('5m'), [
      'one, two: mounted by rclone v1.74.3, and rclone v1.75.2 is in use now; each takes it once nobody has used ' +
        'it for 5m, `mountkeeper reconnect SHARE` mounts one anew',
    ]);
    assert.match(said('0')[0] ?? '', /; the next mount takes it, /);
    const back = outdated.map((one) => ({ ...one, next: 'rclone v1.70.0' }));
    assert.match(said('5m', back)[0] ?? '', /; the next mount takes it, /);
  });
});
