/**
 * A document on trial: the daemon takes it back by itself after a while, unless somebody keeps it, or the
 * page that sent it, or one that an administrator opened, has reached the daemon since and no healthy share has
 * failed. So a page that cuts itself off needs no other way in.
 */
import type { Clock, ConfigTrial, StatusRecord } from 'mountkeeper';
import type { History, KeptTrial } from './history.ts';

export const TRIAL_MS = 60_000;
/** A taking back that failed, on a full disk for instance, is tried again. */
const AGAIN_MS = 10_000;

export interface TrialParts {
  readonly clock: Clock;
  readonly history: History;
  readonly record: () => StatusRecord;
  /** Called when the time is up and nobody has kept it. False where it failed. */
  readonly takeBack: (trial: KeptTrial, why: string) => Promise<boolean>;
  readonly changed: () => void;
}

interface Running extends KeptTrial {
  readonly until: number;
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
    return (
      running && {
        version: running.version,
        until: running.until,
        isReached: running.isReached,
        failed: this.#failed(running),
      }
    );
  }

  get kept(): KeptTrial | undefined {
    return this.#running;
  }

  begin(trial: KeptTrial): void {
    const { clock, history, changed } = this.#parts;
    this.#running?.cancel();
    const cancel = clock.after(TRIAL_MS, () => this.#timeIsUp());
    const isReached = trial.isReached === true;
    this.#running = { ...trial, until: clock.now() + TRIAL_MS, cancel, isReached };
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

  #failed({ healthy }: KeptTrial): readonly string[] {
    const { shares } = this.#parts.record();
    return shares
      .filter(({ name, health }) => health === 'failed' && healthy.includes(name))
      .map(({ name }) => name);
  }

  #timeIsUp(): void {
    const running = this.#running;
    if (!running) return;
    const failed = this.#failed(running);
    if (running.isReached && failed.length === 0) return this.end();
    const why =
      failed.length > 0
        ? `these shares failed: ${failed.join(', ')}`
        : "no administrator's page has reached the daemon since";
    void this.#parts.takeBack(running, why).then((isDone) => {
      if (!isDone && this.#running === running)
        running.cancel = this.#parts.clock.after(AGAIN_MS, () => this.#timeIsUp());
    });
  }
}
