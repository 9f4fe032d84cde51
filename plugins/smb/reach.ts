/** Where a running smbd is reached, and when it takes addresses that have come. */
import { networkInterfaces } from 'node:os';
import type { Clock, ManagedProcess } from 'mountkeeper';
import { addressesOf, resolveListen } from './addresses.ts';
import type { Interfaces, Listening } from './addresses.ts';
import { negotiate } from './negotiate.ts';

/** Of a process of smbd: the addresses that were there at its start, separated by blanks. */
const NOTE = 'addresses';
type Noted = Pick<ManagedProcess, 'notes'>;

export function noteOf(addresses: readonly string[]): ManagedProcess['notes'] {
  return { [NOTE]: addresses.join(' ') };
}

/** Undefined: a former version started it and noted none. */
export function startedWith({ notes }: Noted): readonly string[] | undefined {
  const text = notes[NOTE];
  return text === undefined ? undefined : String(text).split(' ');
}

export interface ReachOptions {
  readonly listen: readonly string[];
  readonly port: number;
  /** Default: the system's. */
  readonly present?: () => Interfaces;
  readonly ask?: typeof negotiate;
}

/**
 * Where a server is reached. smbd opens its sockets at its start and never again: whoever is connected would be cut
 * off for an address that comes, and one that goes is no fault of the server.
 */
export class Reach {
  readonly #options: Required<ReachOptions>;
  #answering: readonly string[] = [];
  #silent: readonly string[] = [];

  constructor(options: ReachOptions) {
    this.#options = { present: networkInterfaces, ask: negotiate, ...options };
  }

  /** Where clients got an answer the last time. */
  get answering(): readonly string[] {
    return this.#answering;
  }

  /** Asks at each address that the server was started with and that is there. Rejects when none answers. */
  async ask(server: Noted, signal: AbortSignal): Promise<void> {
    const { port, ask } = this.#options;
    const started = startedWith(server) ?? this.#wanted();
    const here = this.#here(started);
    // A card without a link has no address for programs, and the server is still reached there from here.
    const asked = here.length > 0 ? here : started;
    const answers = await Promise.allSettled(asked.map((host) => ask({ host, port }, signal)));
    this.#answering = asked.filter((_, index) => answers[index]?.status === 'fulfilled');
    this.#silent = here.filter((address) => !this.#answering.includes(address));
    if (this.#answering.length > 0) return;
    const failed = answers.find((answer) => answer.status === 'rejected');
    throw failed?.reason ?? new Error('this machine has none of the addresses of smb.listen');
  }

  /** Addresses that are wanted and there, and that the server was not started with. */
  come(server: Noted): readonly string[] {
    const started = startedWith(server);
    return started ? this.#wanted().filter((address) => !started.includes(address)) : [];
  }

  /** Nobody can reach the server any more by what it was started with. */
  isCutOff(server: Noted): boolean {
    return this.#here(startedWith(server) ?? []).length === 0;
  }

  /** What clients cannot reach, a sentence each. */
  problems(server: Noted | undefined): readonly string[] {
    const { listen } = this.#options;
    return [
      ...(this.#listening()?.missing ?? listen).map(
        (entry) =>
          `SMB does not listen on ${entry}: this machine has no such address or network interface now`,
      ),
      ...this.#silent.map((address) => `SMB does not answer at ${address}, where smbd should listen`),
      ...(server ? this.come(server) : []).map(
        (address) => `SMB does not listen on ${address} yet: smbd restarts for it once nobody is connected`,
      ),
    ];
  }

  #here(addresses: readonly string[]): readonly string[] {
    const present = this.#options.present();
    return addresses.filter((address) => addressesOf(address, present).length > 0);
  }

  #wanted(): readonly string[] {
    return this.#listening()?.addresses ?? [];
  }

  /** Undefined: nothing of it is there. */
  #listening(): Listening | undefined {
    try {
      return resolveListen(this.#options.listen, this.#options.present());
    } catch {
      // What it says is said of each entry, as missing.
      return undefined;
    }
  }
}

/** While somebody is connected, the server is asked this often whether that has changed. */
const RESTART_EVERY_MS = 10_000;

/** smbd takes addresses that have come only at its start, which waits until nobody is connected. */
export class Restart {
  readonly #reach: Reach;
  readonly #clock: Pick<Clock, 'monotonic'>;
  #isDue = false;
  #nextMs = 0;

  constructor(reach: Reach, clock: Pick<Clock, 'monotonic'>) {
    this.#reach = reach;
    this.#clock = clock;
  }

  /** For each look; resolves with whether the server is to be planned anew for it. `isFree`: nobody is connected. */
  async look(server: Noted, isFree: () => Promise<boolean>): Promise<boolean> {
    const now = this.#clock.monotonic();
    if (this.#reach.come(server).length === 0) {
      this.#isDue = false;
      return false;
    }
    if (now < this.#nextMs) return false;
    this.#nextMs = now + RESTART_EVERY_MS;
    this.#isDue = this.#reach.isCutOff(server) || (await isFree());
    return this.#isDue;
  }

  /** For each plan, and for that alone: at a later one, somebody may be connected again. */
  take(): boolean {
    const isDue = this.#isDue;
    this.#isDue = false;
    return isDue;
  }
}
