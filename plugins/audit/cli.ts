/** `mountkeeper audit`: the record of changes, read from its files, so that it can be read without a daemon as well. */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { durationMs, escapeUnprintable, undefinedWhenMissing } from 'mountkeeper';
import type { CliCommand, CliContext } from 'mountkeeper';
import { recordFiles } from './record.ts';

const USAGE = '[--since 2h | --since 2026-01-31]';
const FIRST = ['method', 'route', 'path', 'status'] as const;
const OWN = new Set(['time', 'event', 'who', 'from', 'changes', ...FIRST]);

interface Line extends Readonly<Record<string, unknown>> {
  readonly time: string;
  readonly event: string;
  readonly who?: { readonly name: string; readonly role?: string };
  readonly from?: { readonly address?: string; readonly users?: readonly number[] };
  readonly changes?: readonly string[];
}

/** Milliseconds since the epoch: a length of time before now, or a time. Throws a sentence. */
function sinceOf(cli: CliContext): number {
  const { values } = parseArgs({ args: [...cli.args], options: { since: { type: 'string' } } });
  const { since } = values;
  if (since === undefined) return 0;
  if (!/^\d{4}-/.test(since)) return cli.clock.now() - durationMs(since);
  const at = Date.parse(since);
  if (Number.isNaN(at)) throw new Error(`"${since}" is neither a time nor a length of time`);
  return at;
}

/** Undefined for what is no line of the record, such as one that was broken off. */
function lineIn(text: string): Line | undefined {
  try {
    const line = JSON.parse(text) as Partial<Line> | null;
    return typeof line?.time === 'string' && typeof line.event === 'string' ? (line as Line) : undefined;
  } catch {
    // Not whole: the next line is.
    return undefined;
  }
}

async function* linesSince(folder: string, since: number): AsyncGenerator<Line> {
  for (const file of await recordFiles(folder)) {
    // Just renamed: a new one is there with the next line.
    const handle = await open(file).catch(undefinedWhenMissing);
    for await (const text of handle?.readLines() ?? []) {
      const line = lineIn(text);
      if (line && Date.parse(line.time) >= since) yield line;
    }
  }
}

/** For people. What strangers sent stays within its line. */
function shown(line: Line): string {
  const { time, event, who, from, changes = [] } = line;
  const parts = [time, event, who && personOf(who), from && placeOf(from), ...FIRST.map((key) => line[key])];
  const rest = Object.entries(line)
    .filter(([key]) => !OWN.has(key))
    .map(([key, value]) => `${key}=${JSON.stringify(value)}`);
  const head = [...parts, ...rest].filter((part) => part !== undefined).map(String);
  return [head.join(' '), ...changes.map((change) => `    ${change}`)].map(escapeUnprintable).join('\n');
}

function personOf({ name, role }: NonNullable<Line['who']>): string {
  return role === undefined ? name : `${name} (${role})`;
}

function placeOf({ address }: NonNullable<Line['from']>): string {
  return address ?? 'command-socket';
}

async function run(cli: CliContext): Promise<number> {
  let since: number;
  try {
    since = sinceOf(cli);
  } catch (error) {
    cli.printError(`${(error as Error).message}; usage: mountkeeper audit ${USAGE}`);
    return 64;
  }
  const folder = join((await cli.config()).supervisor.state_dir, 'audit');
  try {
    for await (const line of linesSince(folder, since))
      cli.print(cli.json ? escapeUnprintable(JSON.stringify(line)) : shown(line));
    return 0;
  } catch (error) {
    cli.printError(problem(error as NodeJS.ErrnoException, folder));
    return 1;
  }
}

function problem({ code, message }: NodeJS.ErrnoException, folder: string): string {
  if (code === 'ENOENT') return `There is no record of changes in ${folder} yet.`;
  if (code === 'EACCES') return `The record of changes in ${folder} is for root and the daemon's user alone.`;
  return `The record of changes cannot be read: ${message}`;
}

export const auditCommand: CliCommand = {
  name: 'audit',
  usage: USAGE,
  summary: 'Show who changed what, and who was refused.',
  run,
};
