import { logIgnored, rest } from 'mountkeeper';
import type { Clock, Logger, MountEntry, MountTable } from 'mountkeeper';
import { PLACEHOLDER_SOURCE } from '../layer/stack.ts';
import { FREEZE_SOURCE } from './mount-point.ts';

export interface PathCheckOptions {
  readonly mountPoint: string;
  /** Source of the mount as the kernel shows it. */
  readonly device: string;
  readonly mountTable: Pick<MountTable, 'list' | 'find'>;
  /** False where the mount is moved to its path only after the check has begun. */
  readonly isThere: boolean;
  /** Called once, when the mount is known to be off its path. */
  readonly onLost: () => void;
  readonly log: Logger;
}

/** While the table changes, as for seconds when many shares are mounted, a reader may miss a line of it. */
const CHECKS_WITHOUT = 3;
const CHECK_EVERY_MS = 1_000;

/**
 * Checks whether the mount is where it was made. One that somebody took off the path while a file of it was
 * open lives and answers on, though nobody can come to it any more; and something else may be mounted over
 * it.
 */
export class PathCheck {
  readonly #options: PathCheckOptions;
  #checksWithout = 0;
  #wasThere: boolean;
  #trouble: string | undefined;

  constructor(options: PathCheckOptions) {
    this.#options = options;
    this.#wasThere = options.isThere;
  }

  /** What is mounted over it, or that it is not there, as was last seen; undefined when all is as it was. */
  get trouble(): string | undefined {
    return this.#trouble;
  }

  /**
   * Checks once a second until `end` aborts, all shares at the same moment, so that they share one read of the
   * table. Never rejects: a table that cannot be read tells nothing.
   */
  async run(clock: Clock, end: AbortSignal): Promise<void> {
    const { log, mountPoint } = this.#options;
    while (!end.aborted) {
      // The next check is a second away.
      await this.check().catch(logIgnored(log, 'check the path of a mount', { mountPoint }));
      await rest(clock, CHECK_EVERY_MS - (clock.monotonic() % CHECK_EVERY_MS), end);
    }
  }

  async check(): Promise<void> {
    const { mountPoint, device, mountTable, onLost } = this.#options;
    const [top, entries] = await Promise.all([mountTable.find(mountPoint), mountTable.list()]);
    const share =
      top?.source === device
        ? top
        : entries.find((entry) => entry.mountPoint === mountPoint && entry.source === device);
    const isThere = share !== undefined;
    this.#wasThere ||= isThere;
    this.#checksWithout = isThere ? 0 : this.#checksWithout + 1;
    if (this.#wasThere && this.#checksWithout === CHECKS_WITHOUT) onLost();
    this.#trouble =
      share === undefined ? this.#missing : ((top && coverOf(top, device)) ?? coverAbove(share, entries));
  }

  get #missing(): string | undefined {
    // The first look may have missed its line.
    return this.#wasThere && this.#checksWithout > 1
      ? 'the share is not mounted at its path any more'
      : undefined;
  }
}

/** As of the last two arrays: which mounts lie in which changes seldom, and every share asks once a second. */
const numbered = new WeakMap<readonly MountEntry[], ReadonlyMap<number, MountEntry>>();

function byId(entries: readonly MountEntry[]): ReadonlyMap<number, MountEntry> {
  const known = numbered.get(entries) ?? new Map(entries.map((entry) => [entry.id ?? 0, entry]));
  numbered.set(entries, known);
  return known;
}

/** What was mounted over a folder above the share, since the mount in which that folder lies. */
function coverAbove(share: MountEntry, entries: readonly MountEntry[]): string | undefined {
  const way = wayTo(share, byId(entries));
  const cover = entries.find(({ id, parentId, mountPoint }) => {
    const next = parentId === undefined ? undefined : way.get(parentId);
    return next !== undefined && next.id !== id && liesIn(next.mountPoint, mountPoint);
  });
  if (cover === undefined) return undefined;
  return (
    `something else (${cover.fsType}, ${cover.source}) is mounted over ${cover.mountPoint}, above it, ` +
    'and whoever comes by its path gets that; unmount it'
  );
}

/** By the number of each mount on the way: the next one, which lies in it and leads to the share. */
function wayTo(share: MountEntry, mounts: ReadonlyMap<number, MountEntry>): ReadonlyMap<number, MountEntry> {
  const way = new Map<number, MountEntry>();
  for (let at: MountEntry | undefined = share; at?.parentId !== undefined; at = mounts.get(at.parentId)) {
    if (way.has(at.parentId)) break;
    way.set(at.parentId, at);
  }
  return way;
}

function liesIn(path: string, folder: string): boolean {
  return path !== folder && path.startsWith(folder === '/' ? folder : `${folder}/`);
}

function coverOf({ source, fsType }: MountEntry, device: string): string | undefined {
  // Our own: what is shown while another rclone comes to its place.
  if ([device, FREEZE_SOURCE, PLACEHOLDER_SOURCE].includes(source)) return undefined;
  return (
    `something else (${fsType}, ${source}) is mounted over it, ` +
    'and whoever comes by its path gets that; unmount it'
  );
}
