import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ShortCommand, Snapshot } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { emptyRecord, emptyShareStatus } from '../../support/shares/status-records.ts';
import { SystemdNotifier } from '../../../core/platform/systemd-notifier.ts';
import { collectLog } from '../../support/platform/collected-log.ts';

const OK = { code: 0, signal: null, stdout: '', stderr: '' };

function start(env: Record<string, string> = { NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '30000000' }) {
  const clock = createManualClock();
  const said: string[] = [];
  const { log, entries } = collectLog();
  const looked = { atMs: clock.monotonic() };
  /** How the next messages end. */
  const endings: (() => Promise<typeof OK>)[] = [];
  const run = async (spec: ShortCommand) => {
    assert.deepEqual([spec.command, spec.env], ['systemd-notify', { NOTIFY_SOCKET: '/run/notify' }]);
    said.push(spec.args.join(' '));
    return endings.shift()?.() ?? OK;
  };
  const manager = new SystemdNotifier({ clock, log, processes: { run }, env, lookedAtMs: () => looked.atMs });
  /** What was said since it was last asked. */
  const news = async (): Promise<readonly string[]> => {
    await clock.advance(0);
    return said.splice(0);
  };
  return { clock, manager, news, entries, looked, endings };
}

function createDeferred() {
  let resolve = (): void => undefined;
  let reject: (error: Error) => void = () => undefined;
  const promise = new Promise<void>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  return { promise, resolve: () => resolve(), reject: (error: Error) => reject(error) };
}

function snapshot(dirty: number, { allSynced = dirty === 0, isDirtyCountUnknown = false } = {}): Snapshot {
  const shares = [
    { ...emptyShareStatus('a'), health: 'healthy' as const, dirtyCount: dirty, isDirtyCountUnknown },
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
    await clock.advance(4_000);
    assert.deepEqual(await news(), []);
    await clock.advance(1_000);
    assert.deepEqual(await news(), ['STATUS=1 of 2 shares healthy, 1 file waits'], 'nobody tells it anew');
    await clock.advance(5_000);
    manager.saw(snapshot(0));
    manager.saw(snapshot(0));
    assert.deepEqual(await news(), ['STATUS=1 of 2 shares healthy, everything is on the NAS']);
    await clock.advance(5_000);
    manager.saw(snapshot(0, { allSynced: false }));
    assert.deepEqual(await news(), ['STATUS=1 of 2 shares healthy, not known to be synced']);
    await manager.close();
  });

  it('is told once more where it was lost', async () => {
    const { clock, manager, news, endings } = start({ NOTIFY_SOCKET: '/run/notify' });
    manager.ready();
    await news();
    endings.push(async () => ({ ...OK, code: 1 }));
    endings.push(() => Promise.reject(new Error('no answer within 10000 ms')));
    manager.saw(snapshot(0));
    const text = 'STATUS=1 of 2 shares healthy, everything is on the NAS';
    for (const said of [[text], [text], [text], []]) {
      assert.deepEqual(await news(), said);
      await clock.advance(5_000);
    }
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

  it('is that a configuration is read, with a time after the signal, and when that has ended', async () => {
    const { manager, news } = start({ NOTIFY_SOCKET: '/run/notify' });
    const beginUsec = process.hrtime.bigint() / 1000n;
    const [first, second] = [createDeferred(), createDeferred()];
    const both = [manager.reloading(() => first.promise), manager.reloading(() => second.promise)];
    const said = await news();
    assert.deepEqual(
      said.map((one) => one.replace(/\d+$/, 'N')),
      Array(2).fill('RELOADING=1 MONOTONIC_USEC=N'),
    );
    const usec = BigInt(/\d+$/.exec(said[0] ?? '')?.[0] ?? 0);
    assert.ok(usec >= beginUsec && usec <= process.hrtime.bigint() / 1000n);
    first.resolve();
    await both[0];
    assert.deepEqual(await news(), [], 'another one is under way');
    second.reject(new Error('not valid'));
    await assert.rejects(both[1] ?? Promise.resolve(), /not valid/);
    assert.deepEqual(await news(), ['READY=1']);
    await manager.close();
  });

  it('is that it is up until a message with that has gone out', async () => {
    const { clock, manager, news, endings } = start({
      NOTIFY_SOCKET: '/run/notify',
    });
    endings.push(() => Promise.reject(new Error('no answer within 10000 ms')));
    endings.push(async () => ({ ...OK, code: 1 }));
    manager.ready();
    assert.deepEqual(await news(), ['READY=1 STATUS=up']);
    const text = 'STATUS=1 of 2 shares healthy, 2 files wait';
    const told: (readonly string[])[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      manager.saw(snapshot(2));
      told.push(await news());
      await clock.advance(5_000);
    }
    assert.deepEqual(told, [[`READY=1 ${text}`], [`READY=1 ${text}`], []]);
    endings.push(async () => OK);
    endings.push(() => Promise.reject(new Error('no answer within 10000 ms')));
    await manager.reloading(() => Promise.resolve());
    await news();
    manager.saw(snapshot(2));
    assert.deepEqual(await news(), [`READY=1 ${text}`], 'a reload that has ended');
    await manager.close();
  });

  it('is not that it is up when the message with that was lost and it stops, or reads a configuration', async () => {
    const { manager, news, endings } = start({ NOTIFY_SOCKET: '/run/notify' });
    endings.push(() => Promise.reject(new Error('no answer within 10000 ms')));
    manager.ready();
    await news();
    const { promise, resolve } = createDeferred();
    const reading = manager.reloading(() => promise);
    manager.saw(snapshot(1));
    assert.ok((await news()).every((one) => !one.includes('READY=1 ')));
    endings.push(() => Promise.reject(new Error('no answer within 10000 ms')));
    resolve();
    await reading;
    assert.deepEqual(await news(), ['READY=1']);
    manager.stopping(1_000);
    assert.deepEqual(await news(), ['STOPPING=1 STATUS=draining', 'EXTEND_TIMEOUT_USEC=90000000']);
    await manager.close();
  });

  it('is not that it is up, once it stops', async () => {
    const { manager, news } = start({ NOTIFY_SOCKET: '/run/notify' });
    await manager.reloading(async () => manager.stopping(1_000));
    assert.ok(!(await news()).includes('READY=1'));
    await manager.close();
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
    await clock.advance(5_000);
    manager.saw(snapshot(0));
    assert.deepEqual(await news(), ['STATUS=all files are up, taking the shares down']);
    await clock.advance(5_000);
    manager.saw(snapshot(0, { isDirtyCountUnknown: true }));
    assert.deepEqual(await news(), [
      'EXTEND_TIMEOUT_USEC=90000000',
      'STATUS=draining: nobody knows yet how many files wait, 580 s left',
    ]);
    await manager.close();
    await clock.advance(60_000);
    assert.deepEqual(await news(), []);
  });
});
