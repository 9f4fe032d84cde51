/** Finds the plugin that caused an uncaught error, by the error's stack. */
import { pathToFileURL } from 'node:url';
import { PACKAGE_DIR } from '../platform/package.ts';
import { stackOf, withCauses } from '../platform/log/thrown.ts';

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

/**
 * ` (at index.js:1:2)`, where the author of a plugin finds an error: the first frame of it, or of its causes, in one of
 * these folders, outside of packages that lie there. Empty where there is none.
 */
export function ownPlaceOf(error: unknown, folders: readonly string[]): string {
  const starts = folders.flatMap((folder) => [`${folder}/`, `${pathToFileURL(folder).href}/`]);
  const frames = withCauses(error).flatMap((one) => stackOf(one).split('\n'));
  for (const place of frames.filter((line) => FRAME.test(line)).map(placeIn)) {
    const start = starts.find((one) => place.startsWith(one));
    const inside = start === undefined ? '' : place.slice(start.length).replace(/\)$/, '');
    if (inside !== '' && !`/${inside}`.includes('/node_modules/')) return ` (at ${inside})`;
  }
  return '';
}

function ownerOf(place: string, folders: Folders): string | undefined {
  for (const [name, folder] of folders)
    if ([`${folder}/`, `${pathToFileURL(folder).href}/`].some((start) => place.startsWith(start)))
      return name;
  return undefined;
}

/**
 * Name of the plugin whose work has failed: the one in whose folder the outermost frame is that is not Node's own.
 * Where there is no such frame, or it is nobody's, `acting` is: the plugin that the code works for. An error that
 * passed through the core is nobody's, because the core's own work was left half done; unless the plugin's own code
 * threw it in what the plugin itself had begun, such as a timer of the core's clock.
 * `folders`: name → the folder that its code was loaded from.
 */
export function pluginToBlame(
  error: unknown,
  folders: ReadonlyMap<string, string>,
  acting?: string,
): string | undefined {
  const places = stackOf(error)
    .split('\n')
    .filter((line) => FRAME.test(line) && !line.includes('node:'))
    .map(placeIn);
  const [innermost = '', outermost = innermost] = [places[0], places.at(-1)];
  const owner = ownerOf(outermost, folders);
  if (owner !== undefined || acting === undefined || !isCore(outermost)) return owner ?? acting;
  return ownerOf(innermost, folders) === acting ? acting : undefined;
}

function isCore(place: string): boolean {
  return ownerOf(place, [['core', PACKAGE_DIR]]) !== undefined;
}
