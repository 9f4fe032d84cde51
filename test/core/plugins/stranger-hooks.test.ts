/** Who waits for whom: nobody waits for a third party's plugin but a mount, and that not for long. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { createHooks } from '../../../core/plugins/hooks.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { bench, ledger, stranger } from '../../support/plugins/hook-bench.ts';

describe("hooks of third parties' plugins", () => {
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
