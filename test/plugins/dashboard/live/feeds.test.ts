import assert from 'node:assert/strict';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import pino from 'pino';
import type { Tab } from 'mountkeeper';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import type { ManualClock } from '../../../../core/testing/manual-clock.ts';
import { Feeds } from '../../../../plugins/dashboard/live/feeds.ts';
import type { PageRequest } from '../../../../plugins/dashboard/live/feeds.ts';
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
        who: 'user ada',
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

  it('are one for all readers of a role, but for what is another for each sign-in', async () => {
    const clock = createManualClock();
    const of = (isOfSignIn: boolean): Feeds => {
      const tab: Tab = { id: 't', title: 'T', isOfSignIn, render: ({ signIn = 'nobody' }) => signIn };
      const log = pino({ level: 'silent' });
      const sources = { clock, log, recent: { ageMs: 0 }, tab: () => ({ plugin: 'p', tab }), tabs: () => [] };
      return new Feeds(sources as unknown as Sources, () => 'build');
    };
    const shown = async (feeds: Feeds, signIn: string): Promise<string> => {
      const reader = { language: 'en', host: 'h', role: 'admin', signIn } as const;
      const feed = await feeds.open({ who: 'user ada', page: { kind: 'tab', name: 't' }, reader, query: {} });
      return /one|two|nobody/.exec(feed?.html() ?? '')?.[0] ?? '';
    };
    const [own, shared] = [of(true), of(false)];
    assert.deepEqual([await shown(own, 'one'), await shown(own, 'two')], ['one', 'two']);
    assert.deepEqual([await shown(shared, 'one'), await shown(shared, 'two')], ['nobody', 'nobody']);
    own.close();
    shared.close();
  });

  describe('in their number', () => {
    let clock: ManualClock;
    let feeds: Feeds;
    let ended: string[];
    beforeEach(() => {
      clock = createManualClock();
      ended = [];
      const sources = {
        clock,
        log: pino({ level: 'silent' }),
        recent: { ageMs: 0 },
        tab: () => ({ plugin: 'p', tab: { id: 't', title: 'T', render: () => 'drawn' } }),
      } as unknown as Sources;
      feeds = new Feeds(sources, () => 'build');
    });
    afterEach(() => feeds.close());
    const pageOf = (who: string, q: number): PageRequest => ({
      who,
      page: { kind: 'tab', name: 't' },
      reader: { language: 'en', host: 'h', role: 'admin' },
      query: { q: `${q}` },
    });
    const join = (who: string, q: number): (() => unknown) =>
      feeds.join(
        pageOf(who, q),
        { send: () => undefined, sendAll: () => undefined, end: () => void ended.push(`${who} ${q}`) },
        undefined,
      );

    it('are so many at the most, each with all its readers, however many ask by other words', async () => {
      const leave = Array.from({ length: 100 }, (_, q) => join('eve', q));
      assert.throws(() => join('eve', 100), /close some/);
      join('eve', 7);
      leave[3]?.();
      join('eve', 100);
      await clock.advance(100);
      assert.deepEqual(ended, []);
    });

    it('leave room for each: whoever reads most makes way, and is who is refused', () => {
      const leave = Array.from({ length: 100 }, (_, q) => join('eve', q));
      for (let q = 200; q < 250; q += 1) join('ada', q);
      assert.deepEqual(ended.length, 50);
      assert.deepEqual([ended[0], ended.at(-1)], ['eve 99', 'eve 50']);
      assert.throws(() => join('ada', 250), /close some/);
      assert.throws(() => join('eve', 99), /close some/);
      join('bob', 200);
      join('bob', 300);
      assert.equal(ended.length, 51);
      leave[99]?.();
      assert.throws(() => join('eve', 99), /close some/, 'a stream that ends later leaves nothing free');
    });

    it('are drawn without being kept up to date, where there is no room', async () => {
      for (let q = 0; q < 100; q += 1) join('eve', q);
      assert.match((await feeds.open(pageOf('ada', 100)))?.html() ?? '', /drawn/);
      assert.match((await feeds.open(pageOf('eve', 100)))?.html() ?? '', /drawn/);
      assert.deepEqual(ended, []);
    });
  });
});
