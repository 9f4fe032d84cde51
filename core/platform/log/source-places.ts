/**
 * Where in a module a place in a bundle is: by the map beside the bundle's file, which is read when an error is logged.
 * Node.js would read all maps at the start (`--enable-source-maps`). Without a map, places stay as they are.
 */
import { readFileSync } from 'node:fs';
import { SourceMap } from 'node:module';
import type { SourceMapPayload, SourceMapping } from 'node:module';
import { fileURLToPath } from 'node:url';
import { PACKAGE_DIR } from '../package.ts';

/** `file:///x/y.js:1:2`. */
const PLACE = /(file:\/\/\/[^\s():]+\.js):(\d+):(\d+)/g;
/** An error in each cycle has the same places. */
const MOST_KNOWN = 500;

const known = new Map<string, string>();

/** The stack of an error, with places in files below `within` as they are in the modules. Never throws. */
export function withSourcePlaces(stack: string, within = `${PACKAGE_DIR}/dist/`): string {
  const maps = new Map<string, SourceMap | undefined>();
  return stack.replaceAll(PLACE, (place, url: string, line: string, column: string) => {
    const found = known.get(place);
    if (found !== undefined) return found;
    if (known.size >= MOST_KNOWN) known.clear();
    if (!maps.has(url)) maps.set(url, mapOf(url, within));
    const entry = entryAt(maps.get(url), Number(line) - 1, Number(column) - 1);
    const source = entry
      ? `${new URL(entry.originalSource, url).href}:${entry.originalLine + 1}:${entry.originalColumn + 1}`
      : place;
    known.set(place, source);
    return source;
  });
}

/** The bundler's own lines are of no module: the map has nothing there, or Node.js gives what stands before them. */
function entryAt(map: SourceMap | undefined, line: number, column: number): SourceMapping | undefined {
  const entry = map?.findEntry(line, column) as Partial<SourceMapping> | undefined;
  return entry?.generatedLine === line && entry.originalSource !== undefined
    ? (entry as SourceMapping)
    : undefined;
}

function mapOf(url: string, within: string): SourceMap | undefined {
  try {
    const file = fileURLToPath(url);
    // What a message says is no reason to read other files.
    if (!file.startsWith(within)) return undefined;
    return new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')) as SourceMapPayload);
  } catch {
    // No map: it is no file of a bundle.
    return undefined;
  }
}
