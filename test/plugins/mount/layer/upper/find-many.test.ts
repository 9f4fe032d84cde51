/** Many paths looked at with few children: real `find` on a plain folder, and what comes of errors. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, beforeEach, describe, it } from 'node:test';
import type { Processes } from 'mountkeeper';
import { createClock } from '../../../../../core/platform/clock.ts';
import { runShortCommand } from '../../../../../core/platform/processes/short-command.ts';
import { findMany } from '../../../../../plugins/mount/layer/upper/find-many.ts';

const clock = createClock();
const root = mkdtempSync(join(tmpdir(), 'mk-find-many-'));

describe('a look at many paths', () => {
  const asked: (readonly string[])[] = [];
  /** Paths whose look fails with this. */
  let broken: ReadonlyMap<string, string> = new Map();
  const processes: Pick<Processes, 'run'> = {
    run: async (spec) => {
      const paths = spec.args?.slice(0, spec.args.indexOf('-maxdepth')) ?? [];
      asked.push(paths);
      const result = await runShortCommand(
        { ...spec, args: (spec.args ?? []).filter((path) => !broken.has(path)) },
        clock,
      );
      const errors = paths
        .filter((path) => broken.has(path))
        .map((path) => `find: '${path}': ${broken.get(path) ?? ''}\n`);
      return errors.length === 0
        ? result
        : { ...result, code: 1, stderr: `${result.stderr}${errors.join('')}` };
    },
  };
  const look = (names: readonly string[], isInside: boolean) =>
    findMany(
      names.map((name) => join(root, name)),
      { processes, isInside, timeoutMs: 10_000 },
    );

  beforeEach(() => {
    asked.length = 0;
    broken = new Map();
    mkdirSync(join(root, 'd/sub'), { recursive: true });
    for (const name of ['a', 'd/x', 'd/line\nend', 'd/tab\tü']) writeFileSync(join(root, name), name);
  });
  after(() => rmSync(root, { recursive: true }));

  it('tells what is there and what is not, in one child', async () => {
    const { found, failed } = await look(['a', 'none', 'a/none', 'd'], false);
    assert.deepEqual(
      [...found.values()].map((at) => at?.self.type),
      ['f', undefined, undefined, 'd'],
    );
    assert.equal(found.get(join(root, 'a'))?.self.bytes, 1);
    assert.equal(failed.size, 0);
    assert.equal(asked.length, 1);
  });

  it('tells what is in folders, whatever the names', async () => {
    const { found } = await look(['d', 'd/sub', 'a', 'none'], true);
    assert.deepEqual(
      found
        .get(join(root, 'd'))
        ?.inside.map(({ name }) => name)
        .sort(),
      ['line\nend', 'sub', 'tab\tü', 'x'],
    );
    assert.deepEqual(found.get(join(root, 'd/sub'))?.inside, []);
    assert.equal(found.get(join(root, 'none')), undefined);
  });

  it('never takes for missing what could not be looked at, and tells the others', async () => {
    broken = new Map([[join(root, 'd/x'), 'Input/output error']]);
    const { found, failed } = await look(['a', 'none', 'd/x'], false);
    assert.equal(found.has(join(root, 'd/x')), false);
    assert.match(failed.get(join(root, 'd/x')) ?? '', /Input\/output error/);
    assert.deepEqual(
      [...found].map(([path, at]) => [path, at?.self.type]),
      [
        [join(root, 'a'), 'f'],
        [join(root, 'none'), undefined],
      ],
    );
  });

  it('takes no part of a listing for the whole', async () => {
    broken = new Map([[join(root, 'none'), 'Input/output error']]);
    const { found, failed } = await look(['d', 'none'], true);
    assert.equal(found.get(join(root, 'd'))?.inside.length, 4);
    assert.deepEqual([...failed.keys()], [join(root, 'none')]);
    assert.deepEqual(asked.at(-2), [join(root, 'd')], 'asked for alone');
  });

  it('asks with some children for very many paths', async () => {
    const { found } = await look(
      Array.from({ length: 450 }, (_, index) => `none${index}`),
      false,
    );
    assert.equal(found.size, 450);
    assert.equal(asked.length, 3);
  });
});
