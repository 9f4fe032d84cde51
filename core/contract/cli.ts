/** The contract's part about the command line: subcommands that a plugin brings. */
import type { Clock } from './platform.ts';

/**
 * What a command-line subcommand gets. Plain `fetch`-like access to the daemon; never the daemon's own
 * objects.
 */
export interface CliContext {
  /** Arguments after the subcommand, options already known to the core taken out. */
  readonly args: readonly string[];
  readonly json: boolean;
  readonly signal: AbortSignal;
  /** True when standard output is a terminal: progress may be redrawn in place. */
  readonly isTerminal: boolean;
  readonly clock: Clock;
  print(text: string): void;
  printError(text: string): void;
  /**
   * Rewrites the last progress line on a terminal; prints a line per call elsewhere, at most one a second.
   */
  progress(text: string): void;
  /** Columns aligned, first row the header. */
  table(rows: readonly (readonly string[])[]): void;
  /** Rejects with a plain sentence when the daemon cannot be reached or refuses the password. */
  request(
    method: 'GET' | 'POST',
    path: string,
    body?: unknown,
  ): Promise<{ readonly status: number; readonly body: string }>;
}

export interface CliCommand {
  readonly name: string;
  /** Arguments as shown in the usage line: `SHARE`, `[--lines N]`. */
  readonly usage: string;
  readonly summary: string;
  /** Resolves with the exit code: 0, 1, 64 usage, 75 time ran out, 78 configuration. */
  run(cli: CliContext): Promise<number>;
}
