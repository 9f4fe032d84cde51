/**
 * Loads modules of the package: hundreds are read in one go when they are required, one by one when they
 * are imported.
 */
import { createRequire, register } from 'node:module';
import { pathToFileURL } from 'node:url';
import type { TypeScriptHooks } from './typescript-hooks.ts';

type Exports = Record<string, unknown>;

/** From Node 22.18 on. */
let knowsTypeScript = (process.features as { typescript?: unknown }).typescript === 'strip';

/**
 * `entry` is an absolute path. Throws what the module throws. `hasTypes` (default: false) says of a `.ts` file
 * that it is an author's source, not the copy that has lost its types.
 */
export function importModule(entry: string, { hasTypes = false } = {}): Promise<Exports> {
  if (!knowsTypeScript && /\.m?ts$/.test(entry)) {
    knowsTypeScript = true;
    register<TypeScriptHooks>('./typescript-hooks.js', import.meta.url, { data: { hasTypes } });
  }
  return import(pathToFileURL(entry).href) as Promise<Exports>;
}

/**
 * As `importModule`, with half the processor time where the runtime can require ES modules. Only for the
 * package's own modules: nothing else runs meanwhile. A module with top-level await is imported.
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
