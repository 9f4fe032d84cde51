#!/usr/bin/env node
/** Process entry: finds the subcommand, runs it and turns its result into the exit code. */
import { fileURLToPath } from 'node:url';
import { parseArguments } from './cli/arguments.ts';
import { EXIT } from './cli/exit-codes.ts';
import { loadModule } from './platform/load-module.ts';

const at = (module: string): string => fileURLToPath(new URL(module, import.meta.url));

async function loadCommand(command: string | undefined): Promise<void> {
  await loadModule(at('./cli/dispatch.js'));
  if (command === 'run') await loadModule(at('./cli/daemon-command.js'));
  else if (command?.startsWith('-') === false) await loadModule(at('./cli/offline.js'));
}

/** For all that is read from here on. A command line that is wrong is told of later. */
async function readWithFormerWork(argv: readonly string[]): Promise<void> {
  if (process.features.require_module) await loadModule(at('./cli/former-work.js'));
  const { useFormerWork } = await import('./cli/former-work.ts');
  await useFormerWork(argv);
}

async function main(): Promise<number> {
  try {
    return await runCommandLine(parseArguments(process.argv.slice(2)));
  } catch (error) {
    process.stderr.write(`mountkeeper: ${(error as Error).message}\n`);
    return EXIT.usage;
  }
}

// A reader that closes the pipe (`mountkeeper logs | head`) is not an error; it must not end the daemon
// either.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    if (process.argv[2] !== 'run') process.exit(process.exitCode ?? EXIT.ok);
  });
}

await readWithFormerWork(process.argv.slice(2));
// Later imports of these modules find them loaded.
if (process.features.require_module) await loadCommand(process.argv[2]);
const { runCommandLine } = await import('./cli/dispatch.ts');
process.exitCode = await main();
