#!/usr/bin/env node
/** Process entry: finds the subcommand, runs it and turns its result into the exit code. */
import { parseArguments } from './cli/arguments.ts';
import { EXIT } from './cli/exit-codes.ts';
import { runCommandLine } from './cli/dispatch.ts';

async function main(): Promise<number> {
  try {
    return await runCommandLine(parseArguments(process.argv.slice(2)));
  } catch (error) {
    process.stderr.write(`mountkeeper: ${(error as Error).message}\n`);
    return EXIT.usage;
  }
}

process.exitCode = await main();
