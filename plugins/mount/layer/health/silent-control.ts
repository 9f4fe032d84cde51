/**
 * Notices an rclone whose remote control has died while its mount answers: nothing that waits would go up, and
 * nothing that others change would be read anew, until somebody mounts the share again.
 */
import type { Clock } from 'mountkeeper';
import type { ActiveMount } from '../../lifecycle/active-mount.ts';

const ANSWER_MS = 3_000;
/** A busy machine may leave it without an answer for as long. */
const SILENT_MS = 20_000;
/** So long its open files are waited for, since they end with it. */
const IN_USE_MS = 60_000;

export type Controlled = Pick<ActiveMount, 'controlAnswers' | 'isIdle'>;

export class SilentControl<T extends Controlled> {
  readonly #clock: Clock;
  readonly #replace: (lower: T, reason: string) => void;
  #silent: { readonly lower: T; readonly sinceMs: number } | undefined;

  constructor(clock: Clock, replace: (lower: T, reason: string) => void) {
    this.#clock = clock;
    this.#replace = replace;
  }

  /** It has answered just now. */
  answered(): void {
    this.#silent = undefined;
  }

  /** To be called again and again while there are no figures from an rclone whose mount answers. Never rejects. */
  async check(lower: T): Promise<void> {
    if (await lower.controlAnswers(this.#clock.deadline(ANSWER_MS))) return this.answered();
    const nowMs = this.#clock.monotonic();
    if (this.#silent?.lower !== lower) this.#silent = { lower, sinceMs: nowMs };
    const silentMs = nowMs - this.#silent.sinceMs;
    if (silentMs < SILENT_MS || (silentMs < IN_USE_MS && (await isInUse(lower)))) return;
    this.#replace(lower, "rclone's remote control does not answer");
  }
}

/** What cannot be told counts as in use. */
function isInUse(lower: Controlled): Promise<boolean> {
  return lower.isIdle().then(
    (isIdle) => !isIdle,
    () => true,
  );
}
