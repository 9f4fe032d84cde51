/** Arguments of a subcommand of the core. */
import type { Arguments } from './arguments.ts';
import type { Offline } from './offline.ts';
import type { Terminal } from './terminal.ts';

export interface Invocation {
  readonly args: Arguments;
  readonly configFile: string;
  readonly terminal: Terminal;
  readonly offline: Offline;
}
