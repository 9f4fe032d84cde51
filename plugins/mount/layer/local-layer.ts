/** The local half of a share: its upper folder, what lies below it, and who writes. */
import { join, posix } from 'node:path';
import type { Clock, Logger, Processes, RemoteEntry, LeavingEntry, WriteLayer } from 'mountkeeper';
import { foldersInUse, openForWriting } from './open-for-writing.ts';
import type { Outdated } from '../rclone/remote-files.ts';
import type { LayerPaths } from './paths.ts';
import { TakeOut } from './take-out.ts';
import { UpperMarks } from './upper-marks.ts';

/** A look below may wait for the remote: for its listing, never for content. */
const LOOK_TIMEOUT_MS = 30_000;
const MAX_LISTING_BYTES = 64 * 1_048_576;
const FORMAT = '%y\\t%s\\t%T@\\t%f\\0';

export interface LocalLayerOptions {
  readonly shareName: string;
  readonly paths: LayerPaths;
  /** Where rclone is mounted. */
  readonly lower: string;
  readonly mountPoint: string;
  readonly processes: Processes;
  readonly clock: Clock;
  readonly log: Logger;
  /** rclone reads these folders anew. `change`: done right before; tells which. */
  readonly forget: (folders: readonly string[], change?: () => Promise<Outdated>) => Promise<void>;
  /** The kernel drops the names that it keeps of the overlay. */
  readonly dropNames: () => Promise<void>;
  /** How far two times of one file may lie apart. */
  readonly precisionMs: () => number;
}

export class LocalLayer implements WriteLayer {
  readonly shareName: string;
  readonly upper: string;
  readonly aside: string;
  readonly records: string;
  readonly #options: LocalLayerOptions;
  readonly #takeOut: TakeOut;
  #taking: Promise<unknown> = Promise.resolve();

  constructor(options: LocalLayerOptions) {
    this.shareName = options.shareName;
    this.upper = options.paths.upper;
    this.aside = options.paths.aside;
    this.records = options.paths.records;
    this.#options = options;
    this.#takeOut = new TakeOut({ ...options, marks: new UpperMarks(this.upper, options.processes), listLower: (folder) => this.#listLower(folder) });
  }

  openForWriting(): Promise<ReadonlySet<string>> {
    return Promise.resolve(openForWriting({ mountPoint: this.#options.mountPoint, upper: this.upper }));
  }

  inUse(): Promise<ReadonlySet<string>> {
    return Promise.resolve(foldersInUse(this.#options.mountPoint));
  }

  async below(path: string, { signal }: { readonly signal: AbortSignal }): Promise<RemoteEntry | undefined> {
    const [entry] = (await this.#find(path, ['-maxdepth', '0'], signal)) ?? [];
    return entry && { ...entry, name: posix.basename(path) };
  }

  async listBelow(folder: string, { signal }: { readonly signal: AbortSignal }): Promise<readonly RemoteEntry[] | undefined> {
    // The folder itself comes first: without it there is none.
    const [self, ...entries] = (await this.#find(folder, ['-maxdepth', '1'], signal)) ?? [];
    return self?.kind === 'folder' ? entries : undefined;
  }

  takeOut(entries: readonly LeavingEntry[]): Promise<readonly string[]> {
    const taking = this.#taking.then(() => this.#takeOut.take(entries));
    // A failure is for its own caller; the next one begins all the same.
    this.#taking = taking.catch(() => undefined);
    return taking;
  }

  async #listLower(folder: string): Promise<readonly RemoteEntry[] | undefined> {
    await this.#options.forget([folder]);
    const [self, ...entries] = (await this.#find(folder, ['-maxdepth', '1'])) ?? [];
    return self?.kind === 'folder' ? entries : undefined;
  }

  async #find(path: string, depth: readonly string[], signal?: AbortSignal): Promise<readonly RemoteEntry[] | undefined> {
    const { code, stdout, stderr } = await this.#options.processes.run({
      command: 'find', args: [join(this.#options.lower, path), ...depth, '-printf', FORMAT], env: { LC_ALL: 'C' }, timeoutMs: LOOK_TIMEOUT_MS, ...(signal && { signal }), maxOutputBytes: MAX_LISTING_BYTES,
    });
    if (code === 0) return stdout.split('\0').slice(0, -1).map(entryOf).filter((entry) => entry !== undefined);
    if (/: (No such file or directory|Not a directory)$/m.test(stderr)) return undefined;
    throw new Error(`what lies below cannot be looked at: ${stderr.trim().split('\n').at(-1) ?? `find ended with ${code}`}`);
  }
}

function entryOf(line: string): RemoteEntry | undefined {
  const [kind, bytes, seconds, ...name] = line.split('\t');
  if (kind === 'd') return { name: name.join('\t'), kind: 'folder' };
  return kind === 'f' ? { name: name.join('\t'), kind: 'file', version: { bytes: Number(bytes), modifiedMs: Number(seconds) * 1000 } } : undefined;
}
