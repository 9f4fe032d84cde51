/**
 * The house's rules, kept by a machine: the linter over the tree, and over a fixture of each fault that it
 * must find.
 */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { unexplainedCatches } from '../support/regexp/swallowed-errors.ts';

const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));
const OXLINT = join(PROJECT, 'node_modules/.bin/oxlint');
const ROOMS = ['core', 'plugins', 'test', 'config'];

async function lint(folder: string): Promise<{ code: number | null; report: string }> {
  const child = spawn(
    OXLINT,
    ['--type-aware', '-c', '.ci/oxlint.json', '--no-ignore', '-f', 'unix', ...ROOMS],
    { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] },
  );
  let report = '';
  child.stdout.on('data', (piece: Buffer) => (report += piece.toString()));
  child.stderr.on('data', (piece: Buffer) => (report += piece.toString()));
  await once(child, 'close');
  return { code: child.exitCode, report };
}

const branches = (count: number): string =>
  Array.from({ length: count }, (_, index) => `  if (value === ${index}) return ${index};`).join('\n');

/** Path of a faulty file → its text and the rule that must name it. */
const FAULTS: Readonly<Record<string, { text: string; rule: string }>> = {
  'core/many-parameters.ts': {
    text:
      'export function five(a: number, b: number, c: number, d: number, e: number): ' +
      'number {\n  return a + b + c + d + e;\n}',
    rule: 'max-params',
  },
  'core/deep.ts': {
    text:
      'export function deep(a: boolean): number {\n' +
      '  if (a) { for (;;) { while (a) { if (a) { return 1; } } } }\n  return 0;\n}',
    rule: 'max-depth',
  },
  'core/branches.ts': {
    text: `export function pick(value: number): number {\n${branches(11)}\n  return -1;\n}`,
    rule: 'complexity',
  },
  'core/wall-clock.ts': {
    text: 'export const now = (): number => Date.now();',
    rule: 'no-restricted-properties',
  },
  'core/own-timer.ts': { text: 'setTimeout(() => undefined, 1);\nexport {};', rule: 'no-restricted-globals' },
  'core/timer-import.ts': {
    text: "import { setTimeout as sleep } from 'node:timers/promises';\nexport const wait = sleep;",
    rule: 'no-restricted-imports',
  },
  'core/knows-a-test.ts': {
    text: "import { value } from '../test/value.ts';\nexport const copy = value;",
    rule: 'no-restricted-imports',
  },
  'core/forgotten-promise.ts': {
    text:
      'async function work(): Promise<void> { await Promise.resolve(); }\n' +
      'export function start(): void { work(); }',
    rule: 'no-floating-promises',
  },
};
const FAULTLESS: Readonly<Record<string, string>> = {
  'core/value.ts': 'export const value = 1;',
  'core/platform/clock.ts': 'export const now = (): number => Date.now();\nsetTimeout(() => undefined, 1);',
  'plugins/some/value.ts': "import { value as own } from './own.ts';\nexport const value = own;",
  'plugins/some/own.ts': 'export const own = 1;',
  'plugins/some/room/stays.ts': "import { own } from '../own.ts';\nexport const value = own;",
  'plugins/other/value.ts': 'export const value = 1;',
  'test/value.ts': 'export const value = 1;',
  'test/value.test.ts': "import { describe } from 'node:test';\ndescribe('x', () => undefined);",
  'config/value.ts': 'export const value = 1;',
};

describe('the linter', () => {
  let fixture = '';
  let found: { code: number | null; report: string };

  before(async () => {
    fixture = mkdtempSync(join(tmpdir(), 'mk-guards-'));
    symlinkSync(join(PROJECT, 'node_modules'), join(fixture, 'node_modules'));
    cpSync(join(PROJECT, '.ci/oxlint.json'), join(fixture, '.ci/oxlint.json'));
    writeFileSync(
      join(fixture, 'tsconfig.json'),
      JSON.stringify({
        compilerOptions: {
          strict: true,
          module: 'nodenext',
          allowImportingTsExtensions: true,
          noEmit: true,
          types: ['node'],
        },
        include: ['**/*.ts'],
        exclude: ['node_modules'],
      }),
    );
    const texts = {
      ...FAULTLESS,
      ...Object.fromEntries(Object.entries(FAULTS).map(([path, fault]) => [path, fault.text])),
    };
    for (const [path, text] of Object.entries(texts)) {
      mkdirSync(dirname(join(fixture, path)), { recursive: true });
      writeFileSync(join(fixture, path), text);
    }
    found = await lint(fixture);
  });
  after(() => rmSync(fixture, { recursive: true, force: true }));

  for (const [path, fault] of Object.entries(FAULTS)) {
    it(`finds ${fault.rule} in ${path}`, () => {
      const lines = found.report.split('\n').filter((line) => line.startsWith(path));
      assert.ok(
        lines.some((line) => line.includes(`(${fault.rule})`)),
        `${path}: ${lines.join('\n') || found.report}`,
      );
    });
  }

  it('says nothing about files without a fault', () => {
    const lines = found.report
      .split('\n')
      .filter((line) => Object.keys(FAULTLESS).some((path) => line.startsWith(`${path}:`)));
    assert.deepEqual(lines, []);
  });

  it('ends with an error when there is a fault', () => assert.notEqual(found.code, 0));

  it('finds nothing in the project', async () => {
    const { code, report } = await lint(PROJECT);
    assert.equal(code, 0, report);
  });
});

