/**
 * Reads what overlayfs notes on files and folders of an upper folder, as attributes that `getfattr` prints.
 */
import { join } from 'node:path';
import type { Processes } from 'mountkeeper';

/** What overlayfs notes on one entry. */
export interface Marks {
  /** Of a folder: nothing that lies below shows. */
  readonly isOpaque?: boolean;
  /**
   * Where it comes from: from the share's root when it begins with a slash, else a name in what its folder
   * shows of below.
   */
  readonly redirect?: string;
  /** Of a file: it has a size, and no data of its own. */
  readonly isMetacopy?: boolean;
}

export interface MarkReading {
  readonly upper: string;
  readonly processes: Pick<Processes, 'run'>;
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 67_108_864;
/** Far below what the kernel takes as arguments of one program. */
const PATHS_AT_ONCE = 500;
const ATTRIBUTES = '^trusted\\.overlay\\.(opaque|redirect|metacopy)$';

/** Path → its marks. A path without any, and one that is not there, are left out alike. */
export async function readMarks(paths: readonly string[], reading: MarkReading): Promise<Map<string, Marks>> {
  const found = new Map<string, Marks>();
  for (let start = 0; start < paths.length; start += PATHS_AT_ONCE) {
    for (const [path, marks] of await readSome(paths.slice(start, start + PATHS_AT_ONCE), reading))
      found.set(path, marks);
  }
  return found;
}

async function readSome(
  paths: readonly string[],
  { upper, processes, signal }: MarkReading,
): Promise<Map<string, Marks>> {
  const { stdout, stderr, code } = await processes.run({
    command: 'getfattr',
    env: { LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
    signal,
    maxOutputBytes: MAX_OUTPUT_BYTES,
    args: [
      '-h',
      '--absolute-names',
      '-e',
      'hex',
      '-d',
      '-m',
      ATTRIBUTES,
      '--',
      ...paths.map((path) => join(upper, path)),
    ],
  });
  const trouble = stderr.replace(/^getfattr: .*?: No such file or directory$/gms, '').trim();
  if (trouble !== '' || (code !== 0 && code !== 1)) {
    throw new Error(
      `the marks of the upper folder cannot be read: ${trouble || `getfattr ended with ${String(code)}`}`,
    );
  }
  return marksIn(stdout, `${upper}/`);
}

/** `# file: PATH`, then a line `NAME=0xHEX` for each attribute, then an empty line. */
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

/** Line ends and backslashes are printed as `\` and three octal digits. */
function unquoted(path: string): string {
  return path.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)));
}
