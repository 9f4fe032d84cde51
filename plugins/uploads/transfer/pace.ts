/**
 * How often an upper folder is looked at. A look costs some 25 µs of processor time an entry, and takes at most one
 * part in fifty of it. That is counted by entries, not by the clock: on a busy machine a look at fifty files takes
 * a second and costs no more than ever, and what people had saved would wait for the next one.
 */
const REST_MS_PER_ENTRY = 1.25;
const LONGEST_REST_MS = 10_000;
const LOOK_EVERY_MS = 1_000;
export const IDLE_LOOK_EVERY_MS = 5_000;

export interface Looked {
  /** Entries of the upper folder. */
  readonly entries: number;
  /** How long it took by the clock. */
  readonly tookMs: number;
}

/** For so long a look's result will do for who asks often. Where the disk is slow, at least half of the time. */
export function freshMs({ entries, tookMs }: Looked): number {
  return Math.min(Math.max(entries * REST_MS_PER_ENTRY, tookMs), LONGEST_REST_MS);
}

export interface State {
  /** Something is known to be there for a look. */
  readonly isDue: boolean;
  /** Nothing waits. */
  readonly isIdle: boolean;
}

/** The pause after a look. */
export function restMs(looked: Looked, { isDue, isIdle }: State): number {
  if (isDue) return freshMs(looked);
  return Math.max(isIdle ? IDLE_LOOK_EVERY_MS : LOOK_EVERY_MS, freshMs(looked));
}
