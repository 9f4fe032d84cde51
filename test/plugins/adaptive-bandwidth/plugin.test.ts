import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { LiveShare } from 'mountkeeper';
import adaptiveBandwidth from '../../../plugins/adaptive-bandwidth/index.ts';
import { CLEAN, FakeMount, planOf, spec, sharesOf } from '../../support/shares/fake-shares.ts';

const MIB = 1_048_576;

/** Shares whose mounts send up so many MiB in each second of the clock. */
async function start(t: TestContext, bandwidth: object = {}) {
  const photos = {
    rate: 8,
    uploaded: 0 as number | undefined,
    uploading: true,
    remoteAnswers: true,
    mount: new FakeMount(planOf(spec('photos')), 'photos'),
  };
  const live = (): LiveShare[] => [
    {
      spec: spec('photos'),
      health: 'healthy',
      mount: photos.mount,
      remoteAnswers: photos.remoteAnswers,
      figures: {
        stats: { ...CLEAN, uploading: photos.uploading, uploadedBytes: photos.uploaded },
        takenAtMs: host.clock.monotonic(),
      },
    },
  ];
  const config = (more: object) => ({
    bandwidth: { up: '8M', adaptive: true, adaptive_interval: '1s', ...bandwidth, ...more },
  });
  const host = await createTestHost({
    plugins: [adaptiveBandwidth],
    config: config({}),
    services: { shares: sharesOf(() => live()) },
  });
  t.after(() => host.close());
  const seconds = async (count: number, rate = photos.rate): Promise<void> => {
    photos.rate = rate;
    for (let done = 0; done < count; done += 1) {
      await host.advance(500);
      if (photos.uploaded !== undefined) photos.uploaded += photos.rate * MIB;
      await host.advance(500);
    }
  };
  const budget = (up = 8 * MIB): number => host.hooks.resolve('resolveBandwidth', { up, down: 5 }).up / MIB;
  budget();
  await host.advance(600);
  return { host, photos, seconds, budget, configure: (more: object) => host.configure(config(more)) };
}

describe('adaptive bandwidth', () => {
  it('lowers the budget of uploads alone while the line is congested, and says so', async (t) => {
    const { host, seconds, budget } = await start(t);
    await seconds(8);
    assert.equal(budget(), 8);
    assert.deepEqual(await host.hooks.collect('collectNotices'), []);
    await seconds(5, 8 / 3);
    assert.equal(budget().toFixed(2), '2.53');
    assert.equal(host.hooks.resolve('resolveBandwidth', { up: 8 * MIB, down: 5 }).down, 5);
    assert.match(
      (await host.hooks.collect('collectNotices'))[0]?.message ?? '',
      /held to 2\.5 MiB\/s .*8\.0 MiB\/s are allowed/,
    );
    await seconds(20, 2.53);
    assert.equal(budget().toFixed(2), '2.53');
  });

  it('does not judge while nothing uploads, the remote is silent, or the directions mix', async (t) => {
    for (const spoil of ['idle', 'silent', 'stalled', 'mixed', 'mounted anew']) {
      const { photos, seconds, budget } = await start(t);
      await seconds(8);
      if (spoil === 'idle') photos.uploading = false;
      if (spoil === 'silent') photos.remoteAnswers = false;
      if (spoil === 'mixed') photos.uploaded = undefined;
      if (spoil === 'mounted anew') photos.mount = new FakeMount(planOf(spec('photos')), 'photos');
      await seconds(2, spoil === 'stalled' ? 0 : 0.5);
      Object.assign(photos, { uploading: true, remoteAnswers: true, uploaded: photos.uploaded ?? 0 });
      await seconds(4, 8);
      assert.equal(budget(), 8, spoil);
    }
  });

  it('begins anew with another budget, and after ten minutes without evidence', async (t) => {
    const { photos, seconds, budget } = await start(t);
    await seconds(8);
    await seconds(5, 8 / 3);
    assert.ok(budget() < 3);
    assert.equal(budget(4 * MIB), 4);
    await seconds(8, 4);
    await seconds(5, 4 / 3);
    assert.ok(budget(4 * MIB) < 2);
    photos.uploading = false;
    await seconds(590);
    assert.ok(budget(4 * MIB) < 2);
    await seconds(20);
    assert.equal(budget(4 * MIB), 4);
  });

  it('is switched on and off while it runs', async (t) => {
    const { seconds, budget, configure } = await start(t, { adaptive: false });
    await seconds(8);
    await seconds(5, 1);
    assert.equal(budget(), 8);
    await configure({ adaptive: true });
    budget();
    await seconds(8, 8);
    await seconds(4, 1);
    assert.ok(budget() < 8);
    await configure({ adaptive: false });
    assert.equal(budget(), 8);
  });
});
