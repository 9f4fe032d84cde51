import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { createScope } from '../../../../core/plugins/instance/scope.js';
import { collectLog } from '../../../support/platform/collected-log.ts';

function bench() {
  const clock = createManualClock();
  const { log, entries } = collectLog();
  const diary: string[] = [];
  const scope = createScope({ clock, log, acquireMs: 1_000, releaseMs: 1_000 });
  const hold = (label: string) =>
    scope.acquire(label, () => {
      diary.push(`+${label}`);
      return () => {
        diary.push(`-${label}`);
      };
    });
  return { clock, entries, diary, scope, hold };
}

describe('scope', () => {
  it('releases last in first out, one after the other', async () => {
    const { scope, diary, clock } = bench();
    await scope.acquire('slow', () => async () => {
      await clock.sleep(100);
      diary.push('-slow');
    });
    await scope.acquire('quick', () => async () => {
      await clock.sleep(50);
      diary.push('-quick');
    });
    assert.deepEqual(scope.labels, ['slow', 'quick']);
    const disposed = scope.dispose('reload');
    await clock.advance(50);
    assert.deepEqual(diary, ['-quick']);
    await clock.advance(100);
    await disposed;
    assert.deepEqual(diary, ['-quick', '-slow']);
    assert.deepEqual(scope.labels, []);
  });

  it('aborts its signal with the reason before anything is released', async () => {
    const { scope } = bench();
    let reason: unknown;
    await scope.acquire('a', (signal) => () => {
      reason = signal.reason;
    });
    await scope.dispose('disable');
    assert.equal(reason, 'disable');
  });

  it('names the effect that did not come up and keeps what came up before', async () => {
    const { scope, hold } = bench();
    await hold('first');
    await assert.rejects(
      scope.acquire('port', () => {
        throw new Error('port 445 is taken');
      }),
      (error: Error) => {
        assert.equal(error.message, 'effect "port"');
        assert.equal((error.cause as Error).message, 'port 445 is taken');
        return true;
      },
    );
    assert.deepEqual(scope.labels, ['first']);
  });

  it('refuses an effect that returns no release', async () => {
    const { scope } = bench();
    await assert.rejects(
      scope.acquire('leaky', () => undefined as never),
      (error: Error) => /did not return its release/.test((error.cause as Error).message),
    );
  });

  it('releases everything though releases fail or hang, and tells which ones', async () => {
    const { scope, hold, diary, clock } = bench();
    await hold('first');
    await scope.acquire('throws', () => () => {
      throw new Error('busy');
    });
    await scope.acquire('hangs', () => () => new Promise<void>(() => undefined));
    await hold('last');
    const disposed = assert.rejects(scope.dispose('shutdown'), (error: AggregateError) => {
      assert.equal(
        error.message,
        '2 effects were not released: release "hangs": did not finish within 1 s; release "throws": busy',
      );
      assert.deepEqual(
        error.errors.map((one: Error) => one.message),
        ['release "hangs"', 'release "throws"'],
      );
      return true;
    });
    await clock.advance(1_000);
    await disposed;
    assert.deepEqual(diary, ['+first', '+last', '-last', '-first']);
    assert.equal(clock.pending, 0);
  });

  it('releases an effect that comes up after its deadline', async () => {
    const { scope, diary, clock, entries } = bench();
    const acquired = assert.rejects(
      scope.acquire('late', async () => {
        await clock.sleep(5_000);
        return () => {
          diary.push('-late');
        };
      }),
      (error: Error) => /did not finish within 1 s/.test((error.cause as Error).message),
    );
    await clock.advance(1_000);
    await acquired;
    assert.deepEqual(scope.labels, []);
    await clock.advance(4_000);
    assert.deepEqual(diary, ['-late']);
    assert.equal(entries[0]?.['effect'], 'late');
  });

  it('is disposed once only', async () => {
    const { scope, hold, diary } = bench();
    await hold('a');
    await Promise.all([scope.dispose('reload'), scope.dispose('shutdown')]);
    assert.deepEqual(diary, ['+a', '-a']);
    assert.equal(scope.signal.reason, 'reload');
  });
});
