/**
 * How modules of the package are loaded: required, hundreds are read in one go; imported, each is waited for
 * by itself.
 */
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';

type Exports = Record<string, unknown>;

/** `entry` is an absolute path. Throws what the module throws. */
export function importModule(entry: string): Promise<Exports> {
  return import(pathToFileURL(entry).href) as Promise<Exports>;
}

/**
 * As `importModule`, in half of the processor time where the runtime can require modules. For the package's
 * own alone: nothing else gets a turn meanwhile. One that awaits at its top level is imported.
 */
export async function loadModule(entry: string): Promise<Exports> {
  if (!process.features.require_module) return importModule(entry);
  try {
    return createRequire(entry)(entry) as Exports;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_REQUIRE_ASYNC_MODULE') throw error;
    return importModule(entry);
  }
}
