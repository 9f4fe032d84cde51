/**
 * The test files, in the order in which they begin, and how much of the machine each takes. Both stand in the
 * files themselves, as directives: lines of their own that begin with `// @`.
 *
 * `// @load quiet`: waits most of its time. `// @load loud`: takes most of a core, or has limits of time that
 * leave little room for others: half of what may run. `// @load alone`: its limits of time are what a user would
 * feel; nothing runs beside it, and it comes last.
 * `// @long`: has a long form as well, for `npm run torture`.
 * `// @start 1`: begins with the first; the lower the number, the earlier. Those that measure outages and
 * kills, since they wait so much, then the longest, so that no long one is left running beside nothing. The
 * rest follows by name.
 */
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { UNIT_FILES } from './unit-files.ts';

const BUILT = fileURLToPath(new URL('..', import.meta.url));
/** The project's folder, with a slash at the end. */
export const PROJECT = fileURLToPath(new URL('../../../', import.meta.url));

/**
 * What may run together. Files wait more than they compute: over a whole run a load of 1 takes four tenths of a
 * core, and half of one where shares are written to (rclone, bindfs and the uploader for each). With three, two cores
 * were idle for half of the time, with 3.5 for a third. `quiet` is for what takes a quarter of a core at most.
 */
export const LOAD_LIMIT = 4;
const LOADS = { quiet: 0.5, normal: 1, loud: LOAD_LIMIT / 2, alone: LOAD_LIMIT } as const;

export interface Directives {
  readonly load: keyof typeof LOADS;
  /** Infinity where none is given. */
  readonly start: number;
  readonly isLong: boolean;
}

export interface TestFile extends Directives {
  /** Below `e2e`, without ending: `mount/life`; `unit/daemon`. */
  readonly name: string;
  /** From the project's folder: `test/e2e/mount/life.test.ts`. */
  readonly source: string;
  /** What is run. */
  readonly built: string;
}

/** Throws a sentence that names the line which is not understood. */
export function directivesOf(text: string): Directives {
  const found = { load: 'normal' as Directives['load'], start: Infinity, isLong: false };
  for (const [line, key, value = ''] of text.matchAll(/^\/\/ ?@(?!ts-)(\S*)[ \t]*(.*)$/gm)) {
    if (key === 'load' && Object.hasOwn(LOADS, value)) found.load = value as Directives['load'];
    else if (key === 'long' && value === '') found.isLong = true;
    else if (key === 'start' && /^[1-9]\d?$/.test(value)) found.start = Number(value);
    else
      throw new Error(
        `'${line}' is no directive; there are: // @load ${Object.keys(LOADS).join('|')}, ` +
          '// @long and // @start 1 … 99',
      );
  }
  return found;
}

/** What a file takes of `LOAD_LIMIT` while it runs. */
export const loadOf = ({ load }: Directives): number => LOADS[load];

/** All of them, in the order in which they begin. */
export async function testFiles(): Promise<readonly TestFile[]> {
  const built = (await readdir(join(BUILT, 'e2e'), { recursive: true }))
    .filter((name) => name.endsWith('.test.js'))
    .map((name) => `e2e/${name}`);
  const units = Object.keys(UNIT_FILES).map((name) => `${name}.js`);
  const files = await Promise.all([...units, ...built].map((path) => testFile(join(BUILT, path))));
  return files.filter((file) => file !== undefined).sort(byStart);
}

/** Undefined of what an earlier build left of a test that is gone. */
async function testFile(built: string): Promise<TestFile | undefined> {
  const source = sourceOf(built);
  if (!existsSync(join(PROJECT, source))) return undefined;
  try {
    const directives = directivesOf(await readFile(join(PROJECT, source), 'utf8'));
    return { name: nameOf(built), source, built, ...directives };
  } catch (error) {
    throw new Error(`${source}: ${(error as Error).message}`, { cause: error });
  }
}

/** What a test file calls itself when it asks for its turn. */
export function nameOf(built: string): string {
  return relative(BUILT, built)
    .replace(/^e2e\//, '')
    .replace(/(\.test)?\.js$/, '');
}

/** From the project's folder. */
export function sourceOf(built: string): string {
  return relative(join(BUILT, '..'), built).replace(/\.js$/, '.ts');
}

function byStart(a: TestFile, b: TestFile): number {
  const [isLastA, isLastB] = [a.load === 'alone', b.load === 'alone'];
  if (isLastA !== isLastB) return isLastA ? 1 : -1;
  if (a.start !== b.start) return a.start - b.start;
  return a.name < b.name ? -1 : 1;
}

/**
 * Those whose path contains one of the words; all without words. Throws a sentence when a word is in no path.
 */
export function selected(files: readonly TestFile[], words: readonly string[]): readonly TestFile[] {
  const unknown = words.filter((word) => !files.some(({ source }) => source.includes(word)));
  if (unknown.length > 0) {
    throw new Error(
      `no test file has ${unknown.map((word) => `'${word}'`).join(' or ')} in its path, so nothing would be tested. ` +
        "Unit tests run all together as 'test/unit'; one of them runs by: node --test dist/test/PATH.test.js",
    );
  }
  return files.filter(({ source }) => words.length === 0 || words.some((word) => source.includes(word)));
}
