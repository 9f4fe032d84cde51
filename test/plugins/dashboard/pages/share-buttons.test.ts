/** A share's buttons are drawn anew when there are other ones, and only then. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import { pino } from 'pino';
import type { Tab } from 'mountkeeper';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { shareButtons } from '../../../../plugins/dashboard/pages/share-buttons.ts';
import type { Sources } from '../../../../plugins/dashboard/pages/sources.ts';

describe('the buttons of a share', () => {
  before(() => loadLibraries());

  it('come as soon as a plugin has them, and stay as they are until it has others', async () => {
    const mounted = new Set<string>();
    const tab: Tab = {
      id: 'garden',
      title: 'Garden',
      render: () => null,
      buttons: ({ share = '' }) => (mounted.has(share) ? [{ action: 'water', label: 'Water' }] : []),
    };
    const circle: { action: string; label?: unknown } = { action: 'go' };
    circle.label = circle;
    // What plugins of strangers may give: none of it takes the others' buttons, or the page, along.
    const broken = [
      () => {
        throw new Error('no');
      },
      () => 'none',
      () => [undefined],
      () => [circle],
      () => [{ action: 'go', label: 1n }],
    ].map((buttons, at): Tab => ({ ...tab, id: `shed${at}`, buttons: buttons as never }));
    const owned = [...broken, tab].map((one) => ({ plugin: 'garden', tab: one }));
    const config = { shares: [{ name: 'a' }, { name: 'b' }] };
    const sources = { tabs: () => owned, log: pino({ level: 'silent' }), config } as unknown as Sources;
    const now = (share: string) => {
      const part = shareButtons(sources, { language: 'en', host: 'nas', role: 'admin' })(share);
      return { id: part.id, signature: part.signature?.(), draw: () => Promise.resolve(part.draw()) };
    };
    const former = now('a');
    assert.doesNotMatch(await former.draw(), /Water/);
    mounted.add('a');
    const next = now('a');
    assert.notEqual(next.signature, former.signature);
    assert.match(
      await next.draw(),
      /action="\/dashboard\/do\/garden\/water"[^]*name="share" value="a"[^]*Water/,
    );
    assert.equal(now('a').signature, next.signature);
    assert.notEqual(now('b').id, next.id);
    assert.doesNotMatch(await now('b').draw(), /Water/, 'of another share');
    config.shares.shift();
    assert.equal(await now('a').draw(), '', 'it is no longer configured, though still mounted');
  });
});
