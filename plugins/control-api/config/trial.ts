/**
 * A document on trial: the daemon takes it back by itself, unless somebody keeps it, or the page that sent it, or one
 * that an administrator opened, has reached the daemon within a minute and every share that was healthy before is
 * healthy a minute after it has the new settings. So a page that cuts itself off needs no other way in. A share that
 * sends its files by the former settings first has its minute from then on; one that has passed is not judged again.
 * One that changes who may enter has only to be reached, and stays from then on.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock, ConfigTrial, DownShare, ShareStatus } from 'mountkeeper';
import type { History, KeptTrial } from './history.ts';

export const TRIAL_MS = 60_000;
/**
 * How often is looked which shares still wait, and a taking back that failed, on a full disk for instance, tried again.
 */
const LOOK_MS = 10_000;

export interface TrialParts {
  readonly clock: Clock;
  readonly history: History;
  /** The shares that are configured now, as they are. One that the change has removed is none of them. */
  readonly shares: () => readonly ShareStatus[];
  /** Names of those that have the former settings still. */
  readonly waiting: () => readonly string[];
  /** Why the web server does not listen where the document says. */
  readonly webProblem: () => string | undefined;
  /** Called when the document is not to stay: `begins`, `failed` and `end` say how far that is. Does not reject. */
  readonly takeBack: (trial: KeptTrial, why: string) => Promise<unknown>;
  readonly changed: () => void;
}

interface Deadline {
  /** By the monotonic clock. */
  readonly at: number;
  /** The same for people, in milliseconds since the epoch. */
  readonly until: number;
}

interface Running extends KeptTrial {
  readonly reachedBy: Deadline;
  /** The shares that have not passed yet, by name. */
  readonly judged: Map<string, Deadline>;
  isReached: boolean;
  /** Why it goes back: it is not to stay any more. */
  why: string | undefined;
  /** The former document is being applied. */
  isGoingBack: boolean;
  /** Why taking it back failed, and when it is tried again. */
  failure: { readonly problem: string; readonly again: Deadline } | undefined;
  cancel: () => void;
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
    const { version, isReached } = running;
    const waiting = this.#waiting(running);
    const down = this.#down(running, waiting);
    const until = untilOf(running, { down, waiting });
    return { version, until, isReached, failed: down.map(({ share }) => share), down, waiting };
  }

  get kept(): KeptTrial | undefined {
    const running = this.#running;
    return running && keptOf(running);
  }

  /** Why the document on trial could not be taken back. */
  get problem(): string | undefined {
    return this.#running?.failure?.problem;
  }

  begin(trial: KeptTrial): void {
    this.#running?.cancel();
    const deadline = this.#in(TRIAL_MS);
    this.#running = {
      ...trial,
      reachedBy: deadline,
      judged: new Map(trial.healthy.map((name) => [name, deadline])),
      isReached: trial.isReached === true,
      why: undefined,
      isGoingBack: false,
      failure: undefined,
      cancel: () => undefined,
    };
    this.#look(this.#running);
  }

  /** False, too, while the web server is elsewhere: that a page reaches the former place proves nothing. */
  reached(version: string): boolean {
    if (this.#running?.version !== version || this.#parts.webProblem() !== undefined) return false;
    this.#running.isReached = true;
    if (this.#running.byReachAlone === true) {
      this.end();
      return true;
    }
    // A daemon that is started anew within the minute hears of it from nobody.
    this.#changed(this.#running);
    return true;
  }

  /** Ends the trial: the document is kept, or was taken back, or another one is in force. */
  end(): void {
    if (!this.#running) return;
    this.#running.cancel();
    this.#running = undefined;
    this.#parts.history.trial = undefined;
    this.#parts.changed();
  }

  /** False when that version is not on trial, or is being taken back. */
  keep(version: string): boolean {
    if (this.#running?.version !== version || this.#running.isGoingBack) return false;
    this.end();
    return true;
  }

  /** The former document is about to be applied: nobody can keep this one any more. False as above. */
  begins(version: string): boolean {
    if (this.#running?.version !== version || this.#running.isGoingBack) return false;
    this.#running.isGoingBack = true;
    return true;
  }

  /** It could not be taken back; that is tried again until it can, whatever becomes of the shares. */
  failed(version: string, { problem, why }: { readonly problem: string; readonly why: string }): void {
    const running = this.#running;
    if (running?.version !== version) return;
    Object.assign(running, { isGoingBack: false, why, failure: { problem, again: this.#in(LOOK_MS) } });
    this.#lookIn(running, LOOK_MS);
    this.#changed(running);
  }

  /** The daemon is stopping: the next one continues the trial. */
  suspend(): void {
    this.#running?.cancel();
    this.#running = undefined;
  }

  #in(ms: number): Deadline {
    const { clock } = this.#parts;
    return { at: clock.monotonic() + ms, until: clock.now() + ms };
  }

  /** Whatever a share is that is not healthy: nobody can list it, as before. */
  #down({ judged }: Running, waiting: readonly string[]): readonly DownShare[] {
    return this.#parts
      .shares()
      .filter(({ name, health }) => health !== 'healthy' && judged.has(name) && !waiting.includes(name))
      .map((share) => ({ share: share.name, hasFailed: hasFailed(share), reason: reasonOf(share) }));
  }

  #waiting({ judged }: Running): readonly string[] {
    return this.#parts.waiting().filter((name) => judged.has(name));
  }

  #lookIn(running: Running, ms: number): void {
    running.cancel();
    running.cancel = this.#parts.clock.after(ms, () => this.#look(running));
  }

  #look(running: Running): void {
    const { judged, reachedBy } = running;
    const now = this.#parts.clock.monotonic();
    const isDue = ({ at }: Deadline): boolean => at <= now;
    for (const name of this.#waiting(running)) judged.set(name, this.#in(TRIAL_MS));
    const due = [...judged].filter(([, deadline]) => isDue(deadline)).map(([name]) => name);
    running.why ??= this.#whyNot(running, due, isDue(reachedBy));
    if (running.why !== undefined) return void this.#parts.takeBack(running, running.why);
    for (const name of due) judged.delete(name);
    if (judged.size === 0 && isDue(reachedBy)) return this.end();
    const next = Math.min(
      ...[reachedBy, ...judged.values()].filter((one) => !isDue(one)).map(({ at }) => at),
    );
    this.#lookIn(running, Math.min(LOOK_MS, next - now));
    this.#changed(running);
  }

  /** Why it cannot stay; undefined where nothing is known against it. `due`: shares whose time is up. */
  #whyNot(running: Running, due: readonly string[], isReachOver: boolean): string | undefined {
    const down = this.#down(running, this.#waiting(running)).filter(({ share }) => due.includes(share));
    if (down.length > 0) return whyOf(down);
    if (!isReachOver || running.isReached) return undefined;
    return this.#parts.webProblem() ?? "no administrator's page has reached the daemon since";
  }

  #changed(running: Running): void {
    const { history, changed } = this.#parts;
    const kept = keptOf(running);
    // The file has all versions in it.
    if (!isDeepStrictEqual(history.trial, kept)) history.trial = kept;
    changed();
  }
}

