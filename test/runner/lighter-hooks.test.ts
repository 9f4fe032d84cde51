import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';

const HOOKS = new URL('./lighter-hooks.js', import.meta.url).href;

/** A process of its own, in which these tests are declared. */
function ran(tests: string): { readonly status: number | null; readonly stdout: string } {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const body = `await import(${JSON.stringify(HOOKS)});
    const { describe, it } = await import('node:test'); ${tests}`;
  return spawnSync(process.execPath, ['--input-type=module', '--test-reporter=tap', '--eval', body], {
    encoding: 'utf8',
    timeout: 60_000,
    env,
  });
}

describe('tests of which the runner hears alone', () => {
  it('are found in the suites around them, also after something was awaited', () => {
    const { status, stdout } = ran(`describe('a', () => { describe('b', () => {
      it('c', async (t) => { await null; await t.test('d', () => undefined); }); }); it('e', () => undefined); });`);
    assert.equal(status, 0, stdout);
    const depths = [...stdout.matchAll(/^( *)ok \d+ - (\w)$/gm)].map(
      ([, indent = '', name]) => `${name} ${indent.length / 4}`,
    );
    assert.deepEqual(depths, ['d 3', 'c 2', 'b 1', 'e 1', 'a 0']);
  });

  it('do not hide what nobody catches', () => {
    for (const fault of [
      "it('a', () => { setTimeout(() => { throw new Error('stray'); }, 1); });",
      "it('a', async () => { void Promise.reject(new Error('stray')); await new Promise((r) => setTimeout(r, 50)); });",
    ])
      assert.notEqual(
        ran(`${fault} it('b', () => new Promise((r) => setTimeout(r, 100)));`).status,
        0,
        fault,
      );
  });
});
