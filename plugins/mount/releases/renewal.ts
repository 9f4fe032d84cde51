/** Mounts that run an older rclone than the one in use now: told, and renewed while nobody uses them. */
import { durationMs } from 'mountkeeper';
import type { Clock, LiveShare, Logger, Mount } from 'mountkeeper';
import type { Notice } from '../recovery/recovery-report.ts';
import { isOlder, versionIn } from './versions.ts';

/** How often is looked which rclone is chosen. */
export const SEE_CHOICE_EVERY_MS = 10_000;
/** Figures that are older say nothing of now. */
const FRESH_MS = 20_000;

/** A mount, and what it is to know about its rclone. */
export interface RunningRclone extends Mount {
  /** What it says of its version; undefined where that is not known. */
  readonly rclone: string | undefined;
  /** No file is open in it. Cheap: looked at every few seconds. */
  isIdle(): Promise<boolean>;
  /** Nor does anything wait in its cache, nor is any of its paths in use by a program. */
  isFree(): Promise<boolean>;
  /** Replaces its rclone while the share stays mounted. Absent: the share is mounted anew. */
  renewRclone?(): void;
  /** Resolves when nothing works on what it had to upload any more, which is after `exited`. Absent: at once. */
  readonly uploadsEnded?: Promise<void>;
}

export interface Outdated {
  readonly mount: RunningRclone;
  /** As it says of itself: `rclone v1.74.3`. */
  readonly rclone: string;
  readonly next: string;
}

export interface QuietRenewalOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** How long nothing may have moved; `0`: nothing is renewed. */
  readonly after: () => string;
  readonly shares: () => readonly LiveShare[];
  readonly reconnect: (share: string) => Promise<void>;
}

/**
 * Renews one share after the other, each only where its remote answers and after a quiet time. While the last
 * one is not up again, no other follows: should the new rclone not work here, it is one share that is missing.
 */
export class QuietRenewal {
  readonly #options: QuietRenewalOptions;
  #quietSince = new Map<Mount, number>();
  /** The version that each share was renewed for: not twice for the same one. */
  readonly #renewedFor = new Map<string, string>();
  #last: string | undefined;

  constructor(options: QuietRenewalOptions) {
    this.#options = options;
  }

  /** Called every few seconds with all outdated mounts. Never rejects. */
  async look(outdated: readonly Outdated[]): Promise<void> {
    const { after, clock, log } = this.#options;
    const waitMs = durationMs(after());
    const due = waitMs > 0 ? outdated.filter(isRenewable) : [];
    try {
      await this.#noteQuiet(due);
      const ripe = due.find(
        (one) => clock.monotonic() - this.#quietSinceMs(one) >= waitMs && this.#isNext(one),
      );
      if (ripe) await this.#renewUnlessUsed(ripe);
    } catch (error) {
      log.warn({ err: error }, 'mounts not renewed by the newer rclone');
    }
  }

  async #noteQuiet(due: readonly Outdated[]): Promise<void> {
    const noted = new Map<Mount, number>();
    for (const one of due) {
      // What cannot be looked at counts as used.
      const isQuiet = await this.#isQuiet(one.mount).catch(() => false);
      if (isQuiet) noted.set(one.mount, Math.min(this.#quietSinceMs(one), this.#options.clock.monotonic()));
    }
    this.#quietSince = noted;
  }

  #quietSinceMs({ mount }: Outdated): number {
    return this.#quietSince.get(mount) ?? Infinity;
  }

  async #isQuiet(mount: RunningRclone): Promise<boolean> {
    const live = this.#options.shares().find((share) => share.mount === mount);
    if (live?.health !== 'healthy' || live.remoteAnswers !== true || !live.figures) return false;
    const { stats, takenAtMs } = live.figures;
    const moving = stats.dirtyFiles + stats.erroredFiles + stats.transfers + stats.speed;
    if (moving > 0 || this.#options.clock.monotonic() - takenAtMs > FRESH_MS) return false;
    return mount.isIdle();
  }

  #isNext({ mount: { shareName }, next }: Outdated): boolean {
    const last = this.#options.shares().find(({ spec }) => spec.share.name === this.#last);
    return this.#renewedFor.get(shareName) !== next && (last === undefined || last.health === 'healthy');
  }

  async #renewUnlessUsed({ mount, rclone, next }: Outdated): Promise<void> {
    const { log, reconnect } = this.#options;
    const { shareName } = mount;
    if (!(await mount.isFree())) return void this.#quietSince.delete(mount);
    this.#renewedFor.set(shareName, next);
    this.#last = shareName;
    log.info(
      { share: shareName, from: rclone, to: next },
      'share is renewed by the newer rclone, nobody uses it',
    );
    if (mount.renewRclone) mount.renewRclone();
    else await reconnect(shareName);
  }
}

/** An older choice is somebody's will, and waits for the next mount. */
function isRenewable({ rclone, next }: Outdated): boolean {
  const [running, chosen] = [versionIn(rclone), versionIn(next)];
  return running !== undefined && chosen !== undefined && isOlder(running, chosen);
}

/** One sentence for each rclone that is still running. `after`: as the configuration says. */
export function outdatedNotices(outdated: readonly Outdated[], after: string): readonly Notice[] {
  return [...byRclone(outdated)].map(([rclone, some]) => {
    const [{ next }] = some;
    const byItself =
      durationMs(after) > 0 && isRenewable(some[0])
        ? `each takes it once nobody has used it for ${after}`
        : 'the next mount takes it';
    return {
      level: 'warning' as const,
      message:
        `${some.map(({ mount }) => mount.shareName).join(', ')}: mounted by ${rclone}, and ${next} is in use now; ` +
        `${byItself}, \`mountkeeper reconnect SHARE\` mounts one anew`,
    };
  });
}

type Some = [Outdated, ...Outdated[]];

function byRclone(outdated: readonly Outdated[]): ReadonlyMap<string, Some> {
  const groups = new Map<string, Some>();
  for (const one of outdated) {
    const group = groups.get(one.rclone);
    if (group) group.push(one);
    else groups.set(one.rclone, [one]);
  }
  return groups;
}
