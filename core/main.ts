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

// A reader that goes away (`mountkeeper logs | head`) is no error of ours; the daemon's own output must not end it either.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (process.argv[2] !== 'run') process.exit(process.exitCode ?? EXIT.ok);
  });
}

process.exitCode = await main();
