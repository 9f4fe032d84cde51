import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { UNIT_FILES } from './unit-files.ts';
import { directivesOf, LOAD_LIMIT, loadOf, PROJECT, selected, testFiles } from './test-files.ts';

const units = Object.keys(UNIT_FILES).map((name) => `test/${name}.ts`);
const RUN = join(PROJECT, 'dist/test/run.js');
/** Where a run lays out the daemon that its tests start. */
const BUNDLED = join(PROJECT, '.cache/bundled');

const changedMs = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ctimeMs;

describe('the test files', () => {
  it('say themselves how much they take and when they begin, and nothing that is not understood', () => {
    assert.deepEqual(directivesOf('// @load quiet\n// @start 12\n// @long\n/** x */\n'), {
      load: 'quiet',
      start: 12,
      isLong: true,
    });
    assert.deepEqual(directivesOf('// @ts-expect-error\nconst a = 1; // @load later\n'), {
      load: 'normal',
      start: Infinity,
      isLong: false,
    });
    for (const wrong of [
      '// @load',
      '// @load huge',
      '// @load toString',
      '// @start 0',
      '// @start soon',
      '// @alone',
      '// @long ago',
      '//@lod quiet',
    ]) {
      assert.throws(
        () => directivesOf(`${wrong}\n`),
        new RegExp(`'${wrong}' is no directive; there are`),
        wrong,
      );
    }
    assert.deepEqual(
      ['quiet', 'normal', 'loud', 'alone'].map((load) => loadOf(directivesOf(`// @load ${load}`))),
      [0.5, 1, LOAD_LIMIT / 2, LOAD_LIMIT],
    );
  });

  it('are all found, begin in their order, and those that must be alone come last', async () => {
    const files = await testFiles();
    const sources = readdirSync(join(PROJECT, 'test/e2e'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.test.ts'))
      .map((name) => `test/e2e/${name}`);
    assert.deepEqual(files.map(({ source }) => source).sort(), [...sources, ...units].sort());
    const alone = files.filter(({ load }) => load === 'alone');
    assert.ok(alone.length > 0);
    assert.deepEqual(files.slice(-alone.length), alone);
    const starts = files.slice(0, -alone.length).map(({ start }) => start);
    assert.deepEqual(
      starts,
      starts.toSorted((a, b) => (a === b ? 0 : a - b)),
    );
    assert.equal(starts[0], 1);
  });

  it('have directives only where the runner reads them', () => {
    const read = new Set(
      readdirSync(join(PROJECT, 'test/e2e'), { recursive: true, encoding: 'utf8' })
        .map((name) => `e2e/${name}`)
        .concat(units.map((name) => name.replace('test/', ''))),
    );
    const others = readdirSync(join(PROJECT, 'test'), { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.ts') && !read.has(name),
    );
    const found = others.filter((name) =>
      /^\/\/ ?@(load|long|start)\b/m.test(readFileSync(join(PROJECT, 'test', name), 'utf8')),
    );
    assert.deepEqual(found, []);
  });

  it('are chosen by words of which each has to name one', async () => {
    const files = await testFiles();
    assert.deepEqual(selected(files, []), files);
    assert.deepEqual(
      selected(files, ['e2e/mount/life', 'hanging-mount'])
        .map(({ name }) => name)
        .sort(),
      ['daemon/hanging-mount', 'mount/life'],
    );
    assert.throws(
      () => selected(files, ['mount/life', 'no-such-file']),
      /^Error: no test file has 'no-such-file' in its path/,
    );
  });

  it('end when the time of the run is over, and what has not run has failed', () => {
    const before = changedMs(BUNDLED);
    const { status, stdout } = spawnSync(process.execPath, [RUN, '--minutes=0.02', 'mount/life'], {
      encoding: 'utf8',
      timeout: 60_000,
      // Else the runner would take itself for a file of the one that runs this test.
      env: { ...process.env, NODE_TEST_CONTEXT: undefined, MOUNTKEEPER_TEST_PACKAGE: PROJECT },
    });
    assert.equal(changedMs(BUNDLED), before, 'took the daemon away from the run that runs it');
    assert.equal(status, 1);
    assert.match(
      stdout,
      /^# ended after 0\.02 min: what has not run has failed; running: (mount\/life|none)$/m,
    );
    assert.match(stdout, /^# failed: test\/e2e\/mount\/life\.test\.ts/m);
  });

  it('make the run fail when none is meant, or an option is not known', () => {
    for (const [word, sentence] of [
      ['no-such-file', /^no test file has 'no-such-file'/],
      ['--nonsense', /^'--nonsense' is not known here/],
    ] as const) {
      const { status, stderr, stdout } = spawnSync(process.execPath, [RUN, word], {
        encoding: 'utf8',
        timeout: 60_000,
      });
      assert.deepEqual([status, stdout], [1, '']);
      assert.match(stderr, sentence);
    }
  });
});
