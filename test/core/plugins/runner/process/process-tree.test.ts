import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { leftBy, ownMemoryIn, processTree } from '../../../../../core/plugins/runner/process/process-tree.ts';

/** No process has this id. */
const NOBODY = 999_999_999;

const countProcesses = (): number =>
  readdirSync('/proc').filter((name) => Number.isInteger(Number(name))).length;

/** How many turns of the event loop `work` takes. */
async function turnsOf(work: () => Promise<unknown>): Promise<number> {
  let turns = 0;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  await work();
  isOver = true;
  return turns;
}

describe('the memory of a process', () => {
  it('is also what was swapped out, and what it shares with others by no file', () => {
    const status = (...lines: readonly string[]): string =>
      ['Name:\tnode', 'VmRSS:\t    1500 kB', ...lines, 'Threads:\t11', ''].join('\n');
    const [anonymous, file] = ['RssAnon:\t    1000 kB', 'RssFile:\t     470 kB'];
    const [shared, swapped] = ['RssShmem:\t      30 kB', 'VmSwap:\t     200 kB'];
    assert.equal(ownMemoryIn(status(anonymous, file, shared, swapped)), 1_230 * 1_024);
    // An older kernel tells only of all together.
    assert.equal(ownMemoryIn(status(swapped)), 1_700 * 1_024);
    assert.equal(ownMemoryIn(''), 0);
  });
});

describe('a look at the processes of the machine', () => {
  it('lets others have their turn after each fifty of them', async () => {
    const [before, turns] = [
      countProcesses(),
      await turnsOf(() => processTree({ leader: process.pid }, true)),
    ];
    const least = Math.floor(Math.min(before, countProcesses()) / 50);
    assert.ok(turns >= least, `${turns} turns for ${before} processes`);
  });

  it('serves all who ask at the same time', async () => {
    const alone = await turnsOf(() => processTree({ leader: process.pid }, true));
    const together = await turnsOf(() =>
      Promise.all(Array.from({ length: 40 }, () => processTree({ leader: process.pid }, true))),
    );
    // One after the other, they would take forty times as many.
    assert.ok(together <= 4 * alone + 20, `${together} turns beside ${alone}`);
  });

  it('finds what was begun before it was asked for, and what is left by its mark', async () => {
    const child = spawn('sh', ['-c', 'sleep 60 & echo; wait'], {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { PATH: process.env['PATH'], LOOKED_FOR: 'here' },
    });
    try {
      await once(child.stdout, 'data');
      const [tree] = await Promise.all([
        processTree({ leader: child.pid ?? 0 }, true),
        processTree({ leader: 1 }, true),
      ]);
      assert.equal(tree.length, 2);
      const left = async (value: string) =>
        new Set(
          (await leftBy({ leader: NOBODY }, `LOOKED_FOR=${value}`, tree[0]?.startTicks ?? '0')).map(
            ({ pid }) => pid,
          ),
        );
      assert.deepEqual(await left('here'), new Set(tree.map(({ pid }) => pid)));
      assert.deepEqual(await left('elsewhere'), new Set());
    } finally {
      process.kill(-(child.pid ?? 0), 'SIGKILL');
    }
  });
});
