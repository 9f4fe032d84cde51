/** How much of a processor a runner and all that it has started take in the long run. */

export interface ProcessorLimit {
  /** Of one core. */
  readonly mostShare: number;
  /** Over how long it is measured, each time from anew. */
  readonly windowMs: number;
}

/** What has low priority may have more for a while. */
const LIMIT: ProcessorLimit = { mostShare: 0.5, windowMs: 300_000 };

export class ProcessorShare {
  readonly #limit: ProcessorLimit;
  #since: { readonly atMs: number; busyMs: number } | undefined;
  #lastBusyMs = 0;

  constructor(limit = LIMIT) {
    this.#limit = limit;
  }

  /**
   * One look: `busyMs` is the time that they have had so far. Says what is wrong when a window is over in which it
   * was too much.
   */
  problem(busyMs: number, nowMs: number): string | undefined {
    this.#since ??= { atMs: nowMs, busyMs: 0 };
    const since = this.#since;
    // One whose parent was gone takes its time along when it ends.
    since.busyMs += Math.max(0, busyMs - this.#lastBusyMs);
    this.#lastBusyMs = busyMs;
    const tookMs = nowMs - since.atMs;
    const { mostShare, windowMs } = this.#limit;
    if (tookMs < windowMs) return undefined;
    this.#since = { atMs: nowMs, busyMs: 0 };
    const share = since.busyMs / tookMs;
    if (share <= mostShare) return undefined;
    return (
      `it took ${percent(share)} of a processor core over ${Math.round(tookMs / 1_000)} s; ` +
      `${percent(mostShare)} is the most`
    );
  }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
