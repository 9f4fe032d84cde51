import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import { createManualClock } from 'mountkeeper/testing';
import type { Health, LiveShare, Mount } from 'mountkeeper';
import { NasWatcher } from '../../../plugins/nas-watch/watcher.ts';
import { onReturn } from '../../../plugins/nas-watch/on-return.ts';
import { spec } from '../../support/shares/fake-shares.ts';

function live(name: string, health: Health, connection = 'nas'): LiveShare {
  const own = spec(name);
  return {
    spec: { ...own, connection: { ...own.connection, name: connection } },
    health,
    mount: health === 'healthy' ? ({} as Mount) : undefined,
    remoteAnswers: health === 'healthy' ? true : undefined,
  };
}

describe('the welcome of a NAS', () => {
  it('probes failed shares, reads the folders of mounted ones, and leaves the rest alone', async () => {
    const shares = [
      live('failed', 'failed'),
      live('stuck', 'probing'),
      live('rising', 'probing'),
      live('up', 'healthy'),
      live('other', 'failed', 'elsewhere'),
    ];
    const done: string[] = [];
    await onReturn('nas', {
      clock: createManualClock(),
      signal: new AbortController().signal,
      log: pino({ level: 'silent' }),
      shares: () => shares,
      isStuck: (name) => name === 'stuck',
      reconnect: async (name) => void done.push(`reconnect ${name}`),
      refresher: () => ({
        refresh: async (name) => {
          done.push(`refresh ${name}`);
          return { ok: 1, failed: [] };
        },
      }),
    });
    assert.deepEqual(done, ['reconnect failed', 'reconnect stuck', 'refresh up']);
  });

  it('knows which probe has hung since before its return', async () => {
    const clock = createManualClock();
    const watcher = new NasWatcher(
      {
        clock,
        log: pino({ level: 'silent' }),
        signal: new AbortController().signal,
        shares: () => [],
        status: () => undefined,
        prober: () => undefined,
        dial: async () => undefined,
        offlineMinutes: () => 0,
        notify: async () => undefined,
        onBack: () => undefined,
        onOpen: () => undefined,
        onChange: () => undefined,
        save: () => undefined,
      },
      {},
    );
    watcher.healthChanged({ share: 'a', from: 'failed', to: 'probing', reason: null });
    assert.equal(watcher.isStuck('a'), false);
    await clock.advance(3_000);
    assert.deepEqual([watcher.isStuck('a'), watcher.isStuck('b')], [true, false]);
    watcher.healthChanged({ share: 'a', from: 'probing', to: 'healthy', reason: null });
    assert.equal(watcher.isStuck('a'), false);
  });
});
