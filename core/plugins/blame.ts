/** Finds the plugin that caused an uncaught error, by the error's stack. */
import { pathToFileURL } from 'node:url';

const FRAME = /^ {4}at /;

/** The location in a stack frame, `    at name (file:///x/y.js:1:2)` or `    at async /x/y.js:1:2`. */
export function placeIn(frame: string): string {
  const begin = frame.lastIndexOf('(');
  return begin === -1 ? frame.slice('    at '.length).replace(/^async /, '') : frame.slice(begin + 1);
}

/**
 * Name of the plugin in whose folder the failed work began: the outermost frame that is not Node's own. An
 * error that passed through the core is nobody's, because the core's own work was left half done.
 * `folders`: name → the folder that its code was loaded from.
 */
export function pluginToBlame(error: unknown, folders: ReadonlyMap<string, string>): string | undefined {
  const stack = error instanceof Error && typeof error.stack === 'string' ? error.stack : '';
  const last = stack
    .split('\n')
    .filter((line) => FRAME.test(line) && !line.includes('node:'))
    .at(-1);
  if (last === undefined) return undefined;
  const outermost = placeIn(last);
  for (const [name, folder] of folders) {
    if ([`${folder}/`, `${pathToFileURL(folder).href}/`].some((start) => outermost.startsWith(start)))
      return name;
  }
  return undefined;
}
