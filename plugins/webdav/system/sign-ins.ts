/** Answers the proxy's questions about users of the machine, for as long as it runs. */
import { createSemaphore, logIgnored, rest } from 'mountkeeper';
import type { Clock, Logger, Processes, Semaphore } from 'mountkeeper';
import type { WebdavPaths } from '../exporter/paths.ts';
import { answerSystem, fetchSystem } from '../exporter/proxy-process.ts';
import { SYSTEM_ANSWER_MS } from '../proxy/state.ts';
import type { SystemQuestion } from '../proxy/state.ts';
import { isRightPassword } from './password.ts';

/** Longer than the proxy keeps the request waiting. */
const FETCH_MS = 25_000;
const AGAIN_MS = 1_000;
const ANSWER_MS = 2_000;
/** At once, of each sort: whoever guesses waits for PAM, which takes no processor. */
const AT_ONCE = 8;
const LONGEST_MS = 15_000;
/** More than a sound proxy asks at a time; what is above it stays unanswered. */
const MOST_HELD = 1_100;
/** One run of the program that was too slow says little of the next one. */
const PROBLEM_MS = 60_000;
/** An account that every machine has, and nobody comes in by. */
const NOBODY = 'nobody';

export interface SystemSignInsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  readonly paths: WebdavPaths;
  /**
   * Those who may be asked about: the proxy, which faces the network, is not taken at its word. Undefined: not known
   * yet.
   */
  readonly members: () => readonly string[] | undefined;
}

export class SystemSignIns {
  readonly #options: SystemSignInsOptions;
  readonly #known: Semaphore;
  readonly #unknown: Semaphore;
  #end: AbortController | undefined;
  #isClosed = false;
  /** Questions that were fetched and are not answered yet. */
  #held = 0;
  #problem: { readonly reason: string; readonly untilMs: number } | undefined;

  constructor(options: SystemSignInsOptions) {
    this.#options = options;
    const limit = { places: AT_ONCE, heldAtMostMs: LONGEST_MS, clock: options.clock };
    [this.#known, this.#unknown] = [createSemaphore(limit), createSemaphore(limit)];
  }

  /** Why no password could be found to be right within the last minute; for people to read. */
  get problem(): string | undefined {
    const { reason, untilMs = 0 } = this.#problem ?? {};
    return this.#options.clock.monotonic() < untilMs ? reason : undefined;
  }

  start(): void {
    if (this.#end || this.#isClosed) return;
    const end = new AbortController();
    this.#end = end;
    void this.#run(end.signal);
  }

  /** What has been fetched is answered all the same. */
  stop(): void {
    this.#end?.abort();
    this.#end = undefined;
  }

  /** The same, for good. */
  close(): void {
    this.#isClosed = true;
    this.stop();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, paths } = this.#options;
    while (!signal.aborted) {
      const questions = await fetchSystem(paths, clock.deadline(FETCH_MS, signal)).catch(
        logIgnored(log, 'asking the WebDAV proxy who of this machine wants to come in'),
      );
      for (const question of questions?.slice(0, MOST_HELD - this.#held) ?? []) void this.#hold(question);
      if (!questions) await rest(clock, AGAIN_MS, signal);
    }
  }

  async #hold(question: SystemQuestion): Promise<void> {
    this.#held += 1;
    await this.#answer(question);
    this.#held -= 1;
  }

  async #answer({ id, wasRight, ...asked }: SystemQuestion): Promise<void> {
    const { clock, log, paths } = this.#options;
    const endMs = clock.monotonic() + SYSTEM_ANSWER_MS;
    const leave = await (wasRight ? this.#known : this.#unknown).enter();
    // The proxy has told the client by then that nobody can say.
    const isRight = clock.monotonic() < endMs ? await this.#find(asked) : null;
    await answerSystem(paths, { id, isRight }, clock.deadline(ANSWER_MS)).catch(
      logIgnored(log, 'telling the WebDAV proxy whether a password is right'),
    );
    leave();
  }

  async #find(asked: Pick<SystemQuestion, 'name' | 'password'>): Promise<boolean | null> {
    const { clock, log, processes, members } = this.#options;
    const known = members();
    if (!known) return null;
    const isMember = known.includes(asked.name);
    try {
      // Of strangers PAM hears nothing. Whether it answers at all, and how late, is to be the same for everybody.
      const isRight = await isRightPassword({ ...asked, ...(!isMember && { name: NOBODY }) }, processes);
      this.#problem = undefined;
      return isMember && isRight;
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== this.problem) log.error({ reason }, 'PAM could not be asked about a user over WebDAV');
      this.#problem = { reason, untilMs: clock.monotonic() + PROBLEM_MS };
      return null;
    }
  }
}
