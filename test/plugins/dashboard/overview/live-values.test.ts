/** A card whose new figures were put into its old markup reads as one that was drawn with them. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import fc from 'fast-check';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { Recent } from '../../../../plugins/dashboard/live/recent.ts';
import type { Values } from '../../../../plugins/dashboard/live/feed.ts';
import { KnownCards, liveValues, shapeOf } from '../../../../plugins/dashboard/overview/live-values.ts';
import { sentencePanel } from '../../../../plugins/dashboard/overview/panels.ts';
import { sentenceShape, sentenceValues } from '../../../../plugins/dashboard/overview/sentence-values.ts';
import type { Sentence } from '../../../../plugins/dashboard/overview/sentence.ts';
import { shareCard } from '../../../../plugins/dashboard/overview/share-card.ts';
import type { ShareData } from '../../../../plugins/dashboard/overview/share-data.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { emptyRecord, emptyShareStatus } from '../../../support/shares/status-records.ts';

const some = (most: number) => fc.nat({ max: most });
const sizes = fc.oneof(fc.constant(0), some(5_000_000_000));

const cards: fc.Arbitrary<ShareData> = fc
  .record({
    mounted: fc.boolean(),
    cacheBytes: sizes,
    dirtyCount: some(3),
    speed: sizes,
    transfers: some(2),
    warmupDone: some(3),
    warmupTotal: some(3),
    warmupState: fc.constantFrom('none', 'complete', 'caching', 'failed'),
    dirtyBytes: fc.option(sizes, { nil: undefined }),
    oldestDirtyAt: fc.option(some(2_000_000_000_000), { nil: undefined }),
    cacheLimit: fc.constantFrom(0, 1_000_000_000),
    speeds: fc.array(sizes, { maxLength: 4 }),
  })
  .map(({ dirtyBytes, oldestDirtyAt, cacheLimit, speeds, ...status }) => ({
    status: { ...emptyShareStatus('a <b>'), health: 'healthy', ...status },
    tone: 'good',
    isCutOff: false,
    hasUnreadFolders: false,
    since: undefined,
    pausedUntil: undefined,
    dirtyBytes,
    oldestDirtyAt,
    cacheLimit,
    speeds,
    addresses: [],
  }));

/** What the page's script does with values, on markup alone. */
function withValues(markup: string, values: Values): string {
  let result = markup;
  for (const [key, value] of Object.entries(values)) {
    const [name = '', attribute] = key.split('@');
    const element = new RegExp(`(<(?:\\w+))((?: [\\w-]+(?:="[^"]*")?)*? data-live="${name}"[^>]*>)([^<]*)`);
    result =
      attribute === 'data-at'
        ? result.replace(/(data-live="oldest"[^]*?data-at=")\d+/, (_, start: string) => start + value)
        : result.replace(element, (_, tag: string, rest: string, text: string) =>
            attribute === undefined
              ? `${tag}${rest}${value}`
              : `${tag}${withAttribute(rest, attribute, value)}${text}`,
          );
  }
  return result;
}

function withAttribute(rest: string, attribute: string, value: string): string {
  const without = rest.replace(new RegExp(` ${attribute}(?:="[^"]*")?(?=[ >/])`), '');
  return value === '' ? without : ` ${attribute}="${value}"${without}`;
}

/** Attributes in one order; the text of a time is the script's own, and where it is hidden it says nothing. */
function normal(markup: string): string {
  return markup
    .replaceAll(/<small(?=[^>]* hidden)[^]*?<\/small>/g, '')
    .replaceAll(/(<time)[^>]*(data-at="\d+")[^>]*>[^<]*/g, '$1 $2>')
    .replaceAll(/<\w+((?: [\w-]+(?:="[^"]*")?)+)/g, (tag, attributes: string) =>
      tag.replace(attributes, [...attributes.matchAll(/ [\w-]+(?:="[^"]*")?/g)].map(String).sort().join('')),
    );
}

describe("the figures of a share's card that are sent alone", () => {
  before(() => loadLibraries());
  const view = createView({ language: 'en', host: 'h' });
  const drawn = (data: ShareData): string => toHtml(shareCard(data, view));

  it('make of a former card of the same shape the one that would be drawn now', () => {
    let compared = 0;
    fc.assert(
      fc.property(cards, cards, (former, other) => {
        // Whatever is of the shape is as it was; the rest is the other one's.
        const { mounted, warmupState } = former.status;
        const now = {
          ...other,
          cacheLimit: former.cacheLimit,
          status: { ...other.status, mounted, warmupState },
        };
        if (shapeOf(former) !== shapeOf(now)) return;
        compared += 1;
        assert.equal(normal(withValues(drawn(former), liveValues(now, view))), normal(drawn(now)));
      }),
      { numRuns: 400 },
    );
    assert.ok(compared > 50, `${compared} compared`);
  });

  it('have a bar where the cache has a limit; without one a full bar would read as a full cache', () => {
    const [data] = fc.sample(cards, { numRuns: 1, seed: 1 }) as [ShareData];
    const card = (cacheLimit: number): string =>
      drawn({ ...data, cacheLimit, status: { ...data.status, cacheBytes: 500 } });
    assert.match(card(1_000), /<svg class="meter"/);
    assert.doesNotMatch(card(0), /meter/);
    assert.match(card(0), /cached at the last count/);
  });

  it('take their colour with them: what waits is marked', () => {
    const [data] = fc.sample(cards, { numRuns: 1, seed: 1 }) as [ShareData];
    const waiting = (dirtyCount: number): unknown =>
      liveValues({ ...data, status: { ...data.status, dirtyCount } }, view)['waits@data-tone'];
    assert.deepEqual([waiting(0), waiting(1)], ['', 'warn']);
  });

  it('are not those that people act on: these draw the card anew', () => {
    const data: ShareData = fc.sample(cards, { numRuns: 1, seed: 1 })[0] as ShareData;
    for (const other of [
      { ...data, tone: 'bad' as const },
      { ...data, pausedUntil: 5 },
      { ...data, status: { ...data.status, health: 'failed' as const } },
      { ...data, status: { ...data.status, healthMessage: 'no' } },
      { ...data, status: { ...data.status, erroredFiles: 1 } },
      { ...data, status: { ...data.status, mounted: !data.status.mounted } },
    ])
      assert.notEqual(shapeOf(other), shapeOf(data));
  });
});

describe('cards that are known', () => {
  before(() => loadLibraries());
  const view = createView({ language: 'en', host: 'h' });

  it('are made again where their data has changed, and drawn anew for what is no figure', () => {
    const cards = new KnownCards();
    const data = (traits: Partial<ShareData>, status: Partial<ShareData['status']> = {}): ShareData => ({
      status: { ...emptyShareStatus('a'), mounted: true, cacheBytes: 5, ...status },
      tone: 'good',
      isCutOff: false,
      hasUnreadFolders: false,
      since: undefined,
      pausedUntil: undefined,
      dirtyBytes: undefined,
      oldestDirtyAt: undefined,
      cacheLimit: 0,
      speeds: [1, 2],
      addresses: [],
      ...traits,
    });
    const first = cards.of(data({}), view);
    assert.equal(cards.of(data({}), view).values, first.values);
    const faster = cards.of(data({ speeds: [2, 3] }, { speed: 3 }), view);
    assert.deepEqual(faster.values, liveValues(data({ speeds: [2, 3] }, { speed: 3 }), view));
    assert.equal(faster.shape, first.shape);
    for (const other of [data({ tone: 'bad' }), data({}, { health: 'failed' }), data({ speeds: [] })])
      assert.notEqual(cards.of(other, view).shape, first.shape);
    assert.equal(cards.of(data({}), view).shape, first.shape);
  });

  it('have the shape of their data, whatever they were before', () => {
    const named = createView({ language: 'zh', host: 'h' });
    fc.assert(
      fc.property(cards, cards, (former, now) => {
        const known = new KnownCards();
        known.of(former, named);
        assert.equal(known.of(now, named).shape, shapeOf(now));
      }),
    );
  });

  it('see each sample: the list of speeds is another one', () => {
    const recent = new Recent(createManualClock());
    const sample = (speed: number): readonly number[] => {
      const shares = [{ ...emptyShareStatus('a'), speed }];
      recent.sample({ version: 1, takenAt: 0, record: { ...emptyRecord(0), shares } });
      return recent.speeds('a');
    };
    const [first, second] = [sample(1), sample(2)];
    assert.deepEqual([first, second], [[1], [1, 2]]);
  });
});

describe('the figures of the sentence that are sent alone', () => {
  before(() => loadLibraries());
  const view = createView({ language: 'zh', host: 'h' });
  const drawn = (sentence: Sentence): string => toHtml(sentencePanel(sentence, view));
  const unsaved: fc.Arbitrary<Sentence> = fc.record({
    tone: fc.constant('warn' as const),
    key: fc.constant('unsaved' as const),
    files: some(3).map((count) => count + 1),
    bytes: fc.option(sizes, { nil: undefined }),
    oldestAt: fc.option(some(2_000_000_000_000), { nil: undefined }),
    since: fc.constant(undefined),
    shares: fc.array(fc.constantFrom('a', 'files', '花园', 'team 3'), { minLength: 1, maxLength: 12 }),
  });

  it('make of a former sentence of the same shape the one that would be drawn now', () => {
    let compared = 0;
    fc.assert(
      fc.property(unsaved, unsaved, (former, now) => {
        if (sentenceShape(former) !== sentenceShape(now)) return;
        compared += 1;
        assert.equal(normal(withValues(drawn(former), sentenceValues(now, view))), normal(drawn(now)));
      }),
      { numRuns: 200 },
    );
    assert.ok(compared > 50, `${compared} compared`);
  });

  it('are never what it promises: any other sentence is drawn anew', () => {
    const [former] = fc.sample(unsaved, { numRuns: 1, seed: 1 }) as [Sentence];
    for (const key of ['saved', 'offline', 'refused', 'unreachable'] as const)
      assert.notEqual(sentenceShape({ ...former, key }), sentenceShape(former));
    const refused = { ...former, key: 'refused' as const };
    assert.notEqual(sentenceShape({ ...refused, files: 9 }), sentenceShape(refused));
  });
});
