/**
 * Keeps one long-lived server process running: adopts the process of a former daemon when it has the wanted
 * settings, otherwise starts one; restarts it with back-off when it ends; and always has a plain sentence
 * about why it does not run.
 */
import { pause } from '../../platform/deadline.ts';
import type { Clock, Logger, ManagedProcess, Processes, ProcessSpec } from '../../contract/platform.ts';
import { reasonOf } from '../reason-of.ts';

const FIRST_BACKOFF_MS = 100;
const LONGEST_BACKOFF_MS = 5_000;
/** After this long a server's end no longer counts as an early failure. */
const SETTLED_MS = 30_000;
const ANSWER_MS = 1_500;
const PATIENCE = 5;
const STARTING = 'it is starting';

export interface ManagedServerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly key: string;
  readonly graceMs: number;
  /** Prepares files and returns what to run now. Rejects with a plain sentence when it cannot run. */
  readonly plan: () => Promise<ProcessSpec>;
  /** Resolves once the server answers clients. */
  readonly ready: (process: ManagedProcess, signal: AbortSignal) => Promise<void>;
  /**
   * Sends a client's request and rejects when it would be refused or not answered; ended by the signal.
   * Used by `look`.
   */
  readonly ask?: (signal: AbortSignal) => Promise<void>;
  /** How long an answer may take; default 1,500 ms. */
  readonly answerMs?: number;
  /** Cleans up after the server; called after each end and before each start, while none of it is running. */
  readonly cleanUp: () => Promise<void>;
  /** Lines of its output that say nothing of why it ended; may hold what strangers sent. Never told nor logged. */
  readonly isNoise?: (line: string) => boolean;
}

export interface ManagedServer {
  /** The living process, even while it does not answer yet. */
  readonly process: ManagedProcess | undefined;
  /** Why it does not serve; undefined while it does. */
  readonly problem: string | undefined;
  /** True from when it is ready until it ends or a check finds that it does not answer. */
  readonly isAnswering: boolean;
  /** True until the first start or adoption has succeeded or failed. */
  readonly isStarting: boolean;
  /** Starts keeping it running; returns at once. */
  start(): void;
  /**
   * Reads the wanted settings again: retries at once what waits, replaces a process whose settings differ.
   */
  renew(): void;
  /**
   * Checks the server; call it every few seconds. A process that lives but does not answer `PATIENCE`
   * checks in a row is ended, and so restarted.
   */
  look(signal: AbortSignal): Promise<void>;
  /** Leaves the process for the next daemon to adopt. */
  release(): Promise<void>;
  /** Ends the process, whether this daemon or a former one started it. */
  stop(): Promise<void>;
}

export function manageServer(options: ManagedServerOptions): ManagedServer {
  return new Keeper(options);
}

class Keeper implements ManagedServer {
  readonly #options: ManagedServerOptions;
  readonly #end = new AbortController();
  #wake = new AbortController();
  #process: ManagedProcess | undefined;
  #problem: string | undefined = STARTING;
  #failures = 0;
  #isAnswering = false;
  #silences = 0;
  #running: Promise<void> | undefined;

  constructor(options: ManagedServerOptions) {
    this.#options = options;
  }

  get process(): ManagedProcess | undefined {
    return this.#process?.isAlive() === true ? this.#process : undefined;
  }

  get problem(): string | undefined {
    return this.#problem;
  }

  get isAnswering(): boolean {
    return this.#isAnswering && !this.#end.signal.aborted && this.process !== undefined;
  }

  get isStarting(): boolean {
    return this.#problem === STARTING;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  renew(): void {
    this.#wake.abort();
  }

