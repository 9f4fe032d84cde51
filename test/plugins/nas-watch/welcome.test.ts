import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { Health, LiveShare, Mount } from 'mountkeeper';
import { welcomeBack } from '../../../plugins/nas-watch/welcome.ts';
import { spec } from '../../core/fake-shares.ts';

function live(name: string, health: Health, connection = 'nas'): LiveShare {
  const own = spec(name);
  return { spec: { ...own, connection: { ...own.connection, name: connection } }, health, mount: health === 'healthy' ? ({} as Mount) : undefined, remoteAnswers: undefined };
}

describe('the welcome of a NAS', () => {
  it('probes what failed or hangs in its probe, reads the folders of what is mounted, and leaves the rest alone', async () => {
    const shares = [live('failed', 'failed'), live('stuck', 'probing'), live('rising', 'probing'), live('up', 'healthy'), live('other', 'failed', 'elsewhere')];
    const done: string[] = [];
    await welcomeBack('nas', {
      log: pino({ level: 'silent' }), shares: () => shares, isStuck: (name) => name === 'stuck',
      reconnect: async (name) => void done.push(`reconnect ${name}`),
      refresher: () => ({ refresh: async (name) => {
        done.push(`refresh ${name}`);
        return { ok: 1, failed: [] };
      } }),
    });
    assert.deepEqual(done, ['reconnect failed', 'reconnect stuck', 'refresh up']);
  });
});
