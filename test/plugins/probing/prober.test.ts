import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { unlessAborted } from 'mountkeeper';
import type { ConnectionMonitor, Mounter, ShareSpec } from 'mountkeeper';
import { createClock } from '../../../core/platform/clock.ts';
import { schema } from '../../../plugins/probing/config.ts';
import { createSemaphore } from '../../../core/platform/semaphore.ts';
import { createProber } from '../../../plugins/probing/prober.ts';

const clock = createClock();
const never = (): Promise<void> => new Promise(() => undefined);
const spec = (name: string): ShareSpec => ({ share: { name } }) as ShareSpec;
const prober = (
  probe: Mounter['probe'],
  timeoutMs = 60,
  heldAtMostMs = 20,
): ReturnType<typeof createProber> =>
  createProber({
    clock,
    mounter: () => ({ probe }) as Mounter,
    connections: () => ({ of: () => undefined }),
    places: createSemaphore({ places: 2, heldAtMostMs, clock }),
    timeoutMs: () => timeoutMs,
  });
const signal = new AbortController().signal;

describe('a prober, asked whether the mount may find out by itself', () => {
  /** `missing`: why the NAS is not there; null where it says nothing at all. */
  const asked = (
    mountsUnprobed: Mounter['mountsUnprobed'],
    missing?: string | null,
    isKnown = true,
  ): Promise<boolean> | undefined => {
    const dial = (ended: AbortSignal): Promise<string | undefined> =>
      missing === null
        ? unlessAborted(ended, never() as Promise<undefined>).catch(() => 'timeout')
        : Promise.resolve(missing);
    return createProber({
      clock,
      mounter: () => ({ mountsUnprobed }) as Mounter,
      connections: () => ({ of: () => (isKnown ? ({ dial } as ConnectionMonitor) : undefined) }),
      places: createSemaphore({ places: 2, heldAtMostMs: 20, clock }),
      timeoutMs: () => 60,
    }).leavesToMount?.(spec('a'), signal);
  };
  const yes = () => Promise.resolve(true);

  it('says so where the mounter can, and the NAS is there', async () => {
    assert.equal(await asked(yes), true);
  });

  it('wants to probe where the NAS is away, silent or nobody knows where', async () => {
    const letGo = clock.after(30_000, () => undefined, { keepAlive: true });
    assert.deepEqual(
      [await asked(yes, 'connection refused'), await asked(yes, null), await asked(yes, undefined, false)],
      [false, false, false],
    );
    letGo();
  });

  it('wants to probe where the mounter cannot, or cannot tell', async () => {
    const broken = () => Promise.reject(new Error('disk error'));
    const no = () => Promise.resolve(false);
    assert.deepEqual([await asked(undefined), await asked(no), await asked(broken)], [false, false, false]);
  });
});

describe('a probe', () => {
  // Deadlines alone do not keep a process alive.
  let letGo: () => void;
  before(() => (letGo = clock.after(30_000, () => undefined, { keepAlive: true })));
  after(() => letGo());

  it('is good when the remote path is listed', async () => {
    assert.deepEqual(await prober(() => Promise.resolve()).probe(spec('a'), signal), { ok: true });
  });

  it("fails with the mounter's reason", async () => {
    assert.deepEqual(await prober(() => Promise.reject(new Error('no such path'))).probe(spec('a'), signal), {
      ok: false,
      reason: 'no such path',
    });
  });

  it('passes on what the failure shows about the remote, and knows that silence shows it, too', async () => {
    const refused = Object.assign(new Error('refused'), { remote: 'answers' as const });
    assert.deepEqual(await prober(() => Promise.reject(refused)).probe(spec('a'), signal), {
      ok: false,
      reason: 'refused',
      remote: 'answers',
    });
    const late = await prober(never).probe(spec('a'), signal);
    assert.equal(late.ok ? undefined : late.remote, 'silent');
  });

  it('has a time in which a remote can answer', () => {
    assert.deepEqual(schema.validate({}).value, { timeout: '10s' });
    for (const timeout of ['0', '99ms'])
      assert.match(schema.validate({ timeout }).error?.message ?? '', /the least is "100ms"/, timeout);
  });

  it('fails at its time-out though nobody obeys it', async () => {
    const result = await prober(never).probe(spec('a'), signal);
    assert.match(result.ok ? '' : result.reason, /did not answer within 60ms/);
  });

  it('says when it was interrupted', async () => {
    const interruption = new AbortController();
    const result = prober(never, 10_000).probe(spec('a'), interruption.signal);
    interruption.abort();
    assert.deepEqual(await result, { ok: false, reason: 'the probe was interrupted' });
  });

  it('is not delayed by remotes that hang', async () => {
    const probing = prober((one) => (one.share.name === 'good' ? Promise.resolve() : never()), 60_000);
    const end = new AbortController();
    const hanging = Array.from({ length: 6 }, (_, index) => probing.probe(spec(`bad ${index}`), end.signal));
    const start = performance.now();
    assert.deepEqual(await probing.probe(spec('good'), signal), { ok: true });
    assert.ok(performance.now() - start < 20_000);
    end.abort();
    await Promise.all(hanging);
  });

  it('starts no more at once than there are places', async () => {
    let running = 0;
    let most = 0;
    const probing = prober(
      async () => {
        running += 1;
        most = Math.max(most, running);
        await new Promise((resolve) => setImmediate(resolve));
        running -= 1;
      },
      5_000,
      60_000,
    );
    await Promise.all(Array.from({ length: 8 }, (_, index) => probing.probe(spec(`share ${index}`), signal)));
    assert.equal(most, 2);
  });
});
