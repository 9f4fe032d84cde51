/**
 * Module hooks: Node 20 knows no `.ts`. What lies in the daemon's copy of a plugin has lost its types already;
 * what an author tests in its own folder loses them here.
 */
import { readFile } from 'node:fs/promises';
import type { InitializeHook, LoadHook } from 'node:module';
import { fileURLToPath } from 'node:url';

export interface TypeScriptHooks {
  readonly hasTypes: boolean;
}

let hasTypes = false;

export const initialize: InitializeHook<TypeScriptHooks> = (options) => {
  hasTypes = options.hasTypes;
};

export const load: LoadHook = async (url, context, next) => {
  if (!/\.m?ts$/.test(url)) return next(url, context);
  if (!hasTypes) return next(url, { ...context, format: 'module' });
  const { transform } = await import('@swc/wasm-typescript');
  const filename = fileURLToPath(url);
  const { code } = await transform(await readFile(filename, 'utf8'), { mode: 'strip-only', filename });
  return { format: 'module', source: code, shortCircuit: true };
};