function keptOf({ version, former, judged, isReached, byReachAlone = false }: Running): KeptTrial {
  return { version, former, healthy: [...judged.keys()], isReached, byReachAlone };
}

/** When it is decided; undefined while that hangs on the files which shares send first. */
function untilOf(
  { failure, isReached, reachedBy, judged }: Running,
  { down, waiting }: Pick<ConfigTrial, 'down' | 'waiting'>,
): number | undefined {
  if (failure) return failure.again.until;
  const ofDown = down.map(({ share }) => judged.get(share)?.until ?? reachedBy.until);
  if (ofDown.length > 0) return Math.min(...ofDown);
  if (!isReached) return reachedBy.until;
  if (waiting.length > 0) return undefined;
  return Math.max(reachedBy.until, ...[...judged.values()].map(({ until }) => until));
}

/** One that is neither mounted nor has failed is only on its way. */
function hasFailed({ health, mounted }: ShareStatus): boolean {
  return health === 'failed' || mounted;
}

function reasonOf({ mounted, healthMessage }: ShareStatus): string {
  return healthMessage ?? (mounted ? 'nothing of it can be read' : 'it is not mounted yet');
}

/** The reason of the first one: several are mostly down for the same. */
function whyOf([first, ...others]: readonly DownShare[]): string {
  const named = `the share '${first?.share ?? ''}' was healthy and is not any more: ${first?.reason ?? ''}`;
  const count = others.length;
  if (count === 0) return named;
  const more =
    count === 1 ? '1 more share is not healthy any more' : `${count} more shares are not healthy any more`;
  return [named, more].join('; ');
}
