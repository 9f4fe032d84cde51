/** Looks up many paths with few `find` processes, because starting a process costs more than most lookups. */
import { dirname } from 'node:path';
import type { Processes } from 'mountkeeper';

/** One entry reported by `find`. */
export interface Seen {
  /** `f`, `d` and so on. */
  readonly type: string;
  readonly bytes: number;
  /** Seconds since the epoch, with a fraction. */
  readonly modified: string;
  readonly changed: string;
  readonly name: string;
}

/** The result for one path. */
export interface FoundAt {
  readonly self: Seen;
  readonly inside: readonly Seen[];
}

export interface FoundMany {
  /** Undefined where there is nothing. */
  readonly found: ReadonlyMap<string, FoundAt | undefined>;
  /** Why a path could not be looked at, by path. */
  readonly failed: ReadonlyMap<string, string>;
}

export interface FindManyOptions {
  readonly processes: Pick<Processes, 'run'>;
  /** Also list the entries of the folders among them. */
  readonly isInside: boolean;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
}

const FORMAT = '%d\\0%y\\0%s\\0%T@\\0%C@\\0%f\\0%H\\0';
const FIELDS = 7;
const MAX_OUTPUT_BYTES = 256 * 1_048_576;
/** Most bytes of arguments per process; below the kernel's limit. */
const MOST_BYTES = 96 * 1_024;
/** Limited because each path may wait for the remote. */
const MOST_PATHS = 200;
const MISSING = /: (No such file or directory|Not a directory)$/;

/**
 * Takes absolute paths. When one of many fails, the paths without a result are asked for again, grouped by
 * folder.
 */
export async function findMany(paths: readonly string[], options: FindManyOptions): Promise<FoundMany> {
  const found = new Map<string, FoundAt | undefined>();
  const failed = new Map<string, string>();
  for (const chunk of chunksOf([...new Set(paths)])) {
    const { seen, trouble } = await find(chunk, options);
    // After an error, the listing of a folder may be incomplete.
    const isSure = (path: string): boolean =>
      trouble === undefined || (seen.has(path) && !(options.isInside && seen.get(path)?.self.type === 'd'));
    for (const path of chunk.filter(isSure)) found.set(path, seen.get(path));
    for (const group of groupsOf(
      chunk.filter((path) => !isSure(path)),
      options.isInside,
    )) {
      const again = await find(group, options);
      note(group, again, { found, failed });
    }
  }
  return { found, failed };
}

interface SearchResult {
  readonly found: Map<string, FoundAt | undefined>;
  readonly failed: Map<string, string>;
}

function note(paths: readonly string[], { seen, trouble }: Run, { found, failed }: SearchResult): void {
  for (const path of paths) {
    if (trouble === undefined) found.set(path, seen.get(path));
    else failed.set(path, trouble);
  }
}

/** The output of one process. */
interface Run {
  readonly seen: ReadonlyMap<string, FoundAt>;
  readonly trouble: string | undefined;
}

/**
 * A folder whose entries are wanted forms its own group; other paths are grouped by parent folder, because
 * they fail or succeed together.
 */
function groupsOf(paths: readonly string[], isInside: boolean): readonly (readonly string[])[] {
  if (isInside) return paths.map((path) => [path]);
  const groups = new Map<string, string[]>();
  for (const path of paths) groups.set(dirname(path), [...(groups.get(dirname(path)) ?? []), path]);
  return [...groups.values()];
}

async function find(
  paths: readonly string[],
  { processes, isInside, timeoutMs, signal }: FindManyOptions,
): Promise<Run> {
  const { stdout, stderr, code } = await processes.run({
    command: 'find',
    args: [...paths, '-maxdepth', isInside ? '1' : '0', '-printf', FORMAT],
    env: { LC_ALL: 'C' },
    timeoutMs,
    maxOutputBytes: MAX_OUTPUT_BYTES,
    ...(signal !== undefined && { signal }),
  });
  const lines = stderr.split('\n').filter((line) => line !== '' && !MISSING.test(line));
  const trouble =
    lines.at(-1) ?? (code === 0 || stderr !== '' ? undefined : `find ended with ${String(code)}`);
  return { seen: seenIn(stdout), trouble };
}

function seenIn(text: string): Map<string, FoundAt> {
  const seen = new Map<string, { readonly self: Seen; readonly inside: Seen[] }>();
  const fields = text.split('\0');
  for (let start = 0; start + FIELDS < fields.length; start += FIELDS) {
    const [depth, type = '', bytes, modified = '', changed = '', name = '', path = ''] = fields.slice(
      start,
      start + FIELDS,
    );
    const one = { type, bytes: Number(bytes), modified, changed, name };
    if (depth === '0') seen.set(path, { self: one, inside: [] });
    else seen.get(path)?.inside.push(one);
  }
  return seen;
}

function* chunksOf(paths: readonly string[]): Generator<readonly string[]> {
  let chunk: string[] = [];
  let bytes = 0;
  for (const path of paths) {
    const size = Buffer.byteLength(path) + 1;
    if (chunk.length === MOST_PATHS || (chunk.length > 0 && bytes + size > MOST_BYTES)) {
      yield chunk;
      [chunk, bytes] = [[], 0];
    }
    chunk.push(path);
    bytes += size;
  }
  if (chunk.length > 0) yield chunk;
}
