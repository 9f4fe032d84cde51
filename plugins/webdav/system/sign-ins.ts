/** Answers the proxy's questions about users of the machine, for as long as it runs. */
import { createSemaphore, logIgnored, rest } from 'mountkeeper';
import type { Clock, Logger, Processes, Semaphore } from 'mountkeeper';
import type { WebdavPaths } from '../exporter/paths.ts';
import { answerSystem, fetchSystem } from '../exporter/proxy-process.ts';
import type { SystemQuestion } from '../proxy/state.ts';
import { isRightPassword } from './password.ts';

/** Longer than the proxy keeps the request waiting. */
const FETCH_MS = 25_000;
const AGAIN_MS = 1_000;
const ANSWER_MS = 2_000;
/** At once, of each sort: whoever guesses waits for PAM, which takes no processor. */
const AT_ONCE = 8;
const LONGEST_MS = 15_000;

export interface SystemSignInsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  readonly paths: WebdavPaths;
  /** Those who may be asked about: the proxy, which faces the network, is not taken at its word. */
  readonly members: () => readonly string[];
}

export class SystemSignIns {
  readonly #options: SystemSignInsOptions;
  readonly #known: Semaphore;
  readonly #unknown: Semaphore;
  #end: AbortController | undefined;
  #problem: string | undefined;

  constructor(options: SystemSignInsOptions) {
    this.#options = options;
    const limit = { places: AT_ONCE, heldAtMostMs: LONGEST_MS, clock: options.clock };
    [this.#known, this.#unknown] = [createSemaphore(limit), createSemaphore(limit)];
  }

  /** Why no password can be found to be right; for people to read. Undefined: the last one could be asked about. */
  get problem(): string | undefined {
    return this.#problem;
  }

  start(): void {
    if (this.#end) return;
    const end = new AbortController();
    this.#end = end;
    void this.#run(end.signal);
  }

  /** What has been fetched is answered all the same. */
  stop(): void {
    this.#end?.abort();
    this.#end = undefined;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const { clock, log, paths } = this.#options;
    while (!signal.aborted) {
      const questions = await fetchSystem(paths, clock.deadline(FETCH_MS, signal)).catch(
        logIgnored(log, 'asking the WebDAV proxy who of this machine wants to come in'),
      );
      for (const question of questions ?? []) void this.#answer(question);
      if (!questions) await rest(clock, AGAIN_MS, signal);
    }
  }

  async #answer({ id, wasRight, ...asked }: SystemQuestion): Promise<void> {
    const { clock, log, paths } = this.#options;
    const leave = await (wasRight ? this.#known : this.#unknown).enter();
    const isRight = await this.#find(asked);
    leave();
    await answerSystem(paths, { id, isRight }, clock.deadline(ANSWER_MS)).catch(
      logIgnored(log, 'telling the WebDAV proxy whether a password is right'),
    );
  }

  async #find(asked: Pick<SystemQuestion, 'name' | 'password'>): Promise<boolean | null> {
    const { log, processes, members } = this.#options;
    if (!members().includes(asked.name)) return false;
    try {
      const isRight = await isRightPassword(asked, processes);
      this.#problem = undefined;
      return isRight;
    } catch (error) {
      const reason = (error as Error).message;
      if (reason !== this.#problem) log.error({ reason }, 'PAM could not be asked about a user over WebDAV');
      this.#problem = reason;
      return null;
    }
  }
}
