/**
 * A document on trial: the daemon takes it back by itself after a while, unless somebody keeps it, or the
 * page that sent it, or one that an administrator opened, has reached the daemon since and every share that was healthy
 * before is healthy again. So a page that cuts itself off needs no other way in. Of a share that sends its files by the
 * former settings first nothing is known yet: the trial goes on until its time with the new ones is up.
 */
import type { Clock, ConfigTrial, DownShare, ShareStatus } from 'mountkeeper';
import type { History, KeptTrial } from './history.ts';

export const TRIAL_MS = 60_000;
/** A taking back that failed, on a full disk for instance, is tried again. */
const AGAIN_MS = 10_000;
/** Of more shares than these, the reason only says how many they are. */
const MOST_NAMED = 3;

export interface TrialParts {
  readonly clock: Clock;
  readonly history: History;
  /** The shares that are configured now, as they are. One that the change has removed is none of them. */
  readonly shares: () => readonly ShareStatus[];
  /** Names of those that have the former settings still. */
  readonly waiting: () => readonly string[];
  /** Called when the time is up and nobody has kept it. False where it failed. */
  readonly takeBack: (trial: KeptTrial, why: string) => Promise<boolean>;
  readonly changed: () => void;
}

interface Running extends KeptTrial {
  until: number;
  /** Shares that had the former settings when the time was up. */
  late: ReadonlySet<string>;
  cancel: () => void;
  isReached: boolean;
}

export class Trial {
  readonly #parts: TrialParts;
  #running: Running | undefined;

  constructor(parts: TrialParts) {
    this.#parts = parts;
  }

  get state(): ConfigTrial | undefined {
    const running = this.#running;
    if (!running) return undefined;
    const { version, until, isReached } = running;
    const down = this.#down(running);
    const waiting = this.#waiting(running);
    return { version, until, isReached, failed: down.map(({ share }) => share), down, waiting };
  }

  get kept(): KeptTrial | undefined {
    return this.#running;
  }

  begin(trial: KeptTrial): void {
    const { history, changed } = this.#parts;
    this.#running?.cancel();
    const isReached = trial.isReached === true;
    this.#running = { ...trial, until: 0, cancel: () => undefined, isReached, late: new Set() };
    this.#lasts(this.#running, TRIAL_MS);
    const { version, former, healthy } = trial;
    history.trial = { version, former, healthy, isReached };
    changed();
  }

  reached(version: string): boolean {
    if (this.#running?.version !== version) return false;
    this.#running.isReached = true;
    const { history, changed } = this.#parts;
    // A daemon that is started anew within the minute hears of it from nobody.
    if (history.trial) history.trial = { ...history.trial, isReached: true };
    changed();
    return true;
  }

  /** Ends the trial: the document is kept or was taken back. */
  end(): void {
    if (!this.#running) return;
    this.#running.cancel();
    this.#running = undefined;
    this.#parts.history.trial = undefined;
    this.#parts.changed();
  }

  /** The daemon is stopping: the next one continues the trial. */
  suspend(): void {
    this.#running?.cancel();
    this.#running = undefined;
  }

  /** Whatever a share is that is not healthy: nobody can list it, as before. */
  #down({ healthy }: KeptTrial): readonly DownShare[] {
    return this.#parts
      .shares()
      .filter(({ name, health }) => health !== 'healthy' && healthy.includes(name))
      .map((share) => ({ share: share.name, hasFailed: hasFailed(share), reason: reasonOf(share) }));
  }

  #waiting({ healthy }: KeptTrial): readonly string[] {
    return this.#parts.waiting().filter((name) => healthy.includes(name));
  }

  #lasts(running: Running, ms: number): void {
    const { clock } = this.#parts;
    running.until = clock.now() + ms;
    running.cancel = clock.after(ms, () => this.#timeIsUp());
  }

  #timeIsUp(): void {
    const running = this.#running;
    if (!running) return;
    const waiting = this.#waiting(running);
    const late = new Set([...running.late, ...waiting]);
    const down = this.#down(running).filter(({ share }) => !late.has(share));
    if (!running.isReached || down.length > 0) return this.#takeBack(running, down);
    if (late.size === 0) return this.end();
    // Once the last of them has the new settings, they all have as long as the others had.
    running.late = waiting.length > 0 ? late : new Set();
    this.#lasts(running, waiting.length > 0 ? AGAIN_MS : TRIAL_MS);
    this.#parts.changed();
  }

  #takeBack(running: Running, down: readonly DownShare[]): void {
    const why = down.length > 0 ? whyOf(down) : "no administrator's page has reached the daemon since";
    void this.#parts.takeBack(running, why).then((isDone) => {
      if (!isDone && this.#running === running)
        running.cancel = this.#parts.clock.after(AGAIN_MS, () => this.#timeIsUp());
    });
  }
}

/** One that is neither mounted nor has failed is only on its way. */
function hasFailed({ health, mounted }: ShareStatus): boolean {
  return health === 'failed' || mounted;
}

function reasonOf({ mounted, healthMessage }: ShareStatus): string {
  return healthMessage ?? (mounted ? 'nothing of it can be read' : 'it is not mounted yet');
}

function whyOf(down: readonly DownShare[]): string {
  const named = down
    .slice(0, MOST_NAMED)
    .map(({ share, reason }) => `the share '${share}' was healthy and is not any more: ${reason}`);
  const more = down.length - named.length;
  return [...named, ...(more > 0 ? [`${more} more shares are not healthy any more`] : [])].join('; ');
}
