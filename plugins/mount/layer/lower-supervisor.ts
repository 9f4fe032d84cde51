/**
 * Keeps an rclone below a share's overlay: one that dies or hangs is replaced by another one, again and
 * again, while the overlay above stays as it is. Nobody above is told more than that the remote cannot be
 * asked just now.
 */
import type { Clock, Logger } from 'mountkeeper';
import type { ActiveMount } from '../lifecycle/active-mount.ts';

/**
 * Rest after the n-th failure in a row, in milliseconds: none after the first, since most ends are sudden
 * deaths.
 */
const FIRST_REST_MS = 250;
const LONGEST_REST_MS = 5_000;
/** One that lived as long did not fail at its start. */
const SETTLED_MS = 2_000;

export interface LowerSupervisorOptions {
  readonly shareName: string;
  /**
   * Starts another rclone and puts it in its place; rejects with a plain sentence. No former one lives then.
   */
  readonly start: (signal: AbortSignal) => Promise<ActiveMount>;
  /** Told of each new one before anybody else has it. */
  readonly onUp: (lower: ActiveMount) => void;
  readonly onDown: () => void;
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
  #sinceMs = 0;
  #running: Promise<void> | undefined;
  #waiting: (() => void)[] = [];

  constructor(options: LowerSupervisorOptions) {
    this.#options = options;
  }

  /** The rclone of the moment; undefined while there is none. */
  get living(): ActiveMount | undefined {
    return this.#active;
  }

  /** Why there is none, in plain words. */
  get problem(): string {
    return this.#problem;
  }

  /** One that is there already. */
  adopt(lower: ActiveMount): void {
    this.#hold(lower);
  }

  /** Begins without one: it comes when it can. */
  begin(): void {
    this.#run();
  }

  /**
   * Resolves with the rclone of the moment, or rejects with why there is none when the signal ends the wait.
   */
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

  /** Ends one that hangs; the next one follows by itself. */
  replace(lower: ActiveMount, reason: string): void {
    if (this.#active !== lower || this.#end.signal.aborted) return;
    this.#options.log.warn({ share: this.#options.shareName, reason }, 'rclone is replaced below the share');
    this.#lose(lower, reason);
  }

  /** No other one is started from now on. Resolves with what is to be ended. */
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
    this.#sinceMs = clock.monotonic();
    onUp(lower);
    this.#tell();
    void lower.exited.then((reason) => {
      if (this.#active !== lower || this.#end.signal.aborted) return;
      log.warn({ share: shareName, reason }, 'rclone has ended below the share and is started anew');
      this.#lose(lower, reason);
    });
  }

  #lose(lower: ActiveMount, reason: string): void {
    const { clock, log, onDown, shareName } = this.#options;
    if (clock.monotonic() - this.#sinceMs >= SETTLED_MS) this.#failures = 0;
    this.#problem = reason;
    this.#active = undefined;
    onDown();
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
        await clock
          .sleep(Math.min(LONGEST_REST_MS, FIRST_REST_MS * 2 ** (this.#failures - 1)), signal)
          .catch(() => undefined);
      if (signal.aborted) return;
      this.#failures += 1;
      try {
        this.#hold(await start(signal));
      } catch (error) {
        if (signal.aborted) return;
        const { message } = error as Error;
        if (message !== this.#problem)
          log.warn({ share: shareName, reason: message }, 'no rclone below the share, it is tried again');
        this.#problem = message;
        this.#failure = error as Error;
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
