/**
 * Runs in a child process: imports a plugin's entry and checks it, so that code that throws, loops for ever
 * or never resolves does so here and not in the daemon. Prints `{ "problem": … }`, or `{}` when all is
 * well.
 */
import { writeSync } from 'node:fs';
import { pino } from 'pino';
import type { Plugin } from '../../contract/plugin.ts';
import { dryRun } from '../instance/instance.ts';
import { manifestProblem, pickPlugin, thirdPartyProblem, versioned } from './manifest.ts';
import type { Declared } from './manifest.ts';
import { importModule } from '../../platform/load-module.ts';
import { sentence } from '../../platform/log/thrown.ts';

const [entry = '', name = '', declared = ''] = process.argv.slice(2);

function check(namespace: Record<string, unknown>): string | undefined {
  const manifest = JSON.parse(declared) as Declared;
  const plugin = versioned(pickPlugin(namespace), manifest.version);
  const problem = manifestProblem(plugin, name) ?? thirdPartyProblem(plugin as Plugin, manifest);
  if (problem === undefined) dryRun(plugin as Plugin, pino({ level: 'silent' }), true);
  return problem;
}

function answer(problem: string | undefined): void {
  writeSync(3, JSON.stringify({ problem }));
  process.exit(0);
}

// Node reports the location of a SyntaxError only when nobody catches it.
const namespace = (await importModule(entry).catch((error: unknown) => {
  if (error instanceof SyntaxError) throw error;
  answer(`it cannot be loaded: ${sentence(error)}${placeOf(error)}`);
})) as Record<string, unknown>;
try {
  answer(check(namespace));
} catch (error) {
  answer(sentence(error) + placeOf(error));
}

/** File and line of the first stack frame in the plugin. */
function placeOf(error: unknown): string {
  const folder = entry.slice(0, entry.indexOf('@') + 14);
  const frame =
    error instanceof Error ? error.stack?.split('\n').find((line) => line.includes(folder)) : undefined;
  const end = frame && /:(\d+)(?::\d+)?\)?$/.exec(frame);
  return end ? ` (${frame.slice(frame.indexOf(folder), end.index)}:${end[1]})` : '';
}
