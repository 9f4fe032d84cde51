/**
 * What a run of `npm test` has to show besides tests that pass: as many tests as the last full run had, file
 * by file, and of what was left out a reason that holds here. The numbers are in test/expected-count.json;
 * `npm test -- --note-counts` writes them.
 */
import type { TestEvent } from 'node:test/reporters';
import { sourceOf } from './test-files.ts';
import type { TestFile } from './test-files.ts';
import { wrongSkip } from './skips.ts';
import { unitFilesOf } from './unit-files.ts';
import type { Machine } from './skips.ts';

/** Characters of a failure's first line. */
const MOST_OF_ERROR = 300;

/** Tests by the source file that declares them. */
export type Counts = Readonly<Record<string, number>>;

export interface Skip {
  readonly source: string;
  readonly name: string;
  /** `true`: none was given. */
  readonly reason: string | true;
  /** The tests in it were not even counted. */
  readonly isSuite: boolean;
}

export interface Failure {
  readonly source: string;
  readonly name: string;
  /** The first line of it. */
  readonly error: string;
}

type Failed = Extract<TestEvent, { type: 'test:fail' }>['data'];

/** What the runner says of one run of some files. */
export class Tally {
  readonly #failures: Failure[] = [];
  readonly #counts = new Map<string, number>();
  readonly #skips: Skip[] = [];

  /** Takes one event of the runner into account. */
  heard(event: TestEvent): void {
    if (event.type !== 'test:pass' && event.type !== 'test:fail') return;
    if (event.type === 'test:fail') this.#failed(event.data);
    const { file, name, details } = event.data;
    // A file without any test is reported as one, by its path.
    if (file === undefined || (name.endsWith('.js') && file.endsWith(name))) return;
    const [source, isSuite, reason] = [sourceOf(file), details.type === 'suite', reasonOf(event.data)];
    if (!isSuite) this.#counts.set(source, (this.#counts.get(source) ?? 0) + 1);
    if (reason !== undefined) this.#skips.push({ source, name, reason, isSuite });
  }

