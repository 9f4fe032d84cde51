import assert from 'node:assert/strict';
import { describe, it, mock } from 'node:test';
import { createHooks } from '../../../core/plugins/hooks.ts';
import { bench, ledger } from '../../support/plugins/hook-bench.ts';
import type { Taps } from '../../support/plugins/hook-bench.ts';
import { collectLog } from '../../support/platform/collected-log.ts';

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
});
