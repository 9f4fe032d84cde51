/** `mountkeeper logs`: the last lines of the daemon's log; with -f also the following ones. */
import { parseArgs } from 'node:util';
import { pause } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';

const USAGE = '[-f] [--lines N]';
const POLL_MS = 1_000;
const DEFAULT_LINES = 50;
/** Most lines per poll; the rest comes with the next one. */
const FOLLOW_LINES = 5_000;

interface Options {
  readonly follow: boolean;
  readonly lines: number;
}

interface Page {
  readonly total_lines: number;
  readonly entries: readonly string[];
}

/** Throws a sentence. */
function optionsOf(args: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...args],
    options: { follow: { type: 'boolean', short: 'f' }, lines: { type: 'string', short: 'n' } },
  });
  const lines = values.lines ?? String(DEFAULT_LINES);
  if (!/^\d{1,6}$/.test(lines)) throw new Error('--lines needs a whole number');
  return { follow: values.follow === true, lines: Number(lines) };
}

async function fetchPage(cli: CliContext, lines: number, fromLine: number): Promise<Page> {
  const { status, body } = await cli.request('GET', `/api/logs?lines=${lines}&from_line=${fromLine}`);
  if (status !== 200) throw new Error(`the daemon answered with status ${status}`);
  return JSON.parse(body) as Page;
}

function show(cli: CliContext, page: Page): void {
  for (const line of page.entries) cli.print(cli.json ? JSON.stringify(line) : line);
}

/**
 * The lines after the first `from`. A log that has become shorter was rotated and is shown from its first
 * line.
 */
async function showNext(cli: CliContext, from: number): Promise<number> {
  const page = await fetchPage(cli, FOLLOW_LINES, from);
  const isFresh = from === 0 || page.total_lines < from;
  if (!isFresh) {
    show(cli, page);
    return from + page.entries.length;
  }
  if (page.total_lines === 0) return 0;
  const whole = await fetchPage(cli, page.total_lines, 0);
  show(cli, whole);
  return whole.total_lines;
}

async function run(cli: CliContext): Promise<number> {
  let options: Options;
  try {
    options = optionsOf(cli.args);
  } catch (error) {
    cli.printError(`${(error as Error).message}; usage: mountkeeper logs ${USAGE}`);
    return 64;
  }
  const first = await fetchPage(cli, options.lines, 0);
  show(cli, first);
  if (first.total_lines === 0)
    cli.printError('The log is empty or not kept in a file; log.file in the configuration names it.');
  let from = first.total_lines;
  while (options.follow && !cli.signal.aborted) {
    await pause(cli.clock, POLL_MS, cli.signal);
    if (!cli.signal.aborted)
      from = await showNext(cli, from).catch((error: unknown) => orEnd(cli, from, error));
  }
  return 0;
}

/** Ctrl-C during a request ends following; it is not an error. */
function orEnd(cli: CliContext, from: number, error: unknown): number {
  if (cli.signal.aborted) return from;
  throw error;
}

export const logsCommand: CliCommand = {
  name: 'logs',
  usage: USAGE,
  summary: "Show the daemon's log; -f follows it.",
  run,
};
