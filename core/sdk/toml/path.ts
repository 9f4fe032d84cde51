/**
 * Dotted paths of configuration keys: `shares[0].connection`, `connections.nas.options.pass`, `shares."my
 * photos".name`.
 */
export type Segment = string | number;

const BARE = /^[\p{L}\p{M}\p{N}_$-]+$/u;

/** Segments as a dotted path; keys that hold dots, spaces or brackets stand in quotes. */
export function joinPath(segments: readonly Segment[]): string {
  return segments.reduce<string>((path, segment) => {
    if (typeof segment === 'number') return `${path}[${segment}]`;
    const key = BARE.test(segment) ? segment : JSON.stringify(segment);
    return path === '' ? key : `${path}.${key}`;
  }, '');
}

/** The reverse of `joinPath`. What cannot be read as a path is taken as one key. */
export function splitPath(path: string): Segment[] {
  const segments: Segment[] = [];
  const pattern = /\.?(?:\[(\d+)\]|("(?:[^"\\]|\\.)*")|([^.[\]"]+))/gy;
  let consumed = 0;
  for (const match of path.matchAll(pattern)) {
    consumed += match[0].length;
    segments.push(segmentOf(match));
  }
  return consumed === path.length ? segments : [path];
}

function segmentOf([, index, quoted, bare]: RegExpMatchArray): Segment {
  if (index !== undefined) return Number(index);
  if (quoted === undefined) return bare ?? '';
  try {
    return JSON.parse(quoted) as string;
  } catch {
    // Only in a path that somebody wrote by hand: taken as it stands.
    return quoted;
  }
}
