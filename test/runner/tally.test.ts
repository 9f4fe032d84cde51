import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { TestEvent } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { PROJECT } from './test-files.ts';
import { SKIPS, wrongSkip } from './skips.ts';
import type { Machine } from './skips.ts';
import { faultsOf, mostOf, noted, remarksOf, Tally, withLines } from './tally.ts';
import { UNIT_FILES } from './unit-files.ts';
import type { Shown, Skip } from './tally.ts';

const BUILT = fileURLToPath(new URL('..', import.meta.url));
const FULL: Machine = {
  isCi: false,
  isRoot: true,
  hasFuse: true,
  hasLoopDevices: true,
  hasIpv6: true,
  hasNetwork: true,
  hasControlGroups: true,
};
const LIFE = 'test/e2e/life.test.ts';
const SHARE = 'test/core/shares/state-machine.test.ts';

const shown = (change: Partial<Shown> = {}): Shown => ({
  counts: { [SHARE]: 4, [LIFE]: 3 },
  skips: [],
  failures: [],
  files: [
    { name: 'unit/daemon', source: 'test/unit/daemon.ts' },
    { name: 'unit/plugins', source: 'test/unit/plugins.ts' },
    { name: 'life', source: LIFE },
  ],
  isWhole: true,
  expected: { [SHARE]: 4, [LIFE]: 3 },
  machine: FULL,
  ...change,
});
const skip = (change: Partial<Skip> = {}): Skip => ({
  source: LIFE,
  name: 'lives',
  reason: SKIPS.blockMap.reason,
  isSuite: false,
  ...change,
});

