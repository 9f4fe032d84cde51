/**
 * Reads the extended attributes ("marks") that overlayfs stores on files and folders of an upper folder,
 * from the output of `getfattr`.
 */
import type { FileHandle } from 'node:fs/promises';
import { join } from 'node:path';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Processes } from 'mountkeeper';
import { isText, openedEntry } from './names.ts';

/** The marks of one entry. */
export interface Marks {
  /** For a folder: nothing of the lower folder is visible. */
  readonly isOpaque?: boolean;
  /**
   * Where its lower entry is: a path from the share's root when it begins with a slash, otherwise a name in
   * its parent's lower folder.
   */
  readonly redirect?: string;
  /** For a file: it has a size, but no data of its own. */
  readonly isMetacopy?: boolean;
}

export interface MarkReading {
  readonly upper: string;
  readonly processes: Pick<Processes, 'run'>;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 67_108_864;
/** Far below the kernel's limit for arguments. */
const PATHS_AT_ONCE = 500;
/** Each is held open meanwhile. */
const NO_TEXTS_AT_ONCE = 100;
/** Of one path, which may hold line breaks: what is said of another before it is not passed over. */
const GONE = /^getfattr: (?:(?!\ngetfattr: ).)*?: (?:No such file or|Not a) directory$/gms;
const ATTRIBUTES = '^trusted\\.overlay\\.(opaque|redirect|metacopy)$';

/** Path → its marks. Paths without marks and missing paths are left out. */
export async function readMarks(paths: readonly string[], reading: MarkReading): Promise<Map<string, Marks>> {
  const found = new Map<string, Marks>();
  const add = (some: ReadonlyMap<string, Marks>): void =>
    some.forEach((marks, path) => found.set(path, marks));
  for (const some of inParts(paths.filter(isText), PATHS_AT_ONCE)) add(await readSome(some, reading));
  const noTexts = paths.filter((path) => !isText(path));
  for (const some of inParts(noTexts, NO_TEXTS_AT_ONCE)) add(await readHeld(some, reading));
  return found;
}

function inParts(paths: readonly string[], size: number): string[][] {
  return Array.from({ length: Math.ceil(paths.length / size) }, (_, part) =>
    paths.slice(part * size, (part + 1) * size),
  );
}

async function readSome(paths: readonly string[], reading: MarkReading): Promise<Map<string, Marks>> {
  const { upper } = reading;
  const files = paths.map((path) => join(upper, path));
  return marksIn(await getfattr(['-h', '--absolute-names'], files, reading), `${upper}/`);
}

/** Arguments of a process are text: those whose names are none are opened here, and read through that. */
async function readHeld(paths: readonly string[], reading: MarkReading): Promise<Map<string, Marks>> {
  const folder = `/proc/${process.pid}/fd/`;
  const held = new Map<string, { readonly path: string; readonly handle: FileHandle }>();
  try {
    for (const path of paths) {
      const handle = await opened(join(reading.upper, path));
      if (handle !== undefined) held.set(String(handle.fd), { path, handle });
    }
    const files = [...held.keys()].map((fd) => `${folder}${fd}`);
    const found = marksIn(await getfattr(['--absolute-names'], files, reading), folder);
    return new Map([...found].map(([fd, marks]) => [held.get(fd)!.path, marks]));
  } finally {
    for (const { handle } of held.values()) await handle.close();
  }
}

/** Undefined for what is gone, or a link by now. */
async function opened(path: string): Promise<FileHandle | undefined> {
  return openedEntry(path).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ELOOP' ? undefined : undefinedWhenMissing(error),
  );
}

/** What it prints for these files. */
async function getfattr(
  options: readonly string[],
  files: readonly string[],
  { processes, signal }: MarkReading,
): Promise<string> {
  if (files.length === 0) return '';
  const { stdout, stderr, code } = await processes.run({
    command: 'getfattr',
    env: { LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
    signal,
    maxOutputBytes: MAX_OUTPUT_BYTES,
    args: [...options, '-e', 'hex', '-d', '-m', ATTRIBUTES, '--', ...files],
  });
  const trouble = stderr.replace(GONE, '').trim();
  if (trouble !== '' || (code !== 0 && code !== 1)) {
    throw new Error(
      `the marks of the upper folder cannot be read: ${trouble || `getfattr ended with ${String(code)}`}`,
    );
  }
  return stdout;
}

/** Parses `# file: PATH`, then a line `NAME=0xHEX` for each attribute, then an empty line. */
export function marksIn(text: string, prefix: string): Map<string, Marks> {
  const found = new Map<string, Marks>();
  for (const block of text.split('\n\n')) {
    const [head = '', ...lines] = block.split('\n').filter((line) => line !== '');
    const path = /^# file: (.*)$/.exec(head)?.[1];
    if (path === undefined) continue;
    found.set(unquoted(path).slice(prefix.length), marksFrom(new Map(lines.map(attribute))));
  }
  return found;
}

function attribute(line: string): [name: string, value: string] {
  const [name = '', value = ''] = line.split(/=(.*)/s, 2);
  return [
    name.replace(/^trusted\.overlay\./, ''),
    Buffer.from(value.replace(/^0x/, ''), 'hex').toString('utf8'),
  ];
}

function marksFrom(attributes: ReadonlyMap<string, string>): Marks {
  const redirect = attributes.get('redirect');
  return {
    ...(attributes.get('opaque') === 'y' && { isOpaque: true }),
    ...(redirect !== undefined && { redirect }),
    ...(attributes.has('metacopy') && { isMetacopy: true }),
  };
}

/** getfattr prints line breaks and backslashes as `\` and three octal digits. */
function unquoted(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}
