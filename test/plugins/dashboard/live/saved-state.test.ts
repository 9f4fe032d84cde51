import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import pino from 'pino';
import type { ShareStatus, StatusRecord } from 'mountkeeper';
import { emptyRecord, emptyShareStatus } from '../../../support/shares/status-records.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { eventsFrom, ShareEvents } from '../../../../plugins/dashboard/live/events.ts';
import { Memory } from '../../../../plugins/dashboard/live/saved-state.ts';
import { Series, seriesFrom, SPANS } from '../../../../plugins/dashboard/live/series.ts';

const log = pino({ level: 'silent' });

function record(share: Partial<ShareStatus>, traits: Partial<StatusRecord> = {}): StatusRecord {
  return {
    ...emptyRecord(0),
    shares: [{ ...emptyShareStatus('files'), mounted: true, health: 'healthy', ...share }],
    ...traits,
  };
}

describe('the history of a share', () => {
  function opened(former?: unknown) {
    const clock = createManualClock();
    let changes = 0;
    const events = new ShareEvents(clock, eventsFrom(former), () => {
      changes += 1;
    });
    return { clock, events, changes: () => changes, kinds: () => events.of('files').map(({ kind }) => kind) };
  }

  it('has what happened, newest first, and nothing that was so from the beginning', () => {
    const { events, kinds } = opened();
    events.heard(record({ dirtyCount: 2 }), () => true);
    assert.deepEqual(kinds(), []);
    events.heard(record({ dirtyCount: 0 }), () => true);
    events.heard(record({ dirtyCount: 3 }), () => true);
    events.heard(record({ dirtyCount: 3, erroredFiles: 1 }), () => true);
    assert.deepEqual(kinds(), ['refused', 'waiting', 'saved']);
  });

  it('tells that what reads from the NAS was replaced below a share that stayed up, and remembers it', () => {
    const { events } = opened();
    events.rcloneReplaced({ share: 'files', reason: 'it was killed' });
    const { kinds } = opened(JSON.parse(JSON.stringify(events.all())));
    assert.deepEqual(kinds(), ['replaced']);
    assert.equal(events.of('files')[0]?.reason, 'it was killed');
  });

  it('does not say that nothing waits of a share that is down', () => {
    const { events, kinds } = opened();
    events.heard(record({ dirtyCount: 2 }), () => true);
    events.heard(record({ dirtyCount: 0, mounted: false }), () => undefined);
    assert.deepEqual(kinds(), []);
  });

  it("tells of an outage of the share's own NAS alone, once", () => {
    const { events, kinds } = opened();
    events.heard(record({}), () => true);
    events.heard(record({}, { nasOffline: true }), () => true);
    assert.deepEqual(kinds(), [], 'it was another one');
    events.heard(record({}), () => false);
    assert.deepEqual(kinds(), [], 'one look is no outage');
    events.heard(record({}, { nasOffline: true }), () => false);
    events.heard(record({}, { nasOffline: true }), () => undefined);
    events.heard(record({}), () => true);
    assert.deepEqual(kinds(), ['online', 'offline']);
  });

  it('counts a share that is tried again and again as failed once, and is bounded', () => {
    const { events, kinds } = opened();
    for (let tries = 0; tries < 5; tries += 1)
      events.healthChanged({ share: 'files', to: 'failed', reason: 'refused' });
    assert.deepEqual(kinds(), ['failed']);
    for (let times = 0; times < 300; times += 1)
      events.healthChanged({ share: 'files', to: 'healthy', reason: null });
    assert.equal(kinds().length, 100);
    for (let share = 0; share < 500; share += 1)
      events.healthChanged({ share: `s${share}`, to: 'healthy', reason: null });
    assert.equal(Object.keys(events.all()).length, 300);
  });

  it('has what was discarded, with the place where it is kept, also after a restart', () => {
    const { events } = opened();
    const told = { severity: 'warning', message: '', key: '' } as const;
    const data = { share: 'files', path: 'a/b.mov', bytes: 3, kept_at: '/kept/b.mov' };
    events.told({ ...told, type: 'file.discarded', data });
    events.told({ ...told, type: 'nas.offline', data });
    const [only, ...more] = events.of('files');
    assert.deepEqual([only?.kind, more], ['discarded', []]);
    assert.match(only?.reason ?? '', /^a\/b\.mov: .* at \/kept\/b\.mov$/);
    assert.deepEqual(opened(events.all()).events.of('files'), [only]);
  });

  it('comes back out of its file, and takes nothing that is none', () => {
    const good = { at: 5, kind: 'failed', reason: 'x' };
    assert.deepEqual(
      [
        ...eventsFrom({
          files: [good, { at: 'x', kind: 'failed' }, { at: 1, kind: 'evil' }, null],
          team: 'nothing',
        }),
      ],
      [
        ['files', [good]],
        ['team', []],
      ],
    );
    assert.equal(eventsFrom('nonsense').size, 0);
  });
});