  async look(signal: AbortSignal): Promise<void> {
    const { clock, log, key, ask, answerMs = ANSWER_MS } = this.#options;
    const process = this.process;
    if (!process || this.#problem !== undefined || !ask) return;
    try {
      await ask(clock.deadline(answerMs, signal));
      this.#heard(process, true);
    } catch (error) {
      if (signal.aborted || this.process !== process) return;
      this.#heard(process, false);
      log.warn({ key, reason: reasonOf(error), silences: this.#silences }, 'server does not answer');
      if (this.#silences >= PATIENCE) process.signal('SIGKILL');
    }
  }

  #heard(process: ManagedProcess, isAnswering: boolean): void {
    if (this.process !== process) return;
    this.#isAnswering = isAnswering;
    this.#silences = isAnswering ? 0 : this.#silences + 1;
  }

  async release(): Promise<void> {
    await this.#finish();
    this.#process?.release();
  }

  async stop(): Promise<void> {
    await this.#finish();
    const { processes, key } = this.#options;
    await this.#endProcess(this.#process ?? (await processes.adopt(key)));
    this.#problem = 'it was stopped';
  }

  async #finish(): Promise<void> {
    this.#end.abort();
    this.#wake.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    while (!this.#end.signal.aborted) {
      this.#wake = new AbortController();
      try {
        await this.#serve();
      } catch (error) {
        this.#fail(error);
      }
      if (!this.#end.signal.aborted) await this.#rest();
    }
  }

  /** From the start or the adoption to the end of the process. */
  async #serve(): Promise<void> {
    const { clock, log, key, ready } = this.#options;
    const spec = await this.#plan();
    if (this.#end.signal.aborted) return;
    const process = await this.#obtain(spec);
    const startedAt = clock.monotonic();
    try {
      await Promise.race([
        ready(process, this.#end.signal),
        process.exited.then(({ lastLines }) =>
          Promise.reject(new Error(endSentence(this.#telling(lastLines)))),
        ),
      ]);
    } catch (error) {
      if (this.#end.signal.aborted) return;
      await this.#endProcess(process);
      throw error;
    }
    this.#problem = undefined;
    this.#heard(process, true);
    log.info({ key, pid: process.pid, adopted: process.adopted }, 'server is up');
    if (!(await this.#outlives(process, spec))) return;
    if (clock.monotonic() - startedAt >= SETTLED_MS) this.#failures = 0;
    const { code, signal, lastLines } = await process.exited;
    this.#isAnswering = false;
    log.warn(
      { key, code, signal, lastLines: this.#telling(lastLines).slice(-3) },
      'server ended by itself and is restarted',
    );
    await this.#options.cleanUp();
    this.#problem = 'it ended and is being restarted';
    this.#failures += 1;
  }

  #telling(lines: readonly string[]): readonly string[] {
    const { isNoise } = this.#options;
    return isNoise ? lines.filter((line) => !isNoise(line)) : lines;
  }

  /**
   * When no plan can be made, the former daemon's server is ended: it must not go on exporting by old
   * settings.
   */
  async #plan(): Promise<ProcessSpec> {
    const { processes, key, plan } = this.#options;
    try {
      return await plan();
    } catch (error) {
      const former = await processes.adopt(key);
      if (former && !this.#end.signal.aborted) await this.#endProcess(former);
      throw error;
    }
  }

  /** True when the process ended by itself; false when it was replaced or is no longer wanted. */
  async #outlives(process: ManagedProcess, spec: ProcessSpec): Promise<boolean> {
    for (;;) {
      const isOver = await Promise.race([process.exited.then(() => true), this.#woken().then(() => false)]);
      if (isOver || this.#end.signal.aborted) return isOver && !this.#end.signal.aborted;
      this.#wake = new AbortController();
      // It runs on as it is; what is wrong with the plan is told when it is needed.
      const wanted = await this.#options.plan().catch(() => spec);
      if (wanted.fingerprint === spec.fingerprint) continue;
      this.#options.log.info({ key: spec.key }, 'server is restarted with other settings');
      await this.#endProcess(process);
      this.#failures = 0;
      return false;
    }
  }

  async #obtain(spec: ProcessSpec): Promise<ManagedProcess> {
    const { processes, key } = this.#options;
    const former = await processes.adopt(key);
    if (former?.fingerprint === spec.fingerprint) {
      this.#process = former;
      return former;
    }
    await this.#endProcess(former);
    this.#process = await processes.start(spec);
    return this.#process;
  }

  async #endProcess(process: ManagedProcess | undefined): Promise<void> {
    this.#isAnswering = false;
    await process?.stop({ graceMs: this.#options.graceMs });
    await this.#options
      .cleanUp()
      .catch((error: unknown) =>
        this.#options.log.warn({ key: this.#options.key, err: error }, 'clean-up after the server failed'),
      );
    this.#process = undefined;
  }

  #fail(error: unknown): void {
    const reason = reasonOf(error);
    if (reason !== this.#problem)
      this.#options.log.error(
        { key: this.#options.key, reason },
        'server does not run; the daemon tries again',
      );
    this.#problem = reason;
    this.#failures += 1;
  }

  /** A very short pause after the first failure in a row, then longer and longer ones. */
  async #rest(): Promise<void> {
    if (this.#failures === 0) return;
    const ms = Math.min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (this.#failures - 1));
    await pause(this.#options.clock, ms, this.#wake.signal);
  }

  #woken(): Promise<void> {
    const { signal } = this.#wake;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
  }
}

function endSentence(lines: readonly string[]): string {
  const last = lines.filter((line) => line.trim() !== '').at(-1);
  return last === undefined
    ? 'it ended at once without saying why'
    : `it ended at once (${last.trim().slice(0, 200)})`;
}
