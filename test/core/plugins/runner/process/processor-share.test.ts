/** What a plugin's processes take of a processor: what the kernel counts, and when it is too much. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';
import { processTree } from '../../../../../core/plugins/runner/process/process-tree.ts';
import { ProcessorShare } from '../../../../../core/plugins/runner/process/processor-share.ts';

const LOOK_MS = 2_000;

/** What is said at each look, of one that is busy for so much of the time between two. */
function looks(share: ProcessorShare, busy: readonly number[]): readonly (string | undefined)[] {
  let busyMs = 100;
  return [0, ...busy].map((part, index) => share.problem((busyMs += part * LOOK_MS), index * LOOK_MS));
}

describe('the share of a processor', () => {
  it('may be large for a while, but not over five minutes', () => {
    const wholeTime = looks(new ProcessorShare(), Array<number>(150).fill(0.97));
    assert.deepEqual(
      wholeTime.slice(0, -1).filter((one) => one !== undefined),
      [],
    );
    assert.equal(wholeTime.at(-1), 'it took 97 % of a processor core over 300 s; 50 % is the most');
    const half = [...Array<number>(70).fill(1), ...Array<number>(80).fill(0)];
    assert.deepEqual(
      looks(new ProcessorShare(), [...half, ...half]).filter((one) => one !== undefined),
      [],
    );
  });

  it('is measured from anew after each window, and is not reckoned back when a child takes its time along', () => {
    const share = new ProcessorShare({ mostShare: 0.5, windowMs: 10_000 });
    const said = looks(share, [...Array<number>(5).fill(0.4), 0.9, -5, 0.9, 0.9, 0.9]);
    assert.deepEqual(
      said.map((one) => one !== undefined),
      [...Array<boolean>(10).fill(false), true],
    );
    assert.match(said.at(-1) ?? '', /it took 72 % of a processor core over 10 s/);
  });

  it('has in it what a process and its children took, those too that have ended', async () => {
    const burn = 'for (const begun = process.cpuUsage(); process.cpuUsage(begun).user < 300_000;);';
    const script = `require('node:child_process').execFileSync(process.execPath, ['-e', ${JSON.stringify(burn)}]);
      ${burn} console.log('done'); setInterval(() => undefined, 1_000);`;
    const child = spawn(process.execPath, ['-e', script], {
      detached: true,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    try {
      await once(child.stdout, 'data');
      const tree = await processTree({ leader: child.pid ?? 0 }, true);
      const busyMs = tree.reduce((sum, one) => sum + one.busyMs, 0);
      assert.equal(tree.length, 1);
      // The kernel counts in hundredths of a second, and starting Node twice is in it.
      assert.ok(busyMs >= 550 && busyMs < 10_000, `${busyMs} ms`);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
