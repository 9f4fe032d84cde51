/** Finds the plugin that caused an uncaught error, by the error's stack. */
import { pathToFileURL } from 'node:url';

/** Name and folder of each; a name may have several. */
type Folders = Iterable<readonly [name: string, folder: string]>;

const FRAME = /^ {4}at /;

/** The location in a stack frame, `    at name (file:///x/y.js:1:2)` or `    at async /x/y.js:1:2`. */
export function placeIn(frame: string): string {
  const begin = frame.lastIndexOf('(');
  return begin === -1 ? frame.slice('    at '.length).replace(/^async /, '') : frame.slice(begin + 1);
}

/** Name of the plugin whose code is outermost in a stack; undefined where none of these is in it. */
export function pluginIn(stack: string, folders: Folders): string | undefined {
  const frames = stack.split('\n').filter((line) => FRAME.test(line));
  return frames
    .map((line) => ownerOf(placeIn(line), folders))
    .filter((name) => name !== undefined)
    .at(-1);
}

function ownerOf(place: string, folders: Folders): string | undefined {
  for (const [name, folder] of folders)
    if ([`${folder}/`, `${pathToFileURL(folder).href}/`].some((start) => place.startsWith(start)))
      return name;
  return undefined;
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
  return last === undefined ? undefined : ownerOf(placeIn(last), folders);
}
