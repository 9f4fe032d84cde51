/** Starts and stops the targets of shares, one after the other, so that each is as its share is. */
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { createSerialQueue, makeFolder } from 'mountkeeper';
import type { Clock, Logger, Processes } from 'mountkeeper';
import { instanceName, instancesIn, targetOf } from './unit-name.ts';

const SYSTEMCTL_MS = 20_000;
/** How long a target that a former daemon left up waits for its share, which is adopted meanwhile. */
const ADOPT_MS = 60_000;

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
  readonly #queue = createSerialQueue();
  readonly #beganMs: number;
  #up = new Set<string>();
  /** Of a former daemon; undefined before they are known. */
  #former: Set<string> | undefined;

  constructor(options: TargetsOptions) {
    this.#options = options;
    this.#folder = join(options.runtimeDir, 'shares');
    this.#beganMs = options.clock.monotonic();
  }

  /** `shares`: those that are up now. Never rejects; what could not be done is tried again at the next call. */
  follow(shares: readonly string[]): Promise<void> {
    const wanted = new Set(shares.map(instanceName));
    return this.#queue
      .run(() => this.#follow(wanted))
      .catch((error: unknown) => this.#options.log.warn({ err: error }, 'targets of shares not set'));
  }

  /** The share is up no more, for however short a time. Never rejects. */
  left(share: string): Promise<void> {
    const instance = instanceName(share);
    return this.#queue
      .run(async () => {
        if (this.#up.has(instance)) await this.#stop(instance);
      })
      .catch((error: unknown) => this.#options.log.warn({ err: error }, 'target of a share not stopped'));
  }

  /** All are stopped. */
  close(): Promise<void> {
    this.#former = this.#former && new Set();
    return this.follow([]);
  }

  async #follow(wanted: ReadonlySet<string>): Promise<void> {
    this.#former ??= await this.#running();
    for (const one of wanted) if (!this.#up.has(one)) await this.#start(one);
    const isOver = this.#options.clock.monotonic() - this.#beganMs >= ADOPT_MS;
    const gone = [...this.#up, ...(isOver ? this.#former : [])].filter((one) => !wanted.has(one));
    for (const one of gone) await this.#stop(one);
    if (isOver) this.#former.clear();
  }

  async #running(): Promise<Set<string>> {
    const listed = await this.#systemctl(
      'list-units',
      '--state=active',
      '--plain',
      '--no-legend',
      targetOf('*'),
    );
    return new Set(instancesIn(listed));
  }

  async #start(instance: string): Promise<void> {
    await makeFolder(this.#folder);
    await writeFile(join(this.#folder, instance), '');
    await this.#systemctl('start', '--no-block', targetOf(instance));
    this.#up.add(instance);
    this.#former?.delete(instance);
  }

  async #stop(instance: string): Promise<void> {
    await rm(join(this.#folder, instance), { force: true });
    await this.#systemctl('stop', '--no-block', targetOf(instance));
    this.#up.delete(instance);
  }

  async #systemctl(...args: readonly string[]): Promise<string> {
    const spec = { command: 'systemctl', args: [...args], timeoutMs: SYSTEMCTL_MS };
    const { code, stdout, stderr } = await this.#options.processes.run(spec);
    if (code !== 0) throw new Error(`systemctl ${args[0] ?? ''}: ${stderr.trim()}`);
    return stdout;
  }
}