describe('figures over time', () => {
  it('keep the most of each step, and a fixed number of steps', async () => {
    const clock = createManualClock();
    const series = new Series(clock, seriesFrom(undefined));
    series.sample(record({ speed: 5, dirtyCount: 1 }));
    series.sample(record({ speed: 3, cacheBytes: 9 }));
    assert.deepEqual(
      series.of('files', 'hour').map(([, ...figures]) => figures),
      [[5, 9, 1]],
    );
    for (let steps = 0; steps < SPANS.hour.points + 50; steps += 1) {
      await clock.advance(SPANS.hour.stepMs);
      series.sample(record({ speed: steps }));
    }
    assert.equal(series.of('files', 'hour').length, SPANS.hour.points);
    assert.ok(series.of('files', 'week').length < 5);
    const [first, second] = series.of('files', 'hour');
    assert.equal((second?.[0] ?? 0) - (first?.[0] ?? 0), SPANS.hour.stepMs / 1_000);
    series.sample(record({ mounted: false, speed: 99_999 }));
    assert.notEqual(series.of('files', 'hour').at(-1)?.[1], 99_999, 'a share that is down has no figures');
    assert.deepEqual(
      seriesFrom(JSON.parse(JSON.stringify(series.all()))).get('files')?.hour,
      series.of('files', 'hour'),
    );
    assert.deepEqual(seriesFrom({ files: { hour: [[1, 2, 3, 4], [1, 2], 'x'] } }).get('files'), {
      hour: [[1, 2, 3, 4]],
      day: [],
      week: [],
    });
  });
});

describe('figures over time, after the clock was set back', () => {
  it('lose what lies ahead, and nothing else', () => {
    let now = 1_700_000_000_000;
    const series = new Series({ ...createManualClock(), now: () => now }, seriesFrom(undefined));
    const times = (): readonly number[] => series.of('files', 'hour').map(([at]) => at);
    for (let steps = 0; steps < 10; steps += 1, now += SPANS.hour.stepMs)
      series.sample(record({ speed: steps }));
    const before = times();
    now -= 4 * SPANS.hour.stepMs;
    series.sample(record({ speed: 99 }));
    assert.deepEqual(times(), before.slice(0, 7));
    assert.deepEqual(
      series.of('files', 'hour').map(([, speed]) => speed),
      [0, 1, 2, 3, 4, 5, 99],
    );
  });
});

describe('the memory', () => {
  let folder: string;
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'mk-memory-'));
  });
  after(() => rm(folder, { recursive: true, force: true }));

  it('is written some seconds after a change and at the end, and read again', async () => {
    const clock = createManualClock();
    let content = { a: 1 };
    const memory = new Memory({ clock, log, stateDir: folder, name: 'x.json', content: () => content });
    assert.equal(await Memory.read(folder, 'x.json'), undefined);
    memory.changed();
    content = { a: 2 };
    await memory.close();
    assert.deepEqual(await Memory.read(folder, 'x.json'), { a: 2 });
    const later = new Memory({ clock, log, stateDir: folder, name: 'x.json', content: () => ({ a: 3 }) });
    later.changed();
    later.changed();
    await clock.advance(6_000);
    await later.close();
    assert.equal(await readFile(join(folder, 'dashboard/x.json'), 'utf8'), '{"a":3}');
    await writeFile(join(folder, 'dashboard/x.json'), '{"a":');
    assert.equal(await Memory.read(folder, 'x.json'), undefined);
  });
});
