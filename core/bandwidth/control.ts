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
import { divideBandwidth, remaining, slower } from './budget.ts';

const DEADLINE_MS = 2_000;
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
  /** Mounts that did not accept their last part: they keep the former one, at the others' expense. */
  readonly #deaf = new WeakSet<Mount>();
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
      const slowed = await Promise.all(
        users.map(({ mount }) =>
          this.#give(
            mount,
            slower(this.#given.get(mount) ?? UNLIMITED, parts.get(mount.shareName) ?? UNLIMITED),
          ),
        ),
      );
      // The next division subtracts what such a mount keeps; until then nobody may go faster.
      if (slowed.includes(false)) return;
      await Promise.all(users.map(({ mount }) => this.#give(mount, parts.get(mount.shareName) ?? UNLIMITED)));
    }
  }

  #partsOf(users: readonly BandwidthUser[]): Map<string, Bandwidth> {
    const deaf = users.filter(({ mount }) => this.#deaf.has(mount) && this.#given.has(mount));
    const listening = users.filter((user) => !deaf.includes(user));
    const kept = new Map(deaf.map(({ mount }) => [mount.shareName, this.#given.get(mount) ?? UNLIMITED]));
    const budget = remaining(this.#wholeBudget(), [...kept.values()]);
    const demands = listening.map(({ mount, stats }) => ({
      share: mount.shareName,
      up: stats?.uploading === true,
      down: stats?.downloading ?? (stats?.transfers ?? 0) > 0,
      limit: this.#limits.get(mount.shareName),
    }));
    return new Map([...kept, ...divideBandwidth(budget, demands)]);
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

  /** False when the mount did not accept it. */
  async #give(mount: Mount, part: Bandwidth): Promise<boolean> {
    const { clock, log } = this.#options;
    if (this.#has(mount, part)) return true;
    try {
      await mount.setBandwidth(part, clock.deadline(DEADLINE_MS));
      this.#given.set(mount, part);
      this.#deaf.delete(mount);
      return true;
    } catch (error) {
      this.#deaf.add(mount);
      log.debug({ share: mount.shareName, err: error }, 'bandwidth not set');
      return false;
    }
  }
}
