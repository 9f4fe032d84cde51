import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Content, Snapshot } from 'mountkeeper';
import { collectLog } from '../../../support/platform/collected-log.ts';
import { emptyRecord, emptyShareStatus } from '../../../support/shares/status-records.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { Recent } from '../../../../plugins/dashboard/live/recent.ts';
import { NotDrawn } from '../../../../plugins/dashboard/pages/not-drawn.ts';
import { PluginPart } from '../../../../plugins/dashboard/pages/plugin-part.ts';
import { isAbout, levelOf, matches } from '../../../../plugins/logs/tab.ts';

describe('what a plugin shows', () => {
  function part(render: () => Content | Promise<Content>) {
    const clock = createManualClock();
    const late: string[] = [];
    const made = new PluginPart({
      clock,
      notDrawn: { tell: () => undefined, forget: () => undefined },
      render,
      toHtml: String,
      failed: () => 'failed',
      onLate: () => late.push('late'),
    });
    return { clock, late, made };
  }

  it('is there at once, or replaced by a sentence when it throws', async () => {
    assert.equal(await part(() => 'text').made.draw(), 'text');
    assert.equal(
      await part(() => {
        throw new Error('no');
      }).made.draw(),
      'failed',
    );
  });

  it('does not hold up the page: it comes when it is through', async () => {
    let finish: (text: string) => void = () => undefined;
    const { clock, late, made } = part(
      () =>
        new Promise((resolve) => {
          finish = resolve;
        }),
    );
    const drawing = made.draw();
    await clock.advance(300);
    assert.deepEqual([await drawing, late], ['', []]);
    finish('done');
    await clock.advance(1);
    assert.deepEqual(late, ['late']);
  });

  it('is rendered once each time, however slow it always is', async () => {
    let renderings = 0;
    const { clock, late, made } = part(async () => {
      renderings += 1;
      const mine = renderings;
      await new Promise<void>((resolve) => void clock.after(400, resolve));
      return `rendering ${mine}`;
    });
    const drawn = async (): Promise<string> => {
      const drawing = made.draw();
      await clock.advance(300);
      return drawing;
    };
    // Two pages ask while it is under way.
    assert.deepEqual(await Promise.all([drawn(), made.draw()]), ['', '']);
    await clock.advance(200);
    assert.deepEqual(late, ['late']);
    assert.equal(await made.draw(), 'rendering 1');
    await clock.advance(1_000);
    assert.deepEqual([renderings, late], [1, ['late']]);
    // Later something has changed.
    assert.equal(await drawn(), 'rendering 1');
    await clock.advance(200);
    assert.deepEqual([await made.draw(), renderings, late], ['rendering 2', 2, ['late', 'late']]);
  });

  it('is given up after ten seconds', async () => {
    const { clock, late, made } = part(() => new Promise(() => undefined));
    const drawing = made.draw();
    await clock.advance(300);
    await drawing;
    await clock.advance(10_000);
    assert.deepEqual(late, ['late']);
    const again = made.draw();
    await clock.advance(300);
    assert.equal(await again, 'failed');
  });
});

describe('what a plugin does not draw', () => {
  it('is logged once for each reason, until it is drawn again, by whom and for whomever', async () => {
    const { log, entries } = collectLog();
    const clock = createManualClock();
    let fault: unknown = new Error('no bed');
    const tab = { id: 'garden', title: 'Garden', render: () => '' };
    const partOf = (what: string, of = tab): PluginPart =>
      new PluginPart({
        clock,
        notDrawn: new NotDrawn({ plugin: 'garden', tab: of }, log, what),
        render: () => {
          if (fault !== null) throw fault;
          return 'text';
        },
        toHtml: String,
        failed: () => 'failed',
        onLate: () => undefined,
      });
    const parts = [partOf('en'), partOf('en')];
    const drawAll = async (): Promise<void> => {
      for (let cycle = 0; cycle < 5; cycle += 1) for (const part of parts) await part.draw();
    };
    await drawAll();
    fault = undefined;
    await drawAll();
    fault = new Error('no water');
    await drawAll();
    fault = null;
    await drawAll();
    fault = new Error('no water');
    await drawAll();
    await partOf('en', { ...tab }).draw();
    assert.deepEqual(
      entries.map(({ shownBy, err }) => [shownBy, (err as { message?: string }).message ?? err]),
      ['no bed', 'it threw undefined, which is no error', 'no water', 'no water', 'no water'].map((said) => [
        'garden',
        said,
      ]),
    );
  });
});

describe('what the status does not keep', () => {
  const snapshot = (traits: object): Snapshot => ({
    version: 1,
    takenAt: 0,
    record: { ...emptyRecord(0), shares: [{ ...emptyShareStatus('files'), ...traits }] },
  });

  it('knows since when a share is as it is, once it has seen it change', async () => {
    const clock = createManualClock();
    const recent = new Recent(clock);
    recent.heard(snapshot({ health: 'healthy' }));
    assert.equal(recent.since('files'), undefined);
    await clock.advance(5_000);
    recent.heard(snapshot({ health: 'failed' }));
    const at = recent.since('files');
    assert.equal(at, clock.now());
    await clock.advance(5_000);
    recent.heard(snapshot({ health: 'failed' }));
    assert.equal(recent.since('files'), at);
    assert.equal(recent.ageMs, 0);
    await clock.advance(12_000);
    assert.equal(recent.ageMs, 12_000);
  });

  it('knows since when uploads fail, not since when the share has been up', async () => {
    const clock = createManualClock();
    const recent = new Recent(clock);
    recent.heard(snapshot({ health: 'probing' }));
    await clock.advance(5_000);
    recent.heard(snapshot({ health: 'healthy' }));
    await clock.advance(600_000);
    recent.heard(snapshot({ health: 'healthy', erroredFiles: 1, healthMessage: 'one is refused' }));
    assert.equal(recent.since('files'), clock.now());
    await clock.advance(5_000);
    recent.heard(snapshot({ health: 'healthy', erroredFiles: 2, healthMessage: 'two are refused' }));
    assert.equal(recent.since('files'), clock.now() - 5_000);
  });

  it('keeps the last speeds of the shares that are there', () => {
    const recent = new Recent(createManualClock());
    for (let index = 0; index < 100; index += 1) recent.sample(snapshot({ speed: index }));
    assert.deepEqual([recent.speeds('files').length, recent.speeds('files').at(-1)], [60, 99]);
    recent.sample({ ...snapshot({}), record: emptyRecord(0) });
    assert.deepEqual(recent.speeds('files'), []);
  });
});

describe('lines of the log', () => {
  const line =
    '2026-11-22T07:25:38.470Z WARN  supervisor: share failed share=archive reason="the remote refuses"';

  it('have a level, and may be about a share', () => {
    assert.equal(levelOf(line), 'warn');
    assert.equal(levelOf('    at something (a stack)'), 'info');
    assert.ok(isAbout(line, 'archive'));
    assert.ok(!isAbout(line, 'arch') && !isAbout(line, 'a.chive'));
    assert.ok(isAbout('x INFO y share="照片 a" z', '照片 a'));
  });

  it('match by level, share and words alike', () => {
    const all = { level: 'info', share: '', search: '' };
    assert.ok(
      matches(line, all) && matches(line, { ...all, level: 'warn', share: 'archive', search: 'REFUSES' }),
    );
    assert.ok(
      !matches(line, { ...all, level: 'error' }) &&
        !matches(line, { ...all, share: 'files' }) &&
        !matches(line, { ...all, search: 'nothing' }),
    );
  });
});
