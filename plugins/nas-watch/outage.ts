import type { Verdict } from './evidence.ts';

/**
 * Silence that lasts this long, or that a second look confirms, is an outage when nothing moves meanwhile.
 */
const SILENT_FOR_MS = 4_000;
const NOTHING_MOVED_FOR_MS = 4_000;

export interface Outage {
  /** Milliseconds since the epoch. */
  readonly since: number;
  /** People have been told. */
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
  #isSeen = false;

  /**
   * `former`: an outage that a former daemon knew of; it counts once silence is seen again, or ends with the
   * first answer.
   */
  constructor(former?: Outage) {
    this.#outage = former;
  }

  get outage(): Outage | undefined {
    return this.#outage;
  }

  /** An outage that this daemon has seen itself. */
  get isOffline(): boolean {
    return this.#outage !== undefined && this.#isSeen;
  }

  /** Bytes went to or came from the remote. */
  moved(at: Moment): void {
    this.#movedAtMs = at.monotonicMs;
  }

  /** A second look has been taken in this silence. */
  get isConfirmed(): boolean {
    return this.#isConfirmed;
  }

  /** A second look found silence, too. */
  confirm(): void {
    this.#isConfirmed = this.#silentSince !== undefined;
  }

  /** Takes in what is known now. Returns the outage that has just ended, if one has. */
  judge(verdict: Verdict, at: Moment): { readonly began?: Outage; readonly ended?: Outage } {
    if (verdict !== 'silent') {
      this.#silentSince = undefined;
      this.#isConfirmed = false;
    }
    if (verdict === 'answers') return this.#answered();
    if (verdict === 'unknown' || this.isOffline) return {};
    this.#silentSince ??= at;
    const isLasting = this.#isConfirmed || at.monotonicMs - this.#silentSince.monotonicMs >= SILENT_FOR_MS;
    if (!isLasting || at.monotonicMs - this.#movedAtMs < NOTHING_MOVED_FOR_MS) return {};
    this.#outage ??= { since: this.#silentSince.now, isTold: false };
    this.#isSeen = true;
    return { began: this.#outage };
  }

  told(): void {
    if (this.#outage) this.#outage = { ...this.#outage, isTold: true };
  }

  #answered(): { readonly ended?: Outage } {
    const ended = this.#outage;
    this.#outage = undefined;
    this.#isSeen = false;
    return ended ? { ended } : {};
  }
}
