/** Contract of the command line: subcommands that a plugin adds. */
import type { Config } from './config.ts';
import type { Clock, ShortCommand, ShortCommandResult } from './platform.ts';
import type { Services } from './services.ts';

/** What a subcommand gets. It talks to the daemon over HTTP and never sees the daemon's own objects. */
export interface CliContext {
  /** Arguments after the subcommand, without the options that the core itself knows. */
  readonly args: readonly string[];
  readonly json: boolean;
  readonly signal: AbortSignal;
  /** True when standard output is a terminal: progress may be redrawn in place. */
  readonly isTerminal: boolean;
  readonly clock: Clock;
  print(text: string): void;
  printError(text: string): void;
  /**
   * Rewrites the last progress line on a terminal; prints a line elsewhere when it has changed, at most one a
   * second.
   */
  progress(text: string): void;
  /** Prints the rows with aligned columns; the first row is the header. */
  table(rows: readonly (readonly string[])[]): void;
  /**
   * The configuration file, checked and completed; without the file, the defaults. Rejects with a sentence
   * where it is not valid.
   */
  config(): Promise<Config>;
  /** Runs a short command to its end. Rejects where it cannot be started, and at the deadline. */
  run(spec: ShortCommand): Promise<ShortCommandResult>;
  /**
   * Rejects with a plain sentence when the daemon cannot be reached or refuses the password. `isPrivate`: goes
   * over the daemon's socket, or to an address that the user has named, and nowhere else; for what holds
   * passwords. On the usual address, which others are asked at who may not open the socket, any local user
   * could listen.
   */
  request(
    method: 'GET' | 'POST',
    path: string,
    body?: unknown,
    options?: { readonly isPrivate?: boolean },
  ): Promise<{ readonly status: number; readonly body: string }>;
  /** Absolute path of the configuration file that is meant; it may be missing. */
  readonly configFile: string;
  /**
   * Whether a daemon runs on this configuration. Rejects like `request` when the daemon was named by its
   * address and does not answer there.
   */
  hasDaemon(): Promise<boolean>;
  /**
   * A service of this machine in this process, for work without a daemon: what the core and the plugins that
   * the configuration file switches on provide, with no effect of theirs at work. `config` writes the file and
   * applies nothing. A missing file counts as one without shares. Rejects with the problems of an invalid
   * file, one on each line, and when nobody provides the service.
   */
  offline<K extends keyof Services>(name: K): Promise<Services[K]>;
}

export interface CliCommand {
  readonly name: string;
  /** Arguments as shown in the usage line: `SHARE`, `[--lines N]`. */
  readonly usage: string;
  readonly summary: string;
  /** Resolves with the exit code: 0 done, 1 failed, 64 wrong usage, 75 timed out, 78 wrong configuration. */
  run(cli: CliContext): Promise<number>;
}
