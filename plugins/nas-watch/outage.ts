import type { Verdict } from './evidence.ts';

/** Silence that lasts this long, or that a second check confirms, is an outage if no bytes move meanwhile. */
const SILENT_FOR_MS = 4_000;
const NOTHING_MOVED_FOR_MS = 4_000;

export interface Outage {
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** A notification was sent. */
  readonly isTold: boolean;
}

export interface Moment {
  /** Milliseconds since the epoch. */
  readonly now: number;
  readonly monotonicMs: number;
}

/** One connection: offline only after lasting or confirmed silence, online again with the first answer. */
export class ConnectionWatch {
  #silentSince: Moment | undefined;
  #isConfirmed = false;
  #movedAtMs = -Infinity;
  #outage: Outage | undefined;
  /** On the monotonic clock, which no one sets; undefined until a former daemon's outage has been looked at. */
  #beganAtMs: number | undefined;
  #isSeen = false;

  /**
   * `former`: an outage that a former daemon knew; it counts once silence is seen again, and ends with the
   * first answer.
   */
  constructor(former?: Outage) {
    this.#outage = former;
  }

  get outage(): Outage | undefined {
    return this.#outage;
  }

  /**
   * How long the outage has lasted, in milliseconds. The wall clock counts only for the time before this daemon, if a
   * former one knew of it.
   */
  lastedMs({ now, monotonicMs }: Moment): number {
    if (this.#outage === undefined) return 0;
    this.#beganAtMs ??= monotonicMs - Math.max(0, now - this.#outage.since);
    return monotonicMs - this.#beganAtMs;
  }

  /** True for an outage that this daemon has seen itself. */
  get isOffline(): boolean {
    return this.#outage !== undefined && this.#isSeen;
  }

  /** Call it when bytes went to or came from the remote. */
  moved(at: Moment): void {
    this.#movedAtMs = at.monotonicMs;
  }

  /** True when a second check was made during this silence. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  /** Call it when a second check found silence, too. */
  confirm(): void {
    this.#isConfirmed = this.#silentSince !== undefined;
  }

  /** Takes the current evidence. Returns the outage that has just ended, if any. */
  judge(
    verdict: Verdict,
    at: Moment,
  ): { readonly began?: Outage; readonly ended?: Outage & { readonly lastedMs: number } } {
    if (verdict !== 'silent') {
      this.#silentSince = undefined;
      this.#isConfirmed = false;
    }
    const lastedMs = this.lastedMs(at);
    if (verdict === 'answers') return this.#answered(lastedMs);
    if (verdict === 'unknown' || this.isOffline) return {};
    this.#silentSince ??= at;
    const isLasting = this.#isConfirmed || at.monotonicMs - this.#silentSince.monotonicMs >= SILENT_FOR_MS;
    if (!isLasting || at.monotonicMs - this.#movedAtMs < NOTHING_MOVED_FOR_MS) return {};
    if (this.#outage === undefined) {
      this.#outage = { since: this.#silentSince.now, isTold: false };
      this.#beganAtMs = this.#silentSince.monotonicMs;
    }
    this.#isSeen = true;
    return { began: this.#outage };
  }

  told(): void {
    if (this.#outage) this.#outage = { ...this.#outage, isTold: true };
  }

  #answered(lastedMs: number): { readonly ended?: Outage & { readonly lastedMs: number } } {
    const ended = this.#outage;
    this.#outage = undefined;
    this.#beganAtMs = undefined;
    this.#isSeen = false;
    return ended ? { ended: { ...ended, lastedMs } } : {};
  }
}
