import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import type { Hooks } from 'mountkeeper';
import { createHooks } from '../../../core/plugins/hooks.js';
import type { HookRunner } from '../../../core/plugins/hooks.js';
import { emptyLedger } from '../../../core/plugins/instance/ledger.js';
import type { Ledger, TapEntry } from '../../../core/plugins/instance/ledger.js';
import { collectLog } from '../../support/platform/collected-log.ts';

type Taps = readonly (readonly [hook: keyof Hooks, fn: (...args: never[]) => unknown, stage?: number])[];

function ledger(plugin: string, taps: Taps): Ledger {
  return {
    ...emptyLedger(plugin, false),
    taps: taps.map(([hook, fn, stage = 0]) => ({ hook, fn, stage }) as TapEntry),
  };
}

/** Of a third party. */
function stranger(plugin: string, taps: Taps): Ledger {
  return { ...ledger(plugin, taps), routePrefix: `/ext/${plugin}` };
}

interface Bench {
  readonly runner: HookRunner;
  readonly clock: ReturnType<typeof createManualClock>;
  readonly entries: readonly Record<string, unknown>[];
  readonly down: Set<string>;
  project(...ledgers: Ledger[]): Promise<void>;
}

function bench(): Bench {
  const clock = createManualClock();
  const { log, entries } = collectLog();
  const down = new Set<string>();
  const { projector, runner } = createHooks({ clock, log, timeoutMs: 1_000 });
  const project = async (...ledgers: Ledger[]): Promise<void> =>
    (await projector.build(ledgers, (plugin) => !down.has(plugin))).commit();
  return { runner, clock, entries, down, project };
}

const change = { share: 'photos', from: 'pending', to: 'healthy', reason: null } as const;

