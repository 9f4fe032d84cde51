import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ShortCommand, Snapshot } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { emptyRecord, emptyShareStatus } from '../../../core/status.ts';
import { SystemdNotifier } from '../../../core/platform/systemd-notifier.ts';
import { listeningLog } from '../plugins/fixtures.ts';

const OK = { code: 0, signal: null, stdout: '', stderr: '' };

function start(env: Record<string, string> = { NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '30000000' }) {
  const clock = createManualClock();
  const said: string[] = [];
  const { log, lines } = listeningLog();
  const looked = { atMs: clock.monotonic() };
  const run = async (spec: ShortCommand) => {
    assert.deepEqual([spec.command, spec.env], ['systemd-notify', { NOTIFY_SOCKET: '/run/notify' }]);
    said.push(spec.args.join(' '));
    return OK;
  };
  const manager = new SystemdNotifier({ clock, log, processes: { run }, env, lookedAtMs: () => looked.atMs });
  /** What was said since it was last asked. */
  const news = async (): Promise<readonly string[]> => {
    await clock.advance(0);
    return said.splice(0);
  };
  return { clock, manager, news, lines, looked };
}

function snapshot(dirty: number, allSynced = dirty === 0): Snapshot {
  const shares = [
    { ...emptyShareStatus('a'), health: 'healthy' as const, dirtyCount: dirty },
    emptyShareStatus('b'),
  ];
  return { version: 1, takenAt: 0, record: { ...emptyRecord(0), shares, allSynced } };
}

describe('what the service manager is told', () => {
  it('is nothing where there is none', async () => {
    const { manager, news } = start({});
    manager.ready();
    manager.saw(snapshot(1));
    manager.stopping(1_000);
    assert.deepEqual(await news(), []);
    await manager.close();
  });

  it('is that the daemon is up, and in words how it is, not more often than every 5 s', async () => {
    const { clock, manager, news } = start({ NOTIFY_SOCKET: '/run/notify' });
    manager.ready();
    assert.deepEqual(await news(), ['READY=1 STATUS=up']);
    manager.saw(snapshot(2));
    manager.saw(snapshot(1));
    assert.deepEqual(await news(), ['STATUS=1 of 2 shares healthy, 2 files wait']);
    await clock.advance(5_000);
    manager.saw(snapshot(0));
    manager.saw(snapshot(0));
    assert.deepEqual(await news(), ['STATUS=1 of 2 shares healthy, everything is on the NAS']);
    await clock.advance(5_000);
    manager.saw(snapshot(0, false));
    assert.deepEqual(await news(), ['STATUS=1 of 2 shares healthy, not known to be synced']);
    await manager.close();
  });

  it('is that it moves, for as long as the supervisor looks at its shares', async () => {
    const { clock, manager, news, looked } = start();
    manager.ready();
    await news();
    looked.atMs = clock.monotonic();
    await clock.advance(10_000);
    assert.deepEqual(await news(), ['WATCHDOG=1']);
    await clock.advance(30_000);
    await news();
    await clock.advance(60_000);
    assert.deepEqual(await news(), [], 'the supervisor stands still');
    looked.atMs = clock.monotonic();
    await clock.advance(10_000);
    assert.deepEqual(await news(), ['WATCHDOG=1']);
    await manager.close();
    await clock.advance(60_000);
    assert.deepEqual(await news(), []);
  });

  it('is how far a drain is, and that it needs more time', async () => {
    const { clock, manager, news } = start({ NOTIFY_SOCKET: '/run/notify' });
    manager.ready();
    await news();
    manager.stopping(600_000);
    assert.deepEqual(await news(), ['STOPPING=1 STATUS=draining', 'EXTEND_TIMEOUT_USEC=90000000']);
    manager.saw(snapshot(12));
    assert.deepEqual(await news(), ['STATUS=draining: 12 of 12 files wait, 600 s left']);
    await clock.advance(10_000);
    manager.saw(snapshot(3));
    assert.deepEqual(await news(), [
      'EXTEND_TIMEOUT_USEC=90000000',
      'STATUS=draining: 3 of 12 files wait, 590 s left',
    ]);
    await manager.close();
    await clock.advance(60_000);
    assert.deepEqual(await news(), []);
  });
});
