/**
 * The versions of files that somebody had open when the share read their listings again. overlayfs copies a
 * file up whole when it is opened for writing, which may take long: what arrives in the upper folder then is
 * the version from before, while the lower layer shows another by now.
 */
import { readdirSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import type { Clock, LookBelow, RemoteEntry, RemoteVersion } from 'mountkeeper';

const LOOK_MS = 30_000;
/** How long a version is kept after its file was closed, for a look of the uploader. */
const KEEP_MS = 600_000;

export interface HeldVersionsOptions {
  /** Process that opens each file of the lower layer for the overlay. */
  readonly pid: number;
  /** Where it finds the lower layer. */
  readonly place: string;
  readonly below: (
    paths: readonly string[],
    options: { readonly signal: AbortSignal },
  ) => Promise<LookBelow<RemoteEntry>>;
  readonly clock: Clock;
  /** For tests. */
  readonly proc?: string;
}

interface Held {
  readonly version: RemoteVersion;
  /** What was opened later may be another version; milliseconds since the epoch. */
  untilMs: number;
}

export class HeldVersions {
  readonly #options: HeldVersionsOptions;
  readonly #held = new Map<string, Held[]>();

  constructor(options: HeldVersionsOptions) {
    this.#options = options;
  }

  /**
   * What a file was that somebody opened at that time, in milliseconds since the epoch; undefined where the
   * lower layer shows the same still, or no one had it open.
   */
  of(path: string, openedAtMs: number): RemoteVersion | undefined {
    return this.#held.get(path)?.find(({ untilMs }) => openedAtMs <= untilMs)?.version;
  }

  /** Runs a change of what the lower layer shows. Rejects without it when the versions cannot be found out. */
  async during<T>(change: () => Promise<T>): Promise<T> {
    const held = await this.#hold();
    try {
      return await change();
    } finally {
      for (const one of held) one.untilMs = this.#options.clock.now();
    }
  }

  async #hold(): Promise<readonly Held[]> {
    const { below, clock, pid, place, proc = '/proc' } = this.#options;
    const open = openFiles(pid, place, proc);
    this.#drop(open);
    if (open.size === 0) return [];
    const { found, failed } = await below([...open], { signal: clock.deadline(LOOK_MS) });
    const [why] = failed.values();
    if (why !== undefined) throw new Error(`the version of a file that is open cannot be found out: ${why}`);
    const held: Held[] = [];
    for (const [path, entry] of found) {
      if (entry?.kind !== 'file') continue;
      const one = { version: entry.version, untilMs: Infinity };
      this.#held.set(path, [...(this.#held.get(path) ?? []), one]);
      held.push(one);
    }
    return held;
  }

  #drop(open: ReadonlySet<string>): void {
    const since = this.#options.clock.now() - KEEP_MS;
    for (const [path, all] of this.#held) {
      if (open.has(path)) continue;
      const left = all.filter(({ untilMs }) => untilMs > since);
      if (left.length > 0) this.#held.set(path, left);
      else this.#held.delete(path);
    }
  }
}

/** Paths below `place` that a process has open. Follows none of them. */
function openFiles(pid: number, place: string, proc: string): ReadonlySet<string> {
  const folder = join(proc, String(pid), 'fd');
  const found = new Set<string>();
  for (const fd of attempt(() => readdirSync(folder)) ?? []) {
    const target = attempt(() => readlinkSync(join(folder, fd)));
    if (target?.startsWith(`${place}/`) === true)
      found.add(target.slice(place.length + 1).replace(/ \(deleted\)$/, ''));
  }
  return found;
}

function attempt<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    // A descriptor that was closed meanwhile, or a process that has ended.
    return undefined;
  }
}
