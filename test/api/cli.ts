/**
 * A subcommand's surroundings: what it prints is kept, and what it asks for goes to the API or to a script of
 * answers.
 */
import type { CliContext } from '../../core/contract/cli.ts';
import type { Clock } from '../../core/contract/platform.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import { createManualClock } from '../../core/testing/manual-clock.ts';
import { createClock } from '../../core/platform/clock.ts';
import { runShortCommand } from '../../core/platform/processes/short-command.ts';
import pino from 'pino';
import { dryRun } from '../../core/plugins/instance/instance.ts';

export type RequestFunction = CliContext['request'];

export interface CliRun {
  readonly code: number;
  readonly printed: readonly string[];
  readonly errors: readonly string[];
  readonly progress: readonly string[];
  readonly tables: readonly (readonly (readonly string[])[])[];
}

export interface CliOptions {
  readonly request: RequestFunction;
  readonly json?: boolean;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
  readonly config?: CliContext['config'];
}

export async function runCommand(
  plugin: Plugin,
  [name, ...args]: readonly string[],
  options: CliOptions,
): Promise<CliRun> {
  const command = dryRun(plugin, pino({ level: 'silent' })).cli.find((one) => one.name === name);
  if (!command) throw new Error(`plugin ${plugin.name} has no subcommand ${name}`);
  const printed: string[] = [];
  const errors: string[] = [];
  const progress: string[] = [];
  const tables: (readonly (readonly string[])[])[] = [];
  const code = await command.run({
    args,
    json: options.json ?? false,
    signal: options.signal ?? new AbortController().signal,
    isTerminal: false,
    clock: options.clock ?? createManualClock(),
    print: (text) => void printed.push(text),
    printError: (text) => void errors.push(text),
    progress: (text) => void progress.push(text),
    table: (rows) => void tables.push(rows),
    request: options.request,
    configFile: '/nowhere/mountkeeper.toml',
    hasDaemon: () => Promise.resolve(true),
    offline: (name) => Promise.reject(new Error(`no service ${String(name)} in this test`)),
    run: (spec) => runShortCommand(spec, createClock()),
    config: options.config ?? (() => Promise.reject(new Error('no configuration here'))),
  });
  return { code, printed, errors, progress, tables };
}