const VAGUE = /(^|[/-])(utils?|helpers?|common|misc|manager)([.-]|$)/;
const NAMED = /^(?:[a-z0-9]+(?:-[a-z0-9]+)*)(?:\.(?:test|d))?\.ts$/;

function misnamed(paths: readonly string[]): string[] {
  return paths.filter(
    (path) => path.endsWith('.ts') && (VAGUE.test(path) || !NAMED.test(path.split('/').at(-1) ?? '')),
  );
}

/** Errors that are swallowed with a reason, and in the lines 4, 12 and 15 without. */
const SWALLOWING = `
try {
  parse();
} catch {
  tell();
}
try {
  parse();
} catch {
  // Not JSON.
}
await rm(file).catch(() => undefined);
await rm(file).catch(() => undefined); // Gone already.
const found = [
  await stat(file).catch(() => undefined),
];
// Gone already.
await files
  .remove(
    file,
  )
  .catch(() => undefined);
await readFile(file).catch(undefinedWhenMissing);
`;

/** Names of a registry's host or a folder of somebody's machine, wherever it stands. */
const FOREIGN = new RegExp(
  ['https?://(registry|deb|security|pypi|proxy)\\.[a-z]+', '(^|[^a-z.])/(work|farm|home/[a-z]+)/'].join('|'),
);

/** Numbers of lines, from 1. Neither an address nor a pattern that stands alone has a place to break at. */
function longLines(text: string): readonly number[] {
  return text
    .split('\n')
    .flatMap((line, index) => (line.length > 120 && !/https?:\/\//.test(line) ? [index + 1] : []));
}

/** Texts between backticks are other programs. */
function withoutTemplates(text: string): string {
  return text.replace(/`[^`]*`/g, '``');
}

/** Paths of sources in these rooms, from the project's folder. */
function sourcesIn(...rooms: readonly string[]): string[] {
  return rooms.flatMap((room) =>
    readdirSync(join(PROJECT, room), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(?:ts|js|mjs)$/.test(name))
      .map((name) => `${room}/${name}`),
  );
}

describe('the tree', () => {
  it('has no line of its programs over 120 columns', () => {
    assert.deepEqual(
      longLines(`${'a'.repeat(121)}\n${'a'.repeat(120)}\n// https://x.org/${'a'.repeat(120)}`),
      [1],
    );
    const found = sourcesIn(...ROOMS).flatMap((path) =>
      longLines(readFileSync(join(PROJECT, path), 'utf8')).map((line) => `${path}:${line}`),
    );
    assert.deepEqual(found, []);
  });

  it('says of every error that it swallows why it may', () => {
    assert.deepEqual(unexplainedCatches(SWALLOWING), [4, 12, 15]);
    const found = sourcesIn('core', 'plugins').flatMap((path) =>
      unexplainedCatches(readFileSync(join(PROJECT, path), 'utf8')).map((line) => `${path}:${line}`),
    );
    assert.deepEqual(found, [], 'say why in a comment, or use undefinedWhenMissing or logIgnored');
  });

  it('has no hook outside a suite: unit tests share a process, so all would run it', () => {
    const outside = /^(?:before|after)(?:Each)?\(/m;
    assert.match('\nafterEach(() => api.close());', outside);
    const found = sourcesIn('test').filter(
      (path) =>
        path.endsWith('.test.ts') &&
        outside.test(withoutTemplates(readFileSync(join(PROJECT, path), 'utf8'))),
    );
    assert.deepEqual(found, []);
  });

  it('has kebab-case file names that say something', () => {
    assert.deepEqual(
      misnamed([
        'core/stringUtils.ts',
        'core/path-helpers.ts',
        'plugins/a/utils.ts',
        'core/Share.ts',
        'core/shares/state-machine.ts',
        'test/a-b.test.ts',
      ]),
      ['core/stringUtils.ts', 'core/path-helpers.ts', 'plugins/a/utils.ts', 'core/Share.ts'],
    );
    const files = ROOMS.flatMap((room) =>
      readdirSync(join(PROJECT, room), { recursive: true, encoding: 'utf8' }).map(
        (name) => `${room}/${name}`,
      ),
    );
    assert.deepEqual(misnamed(files), []);
  });

  it("names no package registry and no folder of a developer's machine", () => {
    assert.match(`see https://${'deb'}.example.org/x`, FOREIGN);
    assert.match(`in /${'work'}/main`, FOREIGN);
    // Without git, which a machine that only runs the tests may lack: all but what is left out of the
    // repository.
    const ignored = [
      '.git',
      ...readFileSync(join(PROJECT, '.gitignore'), 'utf8')
        .split('\n')
        .map((line) => line.replace(/\/$/, '')),
    ];
    const tops = readdirSync(PROJECT).filter((name) => !ignored.includes(name));
    const without = ['package-lock.json', 'lint.test.ts', '*.tsbuildinfo'].map((name) => `--exclude=${name}`);
    const { status, stdout } = spawnSync('grep', ['-rnIE', ...without, '-e', FOREIGN.source, '--', ...tops], {
      cwd: PROJECT,
      encoding: 'utf8',
    });
    assert.deepEqual([stdout, status], ['', 1], 'grep has found nothing, and has looked');
  });
});
