import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { filesToRun, inTwoTries, MOST_UNSTEADY } from './second-try.ts';
import type { Outcome } from './second-try.ts';

interface Seen {
  readonly isGood: boolean;
  readonly again: readonly (readonly string[])[];
  readonly said: string;
}

const outcome = (failed: readonly string[], isCutShort = false): Outcome => ({ failed, isCutShort });

async function tries(first: Outcome, second: Outcome = outcome([])): Promise<Seen> {
  const again: (readonly string[])[] = [];
  const said: string[] = [];
  const isGood = await inTwoTries({
    first: () => Promise.resolve(first),
    alone: (files) => {
      again.push(files);
      return Promise.resolve(second);
    },
    say: (line) => said.push(line),
  });
  return { isGood, again, said: said.join('\n') };
}

describe('test files that fail', () => {
  it('are not tried again when there are none', async () => {
    assert.deepEqual(await tries(outcome([])), { isGood: true, again: [], said: '' });
  });

  it('are named and run once more, those alone, and the second try decides', async () => {
    const passed = await tries(outcome(['e2e/a.test.js', 'unit/daemon.js']));
    assert.deepEqual([passed.isGood, passed.again], [true, [['e2e/a.test.js', 'unit/daemon.js']]]);
    assert.match(passed.said, /: a\.test\.js, daemon\.js$/);
    assert.equal((await tries(outcome(['a', 'b']), outcome(['b']))).isGood, false);
  });

  it('are those that were run, wherever their tests are declared', () => {
    const [daemon, plugins] = ['/p/dist/test/unit/daemon.js', '/p/dist/test/unit/plugins.js'];
    const life = '/p/dist/test/e2e/a.test.js';
    const files = [daemon, plugins, life];
    assert.deepEqual(filesToRun(life, files), [life]);
    assert.deepEqual(filesToRun('/p/dist/test/core/x.test.js', files), [daemon]);
    assert.deepEqual(filesToRun('/p/dist/test/plugins/a/x.test.js', files), [plugins]);
    // Either of them may have used it.
    for (const declaredIn of ['/p/dist/core/testing/contract-suite.js', undefined])
      assert.deepEqual(filesToRun(declaredIn, files), [daemon, plugins]);
    assert.throws(() => filesToRun('/p/dist/test/support/x.js', [life]), /none of those that were run/);
    assert.throws(() => filesToRun('/p/dist/test/core/x.test.js', [plugins, life]), /none of those/);
  });

  it('fail at once when they are many, and when the run was cut short', async () => {
    const many = Array.from({ length: MOST_UNSTEADY + 1 }, (_, index) => `${index}.test.js`);
    assert.deepEqual([(await tries(outcome(many))).isGood, (await tries(outcome(many))).again], [false, []]);
    assert.deepEqual(
      [(await tries(outcome(['a'], true))).isGood, (await tries(outcome(['a'], true))).again],
      [false, []],
    );
    assert.equal((await tries(outcome(['a']), outcome([], true))).isGood, false);
  });
});
