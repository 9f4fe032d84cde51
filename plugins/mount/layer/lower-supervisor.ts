/**
 * Keeps an rclone running below a share's overlay: one that dies or hangs is replaced, as often as
 * necessary, while the overlay stays mounted. Users only notice that the remote cannot be reached for a
 * moment.
 */
import { pause } from 'mountkeeper';
import type { Clock, Logger } from 'mountkeeper';
import type { ActiveMount } from '../lifecycle/active-mount.ts';

/**
 * Pause after repeated failures, in milliseconds: none after the first, because most ends are sudden
 * crashes; then doubling from the first to the longest.
 */
const FIRST_REST_MS = 250;
const LONGEST_REST_MS = 5_000;
/** An rclone that lived at least this long did not fail at its start. */
const SETTLED_MS = 2_000;

export interface LowerSupervisorOptions {
  readonly shareName: string;
  /**
   * Starts another rclone and moves it to its place; rejects with a plain sentence. The former one has
   * ended by then.
   */
  readonly start: (signal: AbortSignal) => Promise<ActiveMount>;
  /** Called with each new rclone before anybody else gets it. */
  readonly onUp: (lower: ActiveMount) => void;
  /** `wasSettled`: it had worked for a while, so another one is expected within a second. */
  readonly onDown: (wasSettled: boolean) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

export class LowerSupervisor {
  readonly #options: LowerSupervisorOptions;
  readonly #end = new AbortController();
  #active: ActiveMount | undefined;
  #problem = 'rclone has not been started yet';
  #failure: Error | undefined;
  #failures = 0;
  #isFailing = false;
  #sinceMs = 0;
  #running: Promise<void> | undefined;
  #waiting: (() => void)[] = [];

  constructor(options: LowerSupervisorOptions) {
    this.#options = options;
  }

  /** The current rclone; undefined while there is none. */
  get living(): ActiveMount | undefined {
    return this.#active;
  }

  /** Why there is none, as a plain sentence. */
  get problem(): string {
    return this.#problem;
  }

  /** Whether there is none and the last one could not be started, so that another is not expected within a second. */
  get isFailing(): boolean {
    return this.#active === undefined && this.#isFailing;
  }

  /** Takes over an rclone that is already in its place. */
  adopt(lower: ActiveMount): void {
    this.#hold(lower);
  }

  /** Begins without an rclone and starts one in the background. */
  begin(): void {
    this.#isFailing = true;
    this.#run();
  }

  /** Resolves with the current rclone; when the signal ends the wait, rejects with why there is none. */
  async obtain(signal: AbortSignal): Promise<ActiveMount> {
    while (!this.#active) {
      if (this.#failure) throw this.#failure;
      if (signal.aborted || this.#end.signal.aborted) throw new Error(this.#problem);
      await new Promise<void>((resolve) => {
        this.#waiting.push(resolve);
        signal.addEventListener('abort', () => resolve(), { once: true });
      });
    }
    return this.#active;
  }

  /** Ends an rclone that hangs; the next one is started automatically. */
  replace(lower: ActiveMount, reason: string): void {
    if (this.#active !== lower || this.#end.signal.aborted) return;
    this.#options.log.warn({ share: this.#options.shareName, reason }, 'rclone is replaced below the share');
    this.#lose(lower, reason);
  }

  /** Starts no further rclone. Resolves with the one that the caller must end. */
  async stop(): Promise<ActiveMount | undefined> {
    this.#end.abort();
    this.#tell();
    await this.#running;
    return this.#active;
  }

  #hold(lower: ActiveMount): void {
    const { clock, log, onUp, shareName } = this.#options;
    this.#active = lower;
    this.#failure = undefined;
    this.#isFailing = false;
    this.#sinceMs = clock.monotonic();
    onUp(lower);
    this.#tell();
    void lower.exited.then((reason) => {
      if (this.#active !== lower || this.#end.signal.aborted) return;
      log.warn({ share: shareName, reason }, 'rclone has ended below the share and is restarted');
      this.#lose(lower, reason);
    });
  }

  #lose(lower: ActiveMount, reason: string): void {
    const { clock, log, onDown, shareName } = this.#options;
    const wasSettled = clock.monotonic() - this.#sinceMs >= SETTLED_MS;
    if (wasSettled) this.#failures = 0;
    this.#problem = reason;
    this.#active = undefined;
    onDown(wasSettled);
    this.#run(() =>
      lower
        .kill()
        .catch((error: unknown) => log.error({ share: shareName, err: error }, 'former rclone not cleared')),
    );
  }

  #run(before: () => Promise<void> = () => Promise.resolve()): void {
    this.#running = (this.#running ?? Promise.resolve()).then(before).then(() => this.#startUntilUp());
  }

  async #startUntilUp(): Promise<void> {
    const { clock, log, shareName, start } = this.#options;
    const { signal } = this.#end;
    while (!this.#active && !signal.aborted) {
      if (this.#failures > 0)
        await pause(clock, Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** (this.#failures - 1)), signal);
      if (signal.aborted) return;
      this.#failures += 1;
      try {
        this.#hold(await start(signal));
      } catch (error) {
        if (signal.aborted) return;
        const { message } = error as Error;
        if (message !== this.#problem)
          log.warn(
            { share: shareName, reason: message },
            'rclone could not be started below the share; trying again',
          );
        this.#problem = message;
        this.#failure = error as Error;
        this.#isFailing = true;
        this.#tell();
      }
    }
  }

  #tell(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const tell of waiting) tell();
  }
}
