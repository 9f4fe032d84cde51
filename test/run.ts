/**
 * `npm test`: all unit tests in three processes and each end-to-end file in its own, some at a time, under one
 * test runner whose closing lines are the last ones. A file that fails runs once more, alone
 * (test/runner/second-try.ts). Before those lines stands what was left out, and what else is wrong with the
 * run (test/runner/tally.ts).
 * Afterwards nothing of ours may run, be mounted or lie about: else the run fails.
 */
import { setMaxListeners } from 'node:events';
import { mkdtemp, readdir, readFile, realpath, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { run } from 'node:test';
import { spec, tap } from 'node:test/reporters';
import type { TestEvent } from 'node:test/reporters';
import { fileURLToPath } from 'node:url';
import { LOAD_LIMIT, loadOf, PROJECT, selected, testFiles } from './runner/test-files.ts';
import type { TestFile } from './runner/test-files.ts';
import { layOutBundle } from './runner/bundled.ts';
import { currentRclone } from './support/nas/rclone-binaries.ts';
import { removeControlGroups } from './support/package/systemd-machine.ts';
import { sweep } from './support/platform/scratch-folder.ts';
import { thisMachine } from './runner/skips.ts';
import { faultsOf, mostOf, noted, remarksOf, Tally, withLines } from './runner/tally.ts';
import type { Counts, Shown, Skip } from './runner/tally.ts';
import { filesToRun, inTwoTries } from './runner/second-try.ts';
import type { Outcome } from './runner/second-try.ts';
import { LoadSlots } from './runner/load-slots.ts';
import { MOST_WAITING, waitingForProcessor } from './runner/processor-pressure.ts';

const BUILT = fileURLToPath(new URL('.', import.meta.url));
const EXPECTED = join(PROJECT, 'test/expected-count.json');
const NOTE_COUNTS = '--note-counts';
/** `--minutes=5`: what has not passed by then has failed. Without it, `RUN_LIMIT_MIN`. */
const MINUTES = /^--minutes=(\d+(?:\.\d+)?)$/;
/**
 * Of the whole run, both tries together. A run that is ended from outside says nothing of what it has found;
 * one that ends itself names what failed and what was running.
 */
const RUN_LIMIT_MIN = 86;
/**
 * Counts from the start of the process, so the wait for its slot is in it. Each has a tighter limit from its
 * slot on, and says what it waited for (test/runner/still-running.ts); this one ends what is stuck in a loop.
 */
const FILE_TIMEOUT_MS = 25 * 60_000;
/** Processes: some wait for their turn. */
const AT_ONCE = 7;

interface Order {
  readonly files: readonly TestFile[];
  readonly isWhole: boolean;
  /** The numbers of tests are written down instead of being compared. */
  readonly isNoting: boolean;
  readonly limitMin: number;
  readonly expected: Counts;
}

async function ordered(words: readonly string[]): Promise<Order> {
  const options = words.filter((word) => word.startsWith('-'));
  const unknown = options.find((word) => word !== NOTE_COUNTS && !MINUTES.test(word));
  if (unknown !== undefined)
    throw new Error(`'${unknown}' is not known here; there are ${NOTE_COUNTS} and --minutes=MINUTES`);
  const [all, parts] = [await testFiles(), words.filter((word) => !options.includes(word))];
  const minutes = options.map((word) => MINUTES.exec(word)?.[1]).find((found) => found !== undefined);
  const files = selected(all, parts);
  const expected = JSON.parse(await readFile(EXPECTED, 'utf8')) as Counts;
  return {
    files,
    isWhole: files.length === all.length,
    isNoting: words.includes(NOTE_COUNTS),
    limitMin: minutes === undefined ? RUN_LIMIT_MIN : Number(minutes),
    expected,
  };
}

/** What is known of the run so far, over both tries. */
class Verdict {
  readonly #order: Order;
  readonly #machine = thisMachine();
  #counts: Counts = {};
  readonly #skips = new Map<string, Skip>();
  #tally = new Tally();
  #faults: readonly string[] = [];

  constructor(order: Order) {
    this.#order = order;
  }

  heard(event: TestEvent): void {
    this.#tally.heard(event);
  }

  /**
   * A try is over: the lines that stand before the runner's own last ones. What has failed, or was cut short,
   * lacks tests anyway.
   */
  close(isPassed: boolean): readonly string[] {
    this.#counts = mostOf(this.#counts, this.#tally.counts);
    for (const skip of this.#tally.skips) this.#skips.set(`${skip.source} ${skip.name}`, skip);
    const { failures } = this.#tally;
    this.#tally = new Tally();
    const shown = { ...this.#shown(), failures };
    this.#faults = isPassed ? faultsOf(this.#order.isNoting ? { ...shown, expected: {} } : shown) : [];
    return [...remarksOf(shown), ...this.#faults.map((fault) => `NOT OK: ${fault}`)];
  }

  /** Of the last try: it knows all that the first has counted. */
  get isGood(): boolean {
    return this.#faults.length === 0;
  }

  async note(): Promise<void> {
    if (this.#order.isNoting) await writeFile(EXPECTED, `${JSON.stringify(noted(this.#shown()), null, 2)}\n`);
  }

  #shown(): Shown {
    const { files, isWhole, expected } = this.#order;
    return {
      counts: this.#counts,
      skips: [...this.#skips.values()],
      failures: this.#tally.failures,
      files,
      isWhole,
      expected,
      machine: this.#machine,
    };
  }
}

interface Runner {
  /** With the given files, some at a time. */
  readonly run: (files: readonly string[], concurrency: number) => Promise<Outcome>;
  readonly close: () => Promise<void>;
}

async function runner(root: string, { files: all, limitMin }: Order, verdict: Verdict): Promise<Runner> {
  const loads = new Map(all.map((file) => [file.name, loadOf(file)]));
  const slots = await LoadSlots.open(join(root, 'slots.sock'), {
    limit: LOAD_LIMIT,
    load: (name) => loads.get(name) ?? 1,
    isCrowded: () => waitingForProcessor() > MOST_WAITING,
  });
  const ending = new AbortController();
  // Each process of a run listens to it.
  setMaxListeners(0, ending.signal);
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => ending.abort());
  const limit = setTimeout(() => {
    const names = slots.names.join(', ');
    console.log(`# ended after ${limitMin} min: what has not run has failed; running: ${names || 'none'}`);
    ending.abort();
  }, limitMin * 60_000);
  // Every scratch folder of this run lies in one folder, which must be empty again at the end.
  const preload = `--import=${join(BUILT, 'runner/wait-for-slot.js')}`;
  Object.assign(process.env, {
    TMPDIR: root,
    MOUNTKEEPER_TEST_SLOTS: join(root, 'slots.sock'),
    NODE_OPTIONS: preload,
  });
  process.chdir(PROJECT);
  return {
    async close() {
      clearTimeout(limit);
      await slots.close();
    },
    async run(files, concurrency) {
      const failed = new Set<string>();
      const events = run({ files: [...files], concurrency, timeout: FILE_TIMEOUT_MS, signal: ending.signal });
      events.on('test:fail', ({ todo, skip, file }) => {
        if (todo !== undefined || skip !== undefined) return;
        for (const one of filesToRun(file, files)) failed.add(one);
      });
      const told = Readable.from(
        withLines(events as AsyncIterable<TestEvent>, {
          heard: (event) => verdict.heard(event),
          close: () => verdict.close(failed.size === 0 && !ending.signal.aborted),
        }),
      );
      const report = process.stdout.isTTY ? told.compose(new spec()) : told.compose(tap);
      report.pipe(process.stdout, { end: false });
      await finished(report);
      return { failed: [...failed], isCutShort: ending.signal.aborted };
    },
  };
}

/** True when all passed. */
async function runFiles(order: Order, root: string): Promise<boolean> {
  const verdict = new Verdict(order);
  const { run: runThem, close } = await runner(root, order, verdict);
  try {
    const isPassed = await inTwoTries({
      first: () =>
        runThem(
          order.files.map(({ built }) => built),
          AT_ONCE,
        ),
      alone: (again) => runThem(again, 1),
      say: (line) => console.log(line),
    });
    if (isPassed && verdict.isGood) await verdict.note();
    return isPassed && verdict.isGood;
  } finally {
    await close();
  }
}

async function main(): Promise<number> {
  process.env['MOUNTKEEPER_RCLONE'] = currentRclone();
  const order = await ordered(process.argv.slice(2)).catch((error: unknown) =>
    console.error((error as Error).message),
  );
  if (!order) return 1;
  // A run within a run (test/runner/test-files.test.ts) must not take it away from the daemons of the outer one.
  process.env['MOUNTKEEPER_TEST_PACKAGE'] ??= await layOutBundle();
  const root = await realpath(await mkdtemp(join(tmpdir(), 'mountkeeper-test-')));
  // For tests that need no disk; none where the machine has no such folder.
  const inMemory = await mkdtemp('/dev/shm/mountkeeper-test-').catch(() => undefined);
  if (inMemory !== undefined) process.env['MOUNTKEEPER_TEST_MEMORY'] = inMemory;
  const isGood = await runFiles(order, root);
  const left: string[] = [];
  for (const folder of inMemory === undefined ? [root] : [root, inMemory]) {
    left.push(...(await readdir(folder)).map((name) => `folder ${join(folder, name)}`));
    left.push(...(await sweep(folder)));
  }
  if (inMemory !== undefined) await removeControlGroups(inMemory);
  if (left.length === 0) return isGood ? 0 : 1;
  console.error(`the tests left behind (cleared now):\n${left.map((one) => `  ${one}`).join('\n')}`);
  return 1;
}

process.exitCode = await main();
