import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { Content, Snapshot, View } from 'mountkeeper';
import { History, HOUR_MS, STEP_MS } from './history.ts';
import speedChart from './index.ts';

test('the highest of a step counts, an hour is kept, and a gap is a gap', () => {
  const history = new History();
  const [at, gap] = [100 * STEP_MS, 10 * STEP_MS];
  history.add(at, 5);
  history.add(at + 1_000, 9);
  history.add(at + 2_000, 1);
  history.add(at + STEP_MS, 2);
  history.add(at + gap, 3);
  const speeds = (now: number): number[][] =>
    history.pieces(now).map((piece) => piece.map(({ speed }) => speed));
  assert.deepEqual(speeds(at + gap), [[9, 2], [3]]);
  assert.deepEqual(speeds(at + HOUR_MS + STEP_MS), [[3]]);
  assert.deepEqual(speeds(at + 2 * HOUR_MS), []);
});

/** Tags and attributes of what was drawn, as text. */
function drawn(content: Content): string {
  return JSON.stringify(content, (key, value: unknown) => (key.startsWith('__') ? undefined : value));
}

test('what the cycles say becomes a line', async (t) => {
  const host = await createTestHost({
    plugins: [speedChart],
    config: { plugins: { 'speed-chart': { enabled: true } } },
  });
  t.after(() => host.close());
  const cycle = (speed: number): Promise<void> =>
    host.hooks.observe('afterCycle', {
      version: 1,
      takenAt: 0,
      record: { shares: [{ speed }, { speed }] },
    } as unknown as Snapshot);
  const [ledger] = host.host.ledgers();
  const tab = ledger?.tabs[0];
  const view = {
    t: (key: string) => key,
    plain: (key: string, values = {}) => `${key} ${JSON.stringify(values)}`,
    rate: (value: number) => `${value} B/s`,
  } as unknown as View;
  assert.match(drawn(await tab?.render(view)), /none/);
  await cycle(100);
  await host.advance(STEP_MS);
  await cycle(50);
  const text = drawn(await tab?.render(view));
  assert.match(text, /"points":"358\.5,1\.0 360\.0,40\.0"/);
  assert.match(text, /100 B\/s.*200 B\/s/);
});
