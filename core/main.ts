#!/usr/bin/env node
/** Process entry: finds the subcommand, runs it and turns its result into the exit code. */
import { createRequire } from 'node:module';
import { parseArguments } from './cli/arguments.ts';
import { EXIT } from './cli/exit-codes.ts';

/**
 * Hundreds of modules: imported, each is waited for by itself; required, they are read in one go, which takes a seventh off the
 * processor time until the daemon is up. What is imported later is there already.
 */
function loadAtOnce(command: string | undefined): void {
  const require = createRequire(import.meta.url);
  try {
    require('./cli/dispatch.js');
    if (command === 'run') require('./cli/daemon-command.js');
    else if (command?.startsWith('-') === false) require('./cli/offline.js');
  } catch (error) {
    // One that awaits at its top level can only be imported.
    if ((error as NodeJS.ErrnoException).code !== 'ERR_REQUIRE_ASYNC_MODULE') throw error;
  }
}

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

if (process.features.require_module) loadAtOnce(process.argv[2]);
const { runCommandLine } = await import('./cli/dispatch.ts');
process.exitCode = await main();
