/**
 * Gives every mount its part of the bandwidth budget. Mounts that must slow down are told first, and only
 * then the others may go faster, so that the sum stays within the budget while it is being divided again.
 */
import type { Logger } from 'pino';
import { rateBytes } from '../sdk/units.ts';
import type { Bandwidth, Mount, MountStats, ShareLimit } from '../contract/mount.ts';
import type { BandwidthState } from '../contract/shares.ts';
import type { Clock } from '../contract/platform.ts';
import type { Config } from '../contract/config.ts';
import { timeBoxOr } from '../platform/deadline.ts';
import { divideBandwidth, faster, remaining, slower } from './budget.ts';

/** How long a division waits for a mount. */
const DEADLINE_MS = 2_000;
/** rclone takes a new limit only between two reads that the former one paces: its answer may come late. */
const LONGEST_MS = 60_000;
const UNLIMITED: Bandwidth = { up: 0, down: 0 };

export interface BandwidthUser {
  readonly mount: Mount;
  readonly stats: MountStats | undefined;
}

export interface BandwidthControlOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly resolve: (budget: Bandwidth) => Bandwidth;
  readonly users: () => readonly BandwidthUser[];
}

export class BandwidthControl {
  readonly #options: BandwidthControlOptions;
  readonly #given = new WeakMap<Mount, Bandwidth>();
  /** The most that mounts may have that did not accept their last part in time, at the others' expense. */
  readonly #deaf = new WeakMap<Mount, Bandwidth>();
  /** Mounts whose answer is still due: they are told nothing more until it is there. */
  readonly #asked = new WeakSet<Mount>();
  #budget: Bandwidth;
  /** By share name. */
  #limits: ReadonlyMap<string, Bandwidth> = new Map();
  #running: Promise<void> | undefined;
  #isStale = false;

  constructor(config: Config['bandwidth'], options: BandwidthControlOptions) {
    this.#options = options;
    this.#budget = { up: rateBytes(config.up), down: rateBytes(config.down) };
  }

  get state(): BandwidthState {
    const shares = this.#options
      .users()
      .map(({ mount }) => ({ share: mount.shareName, ...(this.#given.get(mount) ?? UNLIMITED) }));
    return { limit: this.#budget, effective: this.#wholeBudget(), shares };
  }

  /** Replaces the budget. A value that cannot be read changes nothing. */
  set(limit: { readonly up: string; readonly down: string }): void {
    const { log } = this.#options;
    try {
      this.#budget = { up: rateBytes(limit.up), down: rateBytes(limit.down) };
      log.info(this.#budget, 'bandwidth limit set');
    } catch (error) {
      log.warn(
        { ...limit, reason: (error as Error).message },
        'bandwidth limit not understood, nothing changed',
      );
    }
  }

  /** Replaces the limits of single shares; they hold from the next division on. */
  limitShares(limits: readonly ShareLimit[]): void {
    const all = new Map<string, Bandwidth>();
    for (const { share, up, down } of limits)
      all.set(share, slower({ up, down }, all.get(share) ?? UNLIMITED));
    this.#limits = all;
  }

  /**
   * Divides again by current demand. Never rejects, never runs twice at once; a call during a run is made
   * up for.
   */
  async divide(): Promise<void> {
    this.#isStale = true;
    this.#running ??= this.#divideUntilCurrent().finally(() => {
      this.#running = undefined;
    });
    await this.#running;
  }

  async #divideUntilCurrent(): Promise<void> {
    while (this.#isStale) {
      this.#isStale = false;
      const all = this.#options.users();
      const parts = this.#partsOf(all);
      const users = all.filter(({ mount }) => !this.#has(mount, parts.get(mount.shareName) ?? UNLIMITED));
      const wereDeaf = users.map(({ mount }) => this.#deaf.has(mount));
      const slowed = await Promise.all(
        users.map(({ mount }) => this.#slowDown(mount, parts.get(mount.shareName) ?? UNLIMITED)),
      );
      // The next division subtracts what a mount keeps that has just become deaf; until then nobody may go faster.
      if (slowed.some((isSlowed, index) => !isSlowed && wereDeaf[index] === false)) return;
      await Promise.all(
        users
          .filter((_, index) => slowed[index])
          .map(({ mount }) => this.#give(mount, parts.get(mount.shareName) ?? UNLIMITED)),
      );
    }
  }

  /** A deaf mount is meant to have what it would have among all; what it may have besides is taken off the rest. */
  #partsOf(users: readonly BandwidthUser[]): Map<string, Bandwidth> {
    const demands = users.map(({ mount, stats }) => ({
      share: mount.shareName,
      up: stats?.uploading === true,
      down: stats?.downloading ?? (stats?.transfers ?? 0) > 0,
      limit: this.#limits.get(mount.shareName),
    }));
    const whole = this.#wholeBudget();
    const parts = divideBandwidth(whole, demands);
    const deaf = users.filter(({ mount }) => this.#deaf.has(mount)).map(({ mount }) => mount);
    if (deaf.length === 0) return parts;
    const taken = deaf.map((mount) =>
      faster(this.#deaf.get(mount) ?? UNLIMITED, parts.get(mount.shareName) ?? UNLIMITED),
    );
    const names = new Set(deaf.map(({ shareName }) => shareName));
    const listening = demands.filter(({ share }) => !names.has(share));
    return new Map([...parts, ...divideBandwidth(remaining(whole, taken), listening)]);
  }

  #wholeBudget(): Bandwidth {
    const { up, down } = this.#options.resolve(this.#budget);
    const sound = (value: number, fallback: number): number =>
      Number.isFinite(value) && value >= 0 ? value : fallback;
    return { up: sound(up, this.#budget.up), down: sound(down, this.#budget.down) };
  }

  /** Whether the mount has accepted just this. A fresh mount is unlimited; an adopted one's limit is unknown. */
  #has(mount: Mount, part: Bandwidth): boolean {
    const given = this.#given.get(mount) ?? (mount.adopted ? undefined : UNLIMITED);
    return !this.#deaf.has(mount) && given?.up === part.up && given.down === part.down;
  }

  /** False when the mount did not accept it; one that need not slow down is not asked. */
  async #slowDown(mount: Mount, part: Bandwidth): Promise<boolean> {
    const now = this.#deaf.get(mount) ?? this.#given.get(mount) ?? UNLIMITED;
    const target = slower(now, part);
    return (target.up === now.up && target.down === now.down) || this.#give(mount, target);
  }

  /** False when the mount did not accept it in time. */
  async #give(mount: Mount, part: Bandwidth): Promise<boolean> {
    if (this.#has(mount, part)) return true;
    if (this.#asked.has(mount)) return false;
    const most = faster(this.#deaf.get(mount) ?? this.#given.get(mount) ?? UNLIMITED, part);
    const isAccepted = await timeBoxOr(
      this.#options.clock,
      DEADLINE_MS,
      this.#tell(mount, part),
      () => false,
    );
    if (!isAccepted) this.#deaf.set(mount, most);
    return isAccepted;
  }

  /** Resolves with whether the mount has accepted it, however late that is. */
  async #tell(mount: Mount, part: Bandwidth): Promise<boolean> {
    const { clock, log } = this.#options;
    const end = new AbortController();
    this.#asked.add(mount);
    try {
      await mount.setBandwidth(part, clock.deadline(LONGEST_MS, end.signal));
      this.#given.set(mount, part);
      this.#deaf.delete(mount);
      return true;
    } catch (error) {
      log.debug({ share: mount.shareName, err: error }, 'bandwidth not set');
      return false;
    } finally {
      end.abort();
      this.#asked.delete(mount);
    }
  }
}
