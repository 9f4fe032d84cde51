import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import pino from 'pino';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { Feeds } from '../../../../plugins/dashboard/live/feeds.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import type { Sources } from '../../../../plugins/dashboard/pages/sources.ts';

describe('the pages that are open', () => {
  before(() => loadLibraries());

  it('are drawn at a beat only where nothing else had them drawn since the last one', async () => {
    const clock = createManualClock();
    let drawings = 0;
    const tab = { id: 't', title: 'T', render: () => `drawn ${(drawings += 1)}` };
    const sources = {
      clock,
      log: pino({ level: 'silent' }),
      recent: { ageMs: 0 },
      tab: () => ({ plugin: 'p', tab }),
    } as unknown as Sources;
    const feeds = new Feeds(sources, () => 'build');
    const heard: string[] = [];
    const leave = feeds.join(
      {
        page: { kind: 'tab', name: 't' },
        reader: { language: 'en', host: 'h', role: 'admin' },
        query: {},
      },
      {
        send: ({ event }) => void heard.push(event),
        sendAll: (events) => void heard.push(...events.map(({ event }) => event)),
        end: () => undefined,
      },
      undefined,
    );
    const drawnBy = async (act: () => void): Promise<number> => {
      const former = drawings;
      act();
      await clock.advance(1_000);
      return drawings - former;
    };
    await clock.advance(1_000);
    assert.equal(drawings, 1);
    assert.equal(await drawnBy(() => feeds.changed()), 1);
    assert.equal(await drawnBy(() => feeds.beat()), 0);
    assert.equal(await drawnBy(() => feeds.beat()), 1);
    assert.equal(await drawnBy(() => feeds.beat()), 1);
    assert.equal(heard.filter((event) => event === 'beat').length, 4);
    await leave();
    feeds.close();
  });

  it('are so many at the most, each with all its readers, however many ask by other words', async () => {
    const clock = createManualClock();
    const sources = {
      clock,
      log: pino({ level: 'silent' }),
      recent: { ageMs: 0 },
      tab: () => ({ plugin: 'p', tab: { id: 't', title: 'T', render: () => 'drawn' } }),
    } as unknown as Sources;
    const feeds = new Feeds(sources, () => 'build');
    const join = (q: number): (() => unknown) =>
      feeds.join(
        {
          page: { kind: 'tab', name: 't' },
          reader: { language: 'en', host: 'h', role: 'admin' },
          query: { q: `${q}` },
        },
        { send: () => undefined, sendAll: () => undefined, end: () => undefined },
        undefined,
      );
    const leave = Array.from({ length: 100 }, (_, q) => join(q));
    assert.throws(() => join(100), /close some/);
    join(7);
    leave[3]?.();
    join(100);
    await clock.advance(100);
    feeds.close();
  });
});
