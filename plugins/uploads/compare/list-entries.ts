/**
 * Lists an upper folder as `find` prints it. Few entries, as when nothing waits, are read by this process:
 * each share is looked at every few seconds, and starting a process costs more than such a look.
 */
import { constants } from 'node:fs';
import { lstat, open, readdir, readlink, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { BigIntStats } from 'node:fs';
import { undefinedWhenMissing } from 'mountkeeper';
import type { Processes } from 'mountkeeper';

const FORMAT = '%y %i %s %T@ %C@ %P\\0';
const TIMEOUT_MS = 60_000;
const MAX_OUTPUT_BYTES = 1_073_741_824;
/** Most entries that are read without `find`, which reads many at less cost. */
const FEW = 256;
/** Node's replacement for bytes that are not valid UTF-8. */
const NO_TEXT = '\uFFFD';

/** Longer than a tick of any kernel (10 ms), by which kernels before 6.13 note times. */
const TICK_MS = 20;

export interface Asking {
  readonly processes: Pick<Processes, 'run'>;
  readonly signal: AbortSignal;
}

export class EntryList {
  readonly #upper: string;
  readonly #processes: Pick<Processes, 'run'>;
  readonly #few: number;
  readonly #now: () => number;
  #hasFew: boolean;
  /** The folder when it was last read, and had nothing in it. */
  #bare: { readonly stats: BigIntStats; readonly text: string } | undefined;

  /** `now`: milliseconds since the epoch, by which a folder that has stayed empty is not read again. */
  constructor(upper: string, processes: Pick<Processes, 'run'>, few = FEW, now = () => Infinity) {
    this.#upper = upper;
    this.#processes = processes;
    this.#few = few;
    this.#now = now;
    this.#hasFew = few > 0;
  }

  /**
   * A line ended by a zero byte for each entry, the folder itself first, each folder before what lies in it. What
   * vanishes meanwhile is left out. Rejects when the folder cannot be read completely.
   */
  async read(what: 'all' | 'folders', signal: AbortSignal): Promise<string> {
    if (this.#bare && (await this.#isStill(this.#bare.stats))) return this.#bare.text;
    const few = this.#hasFew ? await this.#readFew(what, signal) : undefined;
    if (few !== undefined) return few;
    const text = await find(this.#upper, what, { processes: this.#processes, signal });
    if (what === 'all') this.#hasFew = text.split('\0', this.#few + 2).length <= this.#few + 1;
    return text;
  }

  /** Whoever puts something into a folder changes its times: of most shares nothing waits, and each is asked often. */
  async #isStill(stats: BigIntStats): Promise<boolean> {
    // What is wrong with it, reading it says.
    const now = await lstat(this.#upper, { bigint: true }).catch(() => undefined);
    return (
      now !== undefined &&
      (['dev', 'ino', 'mtimeNs', 'ctimeNs'] as const).every((key) => now[key] === stats[key])
    );
  }

  /** One that was changed just now may change once more by the same time. */
  #noteBare(found: readonly Found[], beganMs: number): void {
    const [root, ...others] = found;
    const isBare = root && others.length === 0 && Number.isFinite(beganMs);
    const isOld = root && Number(root.stats.ctimeNs / 1_000_000n) < beganMs - TICK_MS;
    this.#bare = isBare && isOld ? { stats: root.stats, text: `${lineOf(root)}\0` } : undefined;
  }

  /** Undefined where there are many, or something is for `find` to tell. */
  async #readFew(what: 'all' | 'folders', signal: AbortSignal): Promise<string | undefined> {
    const found: Found[] = [];
    const beganMs = this.#now();
    this.#bare = undefined;
    try {
      const upper = await realpath(this.#upper);
      if (!(await lookAt('', upper, found))) return undefined;
      for (let next = 0; next < found.length; next += 1) {
        signal.throwIfAborted();
        const { path, stats } = found[next]!;
        if (!stats.isDirectory()) continue;
        const isListed = await inFolder(join(upper, path), async (folder) => {
          const names = await entriesOf(folder, what);
          if (found.length + names.length > this.#few || names.some((name) => name.includes(NO_TEXT)))
            return false;
          for (const name of names)
            await lookAt(path === '' ? name : `${path}/${name}`, join(folder, name), found);
          return true;
        });
        if (!isListed) return undefined;
      }
    } catch {
      // `find` meets the same, and says it.
      signal.throwIfAborted();
      return undefined;
    }
    if (what === 'all') this.#noteBare(found, beganMs);
    const isAsked = ({ stats }: Found): boolean => what === 'all' || stats.isDirectory();
    return found
      .filter(isAsked)
      .map((one) => `${lineOf(one)}\0`)
      .join('');
  }
}

interface Found {
  readonly path: string;
  readonly stats: BigIntStats;
}

/**
 * Has `work` done with a path of the very folder that is there, which child processes can use, too: users can put a
 * link in its place at any moment, which leads anywhere. Resolves with true where it is gone; rejects where another
 * one is there.
 */
export async function inFolder(folder: string, work: (held: string) => Promise<boolean>): Promise<boolean> {
  const flags = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
  const handle = await open(folder, flags).catch(undefinedWhenMissing);
  if (handle === undefined) return true;
  try {
    const held = `/proc/${process.pid}/fd/${handle.fd}`;
    if ((await readlink(held)) !== folder) throw new Error(`${folder} is being renamed`);
    return await work(held);
  } finally {
    await handle.close();
  }
}

/** False for one that is not there any more. */
async function lookAt(path: string, at: string, found: Found[]): Promise<boolean> {
  const stats = await lstat(at, { bigint: true }).catch(undefinedWhenMissing);
  if (stats !== undefined) found.push({ path, stats });
  return stats !== undefined;
}

async function entriesOf(folder: string, what: 'all' | 'folders'): Promise<readonly string[]> {
  const entries = (await readdir(folder, { withFileTypes: true }).catch(undefinedWhenMissing)) ?? [];
  return entries.filter((entry) => what === 'all' || entry.isDirectory()).map(({ name }) => name);
}

function lineOf({ path, stats }: Found): string {
  const { ino, size, mtimeNs, ctimeNs } = stats;
  return `${typeOf(stats)} ${ino} ${size} ${seconds(mtimeNs)} ${seconds(ctimeNs)} ${path}`;
}

function typeOf(stats: BigIntStats): string {
  if (stats.isDirectory()) return 'd';
  if (stats.isFile()) return 'f';
  if (stats.isCharacterDevice()) return 'c';
  if (stats.isSymbolicLink()) return 'l';
  if (stats.isFIFO()) return 'p';
  return stats.isSocket() ? 's' : 'b';
}

/** As `find` prints times. */
function seconds(ns: bigint): string {
  if (ns < 0n) throw new RangeError('a time before 1970');
  return `${ns / 1_000_000_000n}.${String(ns % 1_000_000_000n).padStart(9, '0')}0`;
}

async function find(upper: string, what: 'all' | 'folders', { processes, signal }: Asking): Promise<string> {
  const { stdout, stderr, code } = await processes.run({
    command: 'find',
    args: [upper, ...(what === 'folders' ? ['-type', 'd'] : []), '-printf', FORMAT],
    env: { LC_ALL: 'C' },
    timeoutMs: TIMEOUT_MS,
    signal,
    maxOutputBytes: MAX_OUTPUT_BYTES,
  });
  const end = stdout.indexOf('\0');
  // The folder itself has no path.
  if (end < 0 || !stdout.slice(0, end).endsWith(' '))
    throw new Error(`the upper folder cannot be read: ${stderr.trim() || `find ended with ${String(code)}`}`);
  const trouble = stderr
    .split('\n')
    .find((line) => line !== '' && !line.includes('No such file or directory'));
  if (trouble !== undefined) throw new Error(`the upper folder cannot be read whole: ${trouble}`);
  return stdout;
}
