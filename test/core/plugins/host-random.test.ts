import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createTestHost } from 'mountkeeper/testing';
import type { AnyPlugin, TestHost } from 'mountkeeper/testing';
import { small } from '../../support/plugins/small-plugins.ts';
import type { Diary } from '../../support/plugins/small-plugins.ts';

/** What one plugin is like in one plugin set. */
interface Shape {
  readonly name: string;
  readonly version: number;
  readonly requires: 'lamp' | 'socket' | null;
  readonly provides: 'lamp' | 'socket' | null;
  readonly route: number | null;
  readonly fails: boolean;
  readonly enabled: boolean;
}

const service = fc.constantFrom('lamp', 'socket', null) as fc.Arbitrary<Shape['requires']>;
const shape = fc.record<Shape>({
  name: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  version: fc.integer({ min: 1, max: 2 }),
  requires: service,
  provides: service,
  route: fc.constantFrom(1, 2, null, null),
  fails: fc.constantFrom(true, false, false, false),
  enabled: fc.constantFrom(true, true, true, false),
});
/** Sets out of one pool, so that most plugins stay what they are from one set to the next. */
const steps = fc.array(shape, { minLength: 5, maxLength: 8 }).chain((pool) =>
  fc.array(
    fc
      .subarray(pool, { minLength: 2 })
      .map((set) => [...new Map(set.map((each) => [each.name, each])).values()]),
    { minLength: 2, maxLength: 7 },
  ),
);

/** Services as their users hold them, by user. */
type Held = Map<string, unknown>;

function build(one: Shape, diary: Diary, held: Held): AnyPlugin {
  return small(one.name, diary, {
    version: `${String(one.version)}.0.0`,
    ...(one.requires && { requires: [one.requires] }),
    declare: (ctx) => {
      if (one.provides) ctx.provide(one.provides, () => ({ color: one.name, volts: 1 }));
      if (one.route) ctx.route({ method: 'GET', path: `/${String(one.route)}`, handler: () => one.name });
      ctx.tap('collectNotices', () => [{ level: 'info', message: one.name }]);
      ctx.effect('use', () => {
        if (one.requires) held.set(one.name, ctx.use(one.requires));
        return () => {
          held.delete(one.name);
        };
      });
      if (one.fails)
        ctx.effect('fail', () => {
          throw new Error('as told');
        });
    },
  });
}

function balance(diary: Diary): readonly string[] {
  const up = new Set<string>();
  for (const line of diary) {
    const name = line.slice(1);
    assert.equal(up.has(name), line.startsWith('-'), `${line} in ${diary.join(' ')}`);
    if (line.startsWith('+')) up.add(name);
    else up.delete(name);
  }
  return [...up].sort((x, y) => x.localeCompare(y));
}

async function assertSound(test: TestHost, diary: Diary, held: Held): Promise<void> {
  const running = test.host
    .ledgers()
    .map((ledger) => ledger.plugin)
    .sort((x, y) => x.localeCompare(y));
  assert.deepEqual(balance(diary), running, 'what is up is what came up and did not go');
  const provided = test.host.ledgers().flatMap((ledger) => ledger.services.map((entry) => entry.name));
  assert.equal(new Set(provided).size, provided.length, 'nothing is provided twice');
  for (const [user, value] of held)
    assert.ok(
      value === test.host.service('lamp') || value === test.host.service('socket'),
      `${user} holds a service that is gone`,
    );
  assert.deepEqual(
    (await test.hooks.collect('collectNotices')).map((notice) => notice.message),
    running,
  );
  for (const info of test.list()) {
    assert.equal(
      info.reason === undefined,
      info.state === 'active' || info.state === 'disabled',
      `${info.name} ${info.state} ${String(info.reason)}`,
    );
    assert.equal(info.effects.length > 0, running.includes(info.name), info.name);
  }
}

const one = (name: string, more: Partial<Shape>): Shape => ({
  name,
  version: 1,
  requires: null,
  provides: null,
  route: null,
  fails: false,
  enabled: true,
  ...more,
});

/** Sets that were got wrong once. */
const former: [Shape[][]][] = [
  // What ran before would provide what another has taken over meanwhile.
  [
    [
      [one('c', { provides: 'socket' })],
      [one('a', { provides: 'socket' }), one('c', { provides: 'lamp', fails: true })],
      [],
    ],
  ],
  // What is kept because its replacement conflicts would hold a service that goes.
  [
    [
      [one('c', { requires: 'lamp' }), one('a', { provides: 'lamp', route: 1 })],
      [
        one('c', { requires: 'lamp', provides: 'lamp', route: 1, fails: true }),
        one('a', { requires: 'lamp', provides: 'socket', route: 1, fails: true }),
      ],
      [],
    ],
  ],
  // What ran before would come back to a route that another has taken over meanwhile.
  [
    [
      [one('d', { route: 2 })],
      [one('b', { route: 2 }), one('d', { version: 2, route: 1, fails: true })],
      [one('b', { route: 2 }), one('d', { route: 2 })],
    ],
  ],
];

describe('plugin host, over random plugin sets', () => {
  it('never has anything up twice, half or with a service that is gone', async () => {
    await fc.assert(
      fc.asyncProperty(steps, async (sets) => {
        const diary: Diary = [];
        const held: Held = new Map();
        const test = await createTestHost({ plugins: [] });
        try {
          const built = new Map<string, AnyPlugin>();
          const offer = (one: Shape): AnyPlugin => {
            const key = JSON.stringify({ ...one, enabled: true });
            const plugin = built.get(key) ?? build(one, diary, held);
            built.set(key, plugin);
            return plugin;
          };
          for (const set of sets) {
            await test.setPlugins(
              set.map((one) => (one.enabled ? offer(one) : { ...offer(one), enabledByDefault: false })),
            );
            await assertSound(test, diary, held);
          }
        } finally {
          await test.close();
        }
        assert.deepEqual(balance(diary), [], 'nothing is up at the end');
        assert.equal(held.size, 0);
      }),
      { seed: 20_261_121, numRuns: 40, interruptAfterTimeLimit: 20_000, examples: former },
    );
  });
});