/** How a test file can leave a test out. */
const LEAVES_OUT = [
  /\{[^{}]*\b(skip|todo):[^{}]*\}, (async )?\(/,
  /\bskip: ['"`]/,
  /\.(skip|todo)\(/,
  /\bonly: true|\b(it|describe)\.only\(/,
];

describe('the number of tests', () => {
  const event = (type: 'test:pass' | 'test:fail', data: object): TestEvent =>
    ({
      type,
      data: {
        name: 'lives',
        file: join(BUILT, 'e2e/life.test.js'),
        nesting: 1,
        testNumber: 1,
        details: { duration_ms: 1 },
        ...data,
      },
    }) as TestEvent;

  it('is that of the tests that were reported, by the file that declares them', () => {
    const tally = new Tally();
    const file = join(BUILT, 'e2e/empty.test.js');
    for (const heard of [
      event('test:pass', {}),
      event('test:fail', { details: { duration_ms: 1, error: new Error('x') } }),
      event('test:pass', { skip: 'x' }),
      event('test:pass', { details: { duration_ms: 1, type: 'suite' } }),
      event('test:pass', { file: join(BUILT, 'core/shares/state-machine.test.js') }),
      event('test:pass', { file, name: file }),
      event('test:pass', { file, name: 'dist/test/e2e/empty.test.js' }),
    ])
      tally.heard(heard);
    assert.deepEqual(tally.counts, { [SHARE]: 1, [LIFE]: 3 });
    assert.deepEqual(tally.skips, [{ source: LIFE, name: 'lives', reason: 'x', isSuite: false }]);
  });

  it('is a fault when it falls in a file, or a file is gone, with a word about how that is meant', () => {
    assert.deepEqual(faultsOf(shown()), []);
    assert.deepEqual(faultsOf(shown({ counts: { [SHARE]: 5, [LIFE]: 3, 'test/core/new.test.ts': 1 } })), []);
    const fewer = faultsOf(shown({ counts: { [SHARE]: 3, [LIFE]: 3 } }));
    assert.match(
      fewer.join('\n'),
      /^test\/core\/shares\/state-machine\.test\.ts has run 3 tests, and 4 in the last full run\n.*--note-counts/,
    );
    assert.match(faultsOf(shown({ counts: { [LIFE]: 3 } })).join('\n'), /has run 0 tests, and 4/);
    assert.match(faultsOf(shown({ files: [], counts: {} })).join('\n'), /share.*\n.*life/);
  });

  it('is compared for the files that were to run, whichever they were', () => {
    const life = [{ name: 'life', source: LIFE }];
    assert.deepEqual(faultsOf(shown({ isWhole: false, files: life, counts: { [LIFE]: 3 } })), []);
    assert.equal(faultsOf(shown({ isWhole: false, files: life, counts: { [LIFE]: 2 } })).length, 2);
    const unit = [{ name: 'unit/daemon', source: 'test/unit/daemon.ts' }];
    assert.deepEqual(faultsOf(shown({ isWhole: false, files: unit, counts: { [SHARE]: 4 } })), []);
    assert.equal(faultsOf(shown({ isWhole: false, files: unit, counts: {} })).length, 2);
    const plugins = [{ name: 'unit/plugins', source: 'test/unit/plugins.ts' }];
    assert.deepEqual(faultsOf(shown({ isWhole: false, files: plugins, counts: {} })), []);
    const expected = { 'core/testing/contract-suite.ts': 9 };
    assert.deepEqual(faultsOf(shown({ isWhole: false, files: plugins, counts: {}, expected })), []);
    const all = Object.keys(UNIT_FILES).map((name) => ({ name, source: `test/${name}.ts` }));
    assert.equal(faultsOf(shown({ isWhole: false, files: all, counts: {}, expected })).length, 2);
  });

  it('is never none in a file, also in one that is new', () => {
    const files = [{ name: 'new', source: 'test/e2e/new.test.ts' }];
    assert.match(
      faultsOf(shown({ isWhole: false, files, counts: {} })).join('\n'),
      /new\.test\.ts has run no test/,
    );
  });

  it('may be lower where a suite could not run, for a reason that holds here', () => {
    const counts = { [SHARE]: 4, [LIFE]: 1 };
    const user = { ...FULL, isRoot: false };
    const suite = skip({ reason: SKIPS.root.reason, isSuite: true });
    assert.deepEqual(faultsOf(shown({ counts, skips: [suite], machine: user })), []);
    assert.notDeepEqual(
      faultsOf(shown({ counts, skips: [{ ...suite, isSuite: false }], machine: user })),
      [],
    );
    assert.notDeepEqual(faultsOf(shown({ counts, skips: [suite] })), []);
  });

  it('is noted for the files that were to run, and only where all tests can run', () => {
    const expected = { [SHARE]: 4, [LIFE]: 3, 'test/core/gone.test.ts': 1, 'test/e2e/other.test.ts': 2 };
    assert.deepEqual(noted(shown({ expected, counts: { [SHARE]: 5, [LIFE]: 1 } })), {
      [SHARE]: 5,
      [LIFE]: 1,
    });
    const part = shown({
      expected,
      isWhole: false,
      files: [{ name: 'life', source: LIFE }],
      counts: { [LIFE]: 1 },
    });
    assert.deepEqual(noted(part), { ...expected, [LIFE]: 1 });
    assert.throws(() => noted(shown({ machine: { ...FULL, isRoot: false } })), /noted as root/);
  });

  it('counts of two tries the one that came further, and says how many are new', () => {
    assert.deepEqual(mostOf({ a: 1, b: 2 }, { a: 3, c: 1 }), { a: 3, b: 2, c: 1 });
    assert.match(
      remarksOf(shown({ counts: { [SHARE]: 6, [LIFE]: 1, new: 3 } })).join(),
      /^5 tests more than/,
    );
    assert.deepEqual(remarksOf(shown()), []);
  });
});

describe('a test that fails', () => {
  it('is named at the end with its file and the first line of its error, and no suite because of it', () => {
    const tally = new Tally();
    const file = join(BUILT, 'e2e/life.test.js');
    const failed = (name: string, failureType: string, message: string): TestEvent =>
      ({
        type: 'test:fail',
        data: {
          name,
          file,
          nesting: 0,
          testNumber: 1,
          details: {
            duration_ms: 1,
            error: Object.assign(new Error('x', { cause: new Error(message) }), { failureType }),
          },
        },
      }) as TestEvent;
    tally.heard(failed('lives', 'testCodeFailure', 'is dead\nor so'));
    tally.heard(failed('life', 'subtestsFailed', '1 subtest failed'));
    assert.deepEqual(remarksOf(shown({ failures: tally.failures })), [`failed: ${LIFE}, 'lives': is dead`]);
  });
});

describe('a test that is left out', () => {
  it('is named at the end with its reason', () => {
    assert.deepEqual(remarksOf(shown({ skips: [skip()] })), [
      `left out: ${LIFE}, 'lives': ${SKIPS.blockMap.reason}`,
    ]);
  });

  it('needs a reason, one that is in the list', () => {
    assert.deepEqual(faultsOf(shown({ skips: [skip()] })), []);
    assert.match(
      faultsOf(shown({ skips: [skip({ reason: true })] })).join(),
      /life\.test\.ts, 'lives': it was left out without a reason/,
    );
    assert.match(
      faultsOf(shown({ skips: [skip({ reason: 'flaky' })] })).join(),
      /not in test\/runner\/skips\.ts: 'flaky'/,
    );
  });

  it('is a fault where what it lacks has to be there: in continuous integration, and for root', () => {
    const allowed = (name: keyof typeof SKIPS, machine: Partial<Machine>): boolean =>
      wrongSkip(SKIPS[name].reason, { ...FULL, ...machine }) === undefined;
    const table = [
      allowed('root', {}),
      allowed('root', { isRoot: false }),
      allowed('root', { isRoot: false, isCi: true }),
      allowed('hangingMount', {}),
      allowed('hangingMount', { hasFuse: false }),
      allowed('hangingMount', { hasFuse: false, isCi: true }),
      allowed('loopDevice', { isCi: true }),
      allowed('loopDevice', {}),
      allowed('loopDevice', { isCi: true, hasLoopDevices: false }),
      allowed('network', {}),
      allowed('network', { hasNetwork: false }),
      allowed('chromium', {}),
      allowed('chromium', { isRoot: false }),
      allowed('ipv6', {}),
      allowed('ipv6', { hasIpv6: false }),
      allowed('ipv6', { hasIpv6: false, isCi: true }),
    ];
    assert.deepEqual(table, [
      false,
      true,
      false,
      false,
      true,
      false,
      false,
      true,
      true,
      false,
      true,
      false,
      true,
      false,
      true,
      true,
    ]);
    assert.match(
      wrongSkip('needs root', { ...FULL, isCi: true }) ?? '',
      /'needs root', which has to be there in continuous integration/,
    );
  });

  it('takes its reason from the list, in every test', () => {
    const sources = readdirSync(join(PROJECT, 'test'), { recursive: true, encoding: 'utf8' }).filter(
      (name) => name.endsWith('.test.ts') && name !== 'runner/tally.test.ts',
    );
    const own = sources.flatMap((name) =>
      readFileSync(join(PROJECT, 'test', name), 'utf8')
        .split('\n')
        .filter(
          (line) =>
            LEAVES_OUT.some((pattern) => pattern.test(line)) &&
            !/unless(Root|ControlGroups)\b|SKIPS\.\w+\.reason/.test(line),
        )
        .map((line) => `${name}: ${line.trim()}`),
    );
    assert.deepEqual(own, []);
  });
});

describe('the end of a run', () => {
  it("has what else there is to say before the runner's own last lines, once", async () => {
    const diagnostic = (message: string, nesting = 0): TestEvent =>
      ({ type: 'test:diagnostic', data: { message, nesting } }) as TestEvent;
    const events = [
      diagnostic('tests 1', 1),
      diagnostic('a note'),
      diagnostic('tests 28'),
      diagnostic('pass 28'),
      diagnostic('tests 3'),
    ];
    const heard: TestEvent[] = [];
    const told: string[] = [];
    const listener = {
      heard: (event: TestEvent) => void heard.push(event),
      close: () => [`closed after ${heard.length}`, 'second'],
    };
    for await (const event of withLines(
      (async function* () {
        yield* events;
      })(),
      listener,
    ))
      told.push((event.data as { message: string }).message);
    assert.deepEqual(told, [
      'tests 1',
      'a note',
      'closed after 3',
      'second',
      'tests 28',
      'pass 28',
      'tests 3',
    ]);
    assert.equal(heard.length, events.length);
  });
});
