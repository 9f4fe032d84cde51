/**
 * Starts and stops the targets of shares so that each is as its share is: one systemctl at a time, each time for
 * what is wanted by then.
 */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from 'mountkeeper';
import type { Clock, Logger, Processes } from 'mountkeeper';
import { instanceName, instancesIn, targetOf } from './unit-name.ts';

const SYSTEMCTL_MS = 10_000;
/** How long a target that a former daemon left up waits for its share, which is adopted meanwhile. */
const ADOPT_MS = 60_000;
/** systemctl's exit code where the unit is not loaded, and so is not up. */
const NOT_LOADED = 5;

export interface TargetsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  /** `/run/mountkeeper`; what lies in it goes with the service. */
  readonly runtimeDir: string;
}

export class ShareTargets {
  readonly #options: TargetsOptions;
  readonly #folder: string;
  readonly #beganMs: number;
  #wanted: ReadonlySet<string> = new Set();
  /** Mounted, whether they can be listed or not: a target that is up stays up. */
  #mounted: ReadonlySet<string> = new Set();
  /** Left, and not known to be back: what an older snapshot says of them counts no more. */
  readonly #away = new Set<string>();
  /** To be stopped, even where they are wanted again by now. */
  readonly #leaving = new Set<string>();
  /** Whose start was tried; true where systemctl took it. */
  readonly #started = new Map<string, boolean>();
  /** Of a former daemon; undefined before they are known. */
  #former: Set<string> | undefined;
  /** What was said last of each that failed. */
  readonly #said = new Map<string, string>();
  #isClosed = false;
  #isDue = false;
  #working: Promise<void> | undefined;

  constructor(options: TargetsOptions) {
    this.#options = options;
    this.#folder = join(options.runtimeDir, 'shares');
    this.#beganMs = options.clock.monotonic();
  }

  /**
   * `shares`: those that are up, `mounted`: those and the ones that are mounted and cannot be listed just now, by a
   * snapshot that may be older than the last call of `left`. Resolves when the targets are so, as far as they can be;
   * never rejects. What failed is tried again at the next call.
   */
  follow(shares: readonly string[], mounted = shares): Promise<void> {
    if (this.#isClosed) return this.#settle();
    const up = new Set(shares.map(instanceName));
    for (const one of this.#away) if (!up.has(one)) this.#away.delete(one);
    this.#wanted = without(up, this.#away);
    this.#mounted = new Set(mounted.map(instanceName));
    return this.#settle();
  }

  /** The share is up no more, for however short a time. As `follow`. */
  left(share: string): Promise<void> {
    const instance = instanceName(share);
    this.#away.add(instance);
    this.#leaving.add(instance);
    this.#wanted = without(this.#wanted, this.#away);
    return this.#settle();
  }

  /** The share is up again; the next snapshot starts its target. */
  returned(share: string): void {
    this.#away.delete(instanceName(share));
  }

  /** All are stopped, and stay so. As `follow`. */
  close(): Promise<void> {
    this.#isClosed = true;
    this.#wanted = new Set();
    this.#mounted = new Set();
    return this.#settle();
  }

  #settle(): Promise<void> {
    this.#isDue = true;
    this.#working ??= this.#work().finally(() => (this.#working = undefined));
    return this.#working;
  }

  async #work(): Promise<void> {
    while (this.#isDue) {
      this.#isDue = false;
      await this.#round();
    }
  }

  async #round(): Promise<void> {
    if (!this.#former && !(await this.#attempt('', async () => (this.#former = await this.#running()))))
      return;
    for (const one of this.#toStop()) if (!(await this.#attempt(one, () => this.#stop(one)))) return;
    for (const one of this.#wanted) {
      // It may have left while the others were started.
      const isDue = this.#wanted.has(one) && !this.#leaving.has(one) && this.#started.get(one) !== true;
      if (isDue && !(await this.#attempt(one, () => this.#start(one)))) return;
    }
  }

  #toStop(): ReadonlySet<string> {
    const isOver = this.#isClosed || this.#options.clock.monotonic() - this.#beganMs >= ADOPT_MS;
    const gone = [...this.#started.keys(), ...((isOver && this.#former) || [])];
    return new Set([
      ...this.#leaving,
      ...gone.filter((one) => !this.#wanted.has(one) && !this.#mounted.has(one)),
    ]);
  }

  async #running(): Promise<Set<string>> {
    const listed = await this.#systemctl(
      ['list-units', '--state=active', '--plain', '--no-legend', targetOf('*')],
      [0],
    );
    return new Set(instancesIn(listed));
  }

  async #start(instance: string): Promise<void> {
    this.#started.set(instance, false);
    await makeFolder(this.#folder);
    await writeFile(join(this.#folder, instance), '');
    await this.#systemctl(['start', '--no-block', targetOf(instance)], [0]);
    this.#started.set(instance, true);
    this.#former?.delete(instance);
  }

  async #stop(instance: string): Promise<void> {
    await rm(join(this.#folder, instance), { force: true });
    const isKnown = this.#started.has(instance) || !this.#former || this.#former.has(instance);
    // What leaves again meanwhile is stopped again.
    this.#leaving.delete(instance);
    try {
      if (isKnown) await this.#systemctl(['stop', '--no-block', targetOf(instance)], [0, NOT_LOADED]);
    } catch (error) {
      this.#leaving.add(instance);
      throw error;
    }
    this.#started.delete(instance);
    this.#former?.delete(instance);
  }

  /**
   * What fails is said and concerns this one alone. Resolves with false where systemctl does not answer, which
   * concerns the others, too: they wait for the next call.
   */
  async #attempt(instance: string, act: () => Promise<unknown>): Promise<boolean> {
    try {
      await act();
      this.#said.delete(instance);
      return true;
    } catch (error) {
      this.#warn(instance, error);
      return !(error instanceof Error && error.name === 'TimeoutError');
    }
  }

  /** Once, not in each cycle; again after it has worked. */
  #warn(instance: string, error: unknown): void {
    const message = error instanceof Error ? error.message : String(error);
    if (this.#said.get(instance) === message) return;
    this.#said.set(instance, message);
    const target = instance === '' ? {} : { target: targetOf(instance) };
    this.#options.log.warn({ ...target, err: error }, 'target of a share not set, it is tried again');
  }

  async #systemctl(args: readonly string[], codes: readonly number[]): Promise<string> {
    const spec = { command: 'systemctl', args: [...args], timeoutMs: SYSTEMCTL_MS };
    const { code, stdout, stderr } = await this.#options.processes.run(spec);
    if (code === null || !codes.includes(code))
      throw new Error(`systemctl ${args[0] ?? ''}: ${stderr.trim()}`);
    return stdout;
  }
}

function without(some: ReadonlySet<string>, others: ReadonlySet<string>): ReadonlySet<string> {
  return new Set([...some].filter((one) => !others.has(one)));
}