describe('hooks', () => {
  it('answer at once when nobody taps them', async () => {
    const { runner } = bench();
    assert.equal(await runner.veto('beforeMount', 'photos'), undefined);
    await runner.observe('shareHealthChanged', change);
    assert.deepEqual(runner.resolve('resolveBandwidth', { up: 1, down: 2 }), { up: 1, down: 2 });
    assert.deepEqual(await runner.collect('collectNotices'), []);
  });

  it('set no time limit for a tap that has answered already', async () => {
    const { clock, project, runner } = bench();
    const after = mock.method(clock, 'after');
    const notice = [{ level: 'error', message: 'm' }];
    await project(
      ledger('ant', [['collectNotices', () => notice]]),
      ledger('bee', [['afterCycle', () => {}]]),
    );
    assert.deepEqual(await runner.collect('collectNotices'), notice);
    assert.equal(after.mock.callCount(), 0);
    await project(ledger('ant', [['collectNotices', async () => notice]]));
    assert.deepEqual(await runner.collect('collectNotices'), notice);
    assert.equal(after.mock.callCount(), 1);
  });

  it('run taps by stage, then by plugin name, whatever the order of loading', async () => {
    const seen: string[] = [];
    const note = (name: string) => () => void seen.push(name);
    const first = ledger('zebra', [
      ['afterMount', note('zebra early'), -1],
      ['afterMount', note('zebra one')],
      ['afterMount', note('zebra two')],
    ]);
    const second = ledger('ant', [
      ['afterMount', note('ant')],
      ['afterMount', note('ant late'), 5],
    ]);
    for (const order of [
      [first, second],
      [second, first],
    ]) {
      seen.length = 0;
      const { runner, project } = bench();
      await project(...order);
      await runner.observe('afterMount', 'photos');
      assert.deepEqual(seen, ['zebra early', 'ant', 'zebra one', 'zebra two', 'ant late']);
    }
  });

  it('take the first reason as the veto and ask nobody further', async () => {
    const { runner, project } = bench();
    let asked = 0;
    await project(
      ledger('a', [['beforeMount', () => undefined]]),
      ledger('b', [['beforeMount', async (share: string) => `${share} is being moved`]]),
      ledger('c', [
        [
          'beforeMount',
          () => {
            asked += 1;
            return 'too late';
          },
        ],
      ]),
    );
    assert.equal(await runner.veto('beforeMount', 'photos'), 'photos is being moved');
    assert.equal(asked, 0);
  });

  it('skip a veto that throws or is no text, name its plugin in the log and hear the next one', async () => {
    const { runner, project, entries } = bench();
    await project(
      ledger('broken', [
        [
          'beforeMount',
          () => {
            throw new Error('oops');
          },
        ],
      ]),
      ledger('chatty', [['beforeMount', () => true]]),
      ledger('right', [['beforeMount', () => 'no']]),
    );
    assert.equal(await runner.veto('beforeMount', 'photos'), 'no');
    assert.deepEqual(
      entries.map((line) => [line['plugin'], line['hook']]),
      [
        ['broken', 'beforeMount'],
        ['chatty', 'beforeMount'],
      ],
    );
  });

  it('wait for a plugin with many taps as long as for one with one', async () => {
    const { runner, project, clock } = bench();
    const calls: string[] = [];
    const slow = (name: string) => async (): Promise<void> => {
      calls.push(name);
      await new Promise<void>((resolve) => void clock.after(600, resolve));
    };
    const never = (): Promise<void> => {
      calls.push('never');
      return new Promise(() => undefined);
    };
    const many = (fn: () => unknown): Taps => Array.from({ length: 50 }, () => ['afterMount', fn] as const);
    await project(
      ledger('a', many(slow('slow'))),
      ledger('b', many(never)),
      ledger('c', [['afterMount', () => void calls.push('next')]]),
    );
    const observed = runner.observe('afterMount', 'photos');
    let isOver = false;
    void observed.then(() => (isOver = true));
    for (let tenth = 0; tenth < 21; tenth += 1) await clock.advance(100);
    assert.equal(isOver, true);
    assert.deepEqual(calls, ['slow', 'slow', 'never', 'next']);
  });

  it('leave a tap behind that hangs, and do not call it again while it still hangs', async () => {
    const { runner, project, clock, entries } = bench();
    let calls = 0;
    let wake: () => void = () => undefined;
    const hang = () => {
      calls += 1;
      return new Promise<void>((resolve) => {
        wake = resolve;
      });
    };
    let reached = 0;
    await project(
      ledger('hangs', [['afterMount', hang]]),
      ledger('next', [
        [
          'afterMount',
          () => {
            reached += 1;
          },
        ],
      ]),
    );
    const observed = runner.observe('afterMount', 'photos');
    await clock.advance(1_000);
    await observed;
    assert.equal(reached, 1);
    assert.match(JSON.stringify(entries), /"plugin":"hangs".*did not finish within 1 s/);
    await runner.observe('afterMount', 'photos');
    assert.deepEqual([calls, reached], [1, 2], 'the second round did not wait');
    wake();
    await clock.advance(0);
    const again = runner.observe('afterMount', 'photos');
    wake();
    await again;
    assert.equal(calls, 2);
    assert.equal(clock.pending, 0, 'no timer is left');
  });

  it('let several calls of one tap run at the same time', async () => {
    const { runner, project, clock } = bench();
    const shares: string[] = [];
    await project(
      ledger('slow', [
        [
          'beforeMount',
          async (share: string) => {
            shares.push(share);
            await clock.sleep(500);
          },
        ],
      ]),
    );
    const both = Promise.all([runner.veto('beforeMount', 'one'), runner.veto('beforeMount', 'two')]);
    await clock.advance(0);
    assert.deepEqual(shares, ['one', 'two']);
    await clock.advance(500);
    await both;
  });

  it('pass a value on through all transforming taps and skip the ones that fail', async () => {
    const { runner, project, entries } = bench();
    type Budget = { up: number; down: number };
    await project(
      ledger('a', [['resolveBandwidth', (budget: Budget) => ({ ...budget, up: budget.up / 2 })]]),
      ledger('b', [
        [
          'resolveBandwidth',
          () => {
            throw new Error('no idea');
          },
        ],
      ]),
      ledger('c', [['resolveBandwidth', () => 'fast']]),
      ledger('d', [['resolveBandwidth', async () => ({ up: 1, down: 1 })]]),
      ledger('e', [['resolveBandwidth', (budget: Budget) => ({ ...budget, down: 7 })]]),
    );
    assert.deepEqual(runner.resolve('resolveBandwidth', { up: 100, down: 100 }), { up: 50, down: 7 });
    assert.deepEqual(
      entries.map((line) => line['plugin']),
      ['b', 'c', 'd'],
    );
  });

  it('gather lists from all in their order, without those that fail', async () => {
    const { runner, project, clock, entries } = bench();
    const notice = (message: string) => [{ level: 'info', message }];
    await project(
      ledger('a', [
        [
          'collectNotices',
          async () => {
            await clock.sleep(100);
            return notice('slow but first');
          },
        ],
      ]),
      ledger('b', [['collectNotices', () => 'not a list']]),
      ledger('c', [['collectNotices', () => Promise.reject(new Error('broken'))]]),
      ledger('d', [['collectNotices', () => notice('quick')]]),
    );
    const collected = runner.collect('collectNotices');
    await clock.advance(100);
    assert.deepEqual(
      (await collected).map((one) => one.message),
      ['slow but first', 'quick'],
    );
    assert.deepEqual(new Set(entries.map((line) => line['plugin'])), new Set(['b', 'c']));
  });

  it("put a plugin's name before what it finds wrong with a share", async () => {
    const { runner, project, entries } = bench();
    const troubles = (...messages: unknown[]) => messages.map((message) => ({ share: 'photos', message }));
    await project(
      ledger('garden', [
        [
          'collectShareTroubles',
          () => troubles('dry; the mount hangs\n\u2028twice； ', 'x'.repeat(900), ' ; ', 7),
        ],
      ]),
      ledger('pond', [['collectShareTroubles', () => [null, { message: 'no share' }]]]),
    );
    assert.deepEqual(await runner.collect('collectShareTroubles'), [
      { share: 'photos', message: 'garden: dry, the mount hangs, twice' },
      { share: 'photos', message: `garden: ${'x'.repeat(300)}` },
    ]);
    assert.deepEqual(
      entries.map((line) => line['plugin']),
      ['garden', 'pond'],
    );
  });

  it('skip plugins that are not up', async () => {
    const { runner, project, down } = bench();
    await project(
      ledger('a', [
        ['beforeMount', () => 'no'],
        ['resolveBandwidth', () => ({ up: 9, down: 9 })],
      ]),
    );
    down.add('a');
    assert.equal(await runner.veto('beforeMount', 'photos'), undefined);
    assert.deepEqual(runner.resolve('resolveBandwidth', { up: 1, down: 1 }), { up: 1, down: 1 });
    down.clear();
    assert.equal(await runner.veto('beforeMount', 'photos'), 'no');
  });

  it('finish a call on the projection it began with while the next one is already in force', async () => {
    const { runner, project, clock } = bench();
    const seen: string[] = [];
    await project(
      ledger('old', [
        [
          'afterMount',
          async () => {
            await clock.sleep(10);
            seen.push('old');
          },
        ],
      ]),
    );
    const running = runner.observe('afterMount', 'photos');
    await project(ledger('new', [['afterMount', () => void seen.push('new')]]));
    await runner.observe('afterMount', 'photos');
    await clock.advance(10);
    await running;
    assert.deepEqual(seen, ['new', 'old']);
  });

  it('that were built but not committed, change nothing', async () => {
    const { clock } = bench();
    const { log } = collectLog();
    const { projector, runner } = createHooks({ clock, log });
    const built = await projector.build([ledger('a', [['beforeMount', () => 'no']])], () => true);
    await built.discard();
    assert.equal(await runner.veto('beforeMount', 'photos'), undefined);
  });

  describe("of third parties' plugins", () => {
    const notice = (message: string) => ({ level: 'info', message }) as const;

    it('hold up nobody who hears of a cycle, however slow they are; they miss cycles, and are named once', async () => {
      const { runner, project, clock, entries } = bench();
      let [told, began] = [0, 0];
      const slow = async (): Promise<void> => {
        began += 1;
        await clock.sleep(900);
      };
      await project(
        stranger('slow', [['afterCycle', slow, -1_000]]),
        stranger('slower', [['afterCycle', slow, -1_000]]),
        ledger('ours', [['afterCycle', () => void (told += 1)]]),
      );
      for (let cycle = 0; cycle < 20; cycle += 1) {
        await runner.observe('afterCycle', undefined as never, 1);
        assert.equal(told, cycle + 1);
        await clock.advance(100);
      }
      assert.equal(began, 6, 'each at once, and after each 900 ms');
      assert.deepEqual(
        entries.map(({ plugin, hook }) => [plugin, hook]),
        [
          ['slow', 'afterCycle'],
          ['slower', 'afterCycle'],
        ],
      );
    });

    it('are told of each event, in the order of their stages, and waited for by nobody', async () => {
      const { runner, project, clock, entries } = bench();
      const heard: string[] = [];
      const slow = (name: string) => async (event: { key: string }) => {
        heard.push(`${name} ${event.key}`);
        await clock.sleep(900);
      };
      await project(
        stranger('z', [['notification', slow('z'), -1]]),
        stranger('a', [['notification', slow('a')]]),
        ledger('m', [['notification', (event: { key: string }) => void heard.push(`m ${event.key}`)]]),
      );
      for (const key of ['1', '2', '3']) await runner.observe('notification', { key } as never);
      assert.deepEqual(heard, ['z 1', 'a 1', 'm 1', 'z 2', 'a 2', 'm 2', 'z 3', 'a 3', 'm 3']);
      await clock.advance(1_000);
      assert.deepEqual(entries, []);
    });

    it('are waited for 200 ms for a list; then the last one stands until the next is there', async () => {
      const { runner, project, clock, entries, down } = bench();
      let [calls, takesMs] = [0, 150];
      const listing = async () => {
        calls += 1;
        const message = `answer ${calls}`;
        await clock.sleep(takesMs);
        return [notice(message)];
      };
      await project(
        stranger('slow', [['collectNotices', listing]]),
        ledger('ours', [['collectNotices', () => [notice('ours')]]]),
      );
      const collected = async (ms: number): Promise<readonly string[]> => {
        const given = runner.collect('collectNotices');
        let isThere = false;
        void given.then(() => (isThere = true));
        await clock.advance(ms);
        assert.equal(isThere, true, `after ${ms} ms`);
        return (await given).map(({ message }) => message).sort();
      };
      assert.deepEqual(await collected(150), ['answer 1', 'ours'], 'in time');
      takesMs = 900;
      assert.deepEqual(await collected(200), ['answer 1', 'ours'], 'the last one stands');
      assert.deepEqual(await collected(0), ['answer 1', 'ours'], 'nobody waits for what was asked before');
      assert.equal(calls, 2, 'it is not called while it is at work');
      down.add('slow');
      assert.deepEqual(await collected(0), ['ours'], 'nothing stands of what is gone');
      down.clear();
      await clock.advance(700);
      assert.deepEqual(await collected(200), ['answer 2', 'ours'], 'a late answer counts from then on');
      assert.equal(calls, 3);
      takesMs = 5_000;
      await clock.advance(900);
      assert.deepEqual(await collected(200), ['answer 3', 'ours']);
      await clock.advance(800);
      assert.deepEqual(await collected(0), ['ours'], 'what hangs is not waited for, and its answer is void');
      assert.deepEqual(
        entries.map(({ level, plugin, msg }) => [level, plugin, String(msg).slice(0, 27)]),
        [
          [40, 'slow', 'plugin answers a hook slowl'],
          [50, 'slow', 'plugin failed in a hook and'],
        ],
      );
    });

    it('are asked side by side whether a share may be mounted, for 2 s; who was late rests for a minute', async () => {
      const clock = createManualClock();
      const { log, entries } = collectLog();
      const { projector, runner } = createHooks({ clock, log });
      const asked: string[] = [];
      let takesMs = 4_900;
      const slow = (name: string) => async () => {
        asked.push(name);
        await clock.sleep(takesMs);
        return `${name} objects`;
      };
      const ledgers = [
        stranger('a', [['beforeMount', slow('a')]]),
        stranger('b', [['beforeMount', slow('b')]]),
        stranger('c', [['beforeMount', () => void asked.push('c')]]),
      ];
      (await projector.build(ledgers, () => true)).commit();
      const mounted = async (ms: number): Promise<string | undefined> => {
        const vetoed = runner.veto('beforeMount', 'photos');
        let isThere = false;
        void vetoed.then(() => (isThere = true));
        await clock.advance(ms);
        assert.equal(isThere, true, `after ${ms} ms`);
        return vetoed;
      };
      const both = Promise.all([mounted(2_000), runner.veto('beforeMount', 'music')]);
      assert.deepEqual(await both, [undefined, undefined]);
      assert.deepEqual(asked, ['a', 'b', 'c', 'a', 'b', 'c']);
      assert.deepEqual(
        entries.map(({ plugin }) => plugin),
        ['a', 'b'],
        'named once for both shares',
      );
      assert.equal(await mounted(0), undefined, 'the next attempt is not held up');
      assert.equal(asked.length, 7);
      takesMs = 100;
      await clock.advance(60_000);
      assert.equal(await mounted(100), 'a objects', 'the first by name, though both have objected');
    });

    it('are asked of a share after those that come with Mountkeeper, and not where these object', async () => {
      const { runner, project } = bench();
      let asked = 0;
      await project(
        stranger('a', [['beforeMount', () => void (asked += 1), -1_000]]),
        ledger('ours', [['beforeMount', () => 'no']]),
      );
      assert.equal(await runner.veto('beforeMount', 'photos'), 'no');
      assert.equal(asked, 0);
    });

    it('are called no second time by another set of plugins while they are at work', async () => {
      const { runner, project, clock } = bench();
      let calls = 0;
      const slow = stranger('slow', [
        [
          'collectNotices',
          async () => {
            calls += 1;
            await clock.sleep(900);
            return [notice('late')];
          },
        ],
      ]);
      await project(slow);
      const first = runner.collect('collectNotices');
      await clock.advance(200);
      assert.deepEqual(await first, []);
      await project(slow, ledger('ours', []));
      assert.deepEqual(await runner.collect('collectNotices'), []);
      assert.equal(calls, 1);
      await clock.advance(700);
      const second = runner.collect('collectNotices');
      await clock.advance(200);
      assert.deepEqual(await second, [notice('late')]);
    });
  });
});