  #failed(data: Failed): void {
    const { file, name, details } = data;
    // `cause` is whatever the test has thrown.
    const { cause, failureType } = details.error as Error & { readonly failureType?: string };
    const isOther = failureType === 'subtestsFailed';
    if (isOther || reasonOf(data) !== undefined) return;
    const [error = ''] = (cause instanceof Error ? cause : details.error).message.split('\n');
    this.#failures.push({ source: file === undefined ? 'no file' : sourceOf(file), name, error });
  }

  /** Those that did not fail because of another one. */
  get failures(): readonly Failure[] {
    return this.#failures;
  }

  /** Tests that ran, by source file. */
  get counts(): Counts {
    return Object.fromEntries([...this.#counts].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  /** What was left out, with the reason that was given. */
  get skips(): readonly Skip[] {
    return this.#skips;
  }
}

/**
 * Undefined of a test that has run. One that is still to be done may fail without a word: it tests nothing,
 * either.
 */
function reasonOf({
  skip,
  todo,
}: {
  readonly skip?: string | boolean;
  readonly todo?: string | boolean;
}): string | true | undefined {
  const reason = skip ?? todo;
  if (reason === undefined || reason === false) return undefined;
  return reason === '' ? true : reason;
}

/** Of two tries of the same files, the one that came further. */
export function mostOf(...tries: readonly Counts[]): Counts {
  const most: Record<string, number> = {};
  for (const counts of tries)
    for (const [source, count] of Object.entries(counts)) most[source] = Math.max(count, most[source] ?? 0);
  return most;
}

export interface Shown {
  readonly counts: Counts;
  readonly skips: readonly Skip[];
  /** Of this try. */
  readonly failures: readonly Failure[];
  /** Those that were to run. */
  readonly files: readonly Pick<TestFile, 'name' | 'source'>[];
  /** All there are were to run. */
  readonly isWhole: boolean;
  /** Of the last full run. */
  readonly expected: Counts;
  readonly machine: Machine;
}

const isEndToEnd = (source: string): boolean => source.startsWith('test/e2e/');

/** Whether all of the file's tests were among those that were to run, also of a file that is gone. */
function wasToRun(source: string, { files, isWhole }: Pick<Shown, 'files' | 'isWhole'>): boolean {
  if (isWhole) return true;
  if (isEndToEnd(source)) return files.some((file) => file.source === source);
  return unitFilesOf(source).every((name) => files.some((file) => file.name === name));
}

/** The sentences that are a reason to fail. */
export function faultsOf(shown: Shown): readonly string[] {
  const skips = shown.skips.flatMap(({ source, name, reason }) => {
    const wrong = wrongSkip(reason, shown.machine);
    return wrong === undefined ? [] : [`${source}, '${name}': ${wrong}`];
  });
  return [...skips, ...missing(shown)];
}

function missing(shown: Shown): readonly string[] {
  const { counts, expected, files } = shown;
  const empty = files
    .filter(({ source }) => isEndToEnd(source) && counts[source] === undefined && !isExcused(source, shown))
    .map(({ source }) => `${source} has run no test`);
  const fewer = Object.entries(expected).filter(
    ([source, count]) =>
      wasToRun(source, shown) && (counts[source] ?? 0) < count && !isExcused(source, shown),
  );
  const told = fewer.map(
    ([source, count]) => `${source} has run ${counts[source] ?? 0} tests, and ${count} in the last full run`,
  );
  const faults = [...new Set([...empty, ...told])];
  if (faults.length === 0) return [];
  return [
    ...faults,
    'tests that went on purpose are taken back by: npm test -- FILE --note-counts, ' +
      'and a commit of test/expected-count.json',
  ];
}

/** Fewer tests are right where a whole suite needs what is not here. */
function isExcused(source: string, { skips, machine }: Shown): boolean {
  return skips.some(
    (skip) => skip.source === source && skip.isSuite && wrongSkip(skip.reason, machine) === undefined,
  );
}

/** Lines for the end of the run, which say what a reader would not see otherwise. */
export function remarksOf(shown: Shown): readonly string[] {
  const { counts, expected, skips, failures } = shown;
  const failed = failures.map(
    ({ source, name, error }) => `failed: ${source}, '${name}': ${error.slice(0, MOST_OF_ERROR)}`,
  );
  const leftOut = skips.map(
    ({ source, name, reason }) => `left out: ${source}, '${name}': ${reason === true ? 'no reason' : reason}`,
  );
  const more = Object.entries(counts).reduce(
    (sum, [source, count]) => sum + Math.max(0, count - (expected[source] ?? 0)),
    0,
  );
  const noted =
    more === 0
      ? []
      : [`${more} tests more than test/expected-count.json knows; \`npm test -- --note-counts\` notes them`];
  return [...leftOut, ...noted, ...failed];
}

/** What is to be expected from now on. Throws a sentence on a machine where not all tests can run. */
export function noted(shown: Shown): Counts {
  const { counts, expected, machine } = shown;
  if (!machine.isRoot)
    throw new Error('numbers of tests are noted as root alone: elsewhere some of them do not run');
  const kept = Object.entries(expected).filter(([source]) => !wasToRun(source, shown));
  return Object.fromEntries([...kept, ...Object.entries(counts)].sort(([a], [b]) => (a < b ? -1 : 1)));
}

export interface Listener {
  readonly heard: (event: TestEvent) => void;
  readonly close: () => readonly string[];
}

/** The runner's summary begins with the number of tests; whatever else there is to say comes before. */
export async function* withLines(
  source: AsyncIterable<TestEvent>,
  { heard, close }: Listener,
): AsyncGenerator<TestEvent> {
  let isClosed = false;
  for await (const event of source) {
    heard(event);
    if (
      !isClosed &&
      event.type === 'test:diagnostic' &&
      event.data.nesting === 0 &&
      /^tests \d+$/.test(event.data.message)
    ) {
      isClosed = true;
      for (const message of close()) yield { ...event, data: { ...event.data, message } };
    }
    yield event;
  }
}
