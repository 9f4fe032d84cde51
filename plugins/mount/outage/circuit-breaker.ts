import type { Clock, Logger } from 'mountkeeper';
import { TRIES } from '../rclone/arguments.ts';
import type { NasLook } from './nas-check.ts';
import type { RcClient } from '../rclone/remote-control.ts';
import type { Connection, TcpConnections } from './tcp-connections.ts';
import { remoteFailure } from '../rclone/error-messages.ts';

/** No machine has it, so dialling from it fails within the kernel. */
const NOWHERE = '240.0.0.1';
const RC_TIMEOUT_MS = 2_000;
const LOOK_MS = 2_000;
const LOOK_AGAIN_AFTER_MS = 1_000;
/** However silent it looks from outside, rclone itself is asked this often. */
const ASK_ANYWAY_EVERY_MS = 600_000;
const USED_UP_BY_CALLS = 16;
const USE_UP_CALL_MS = 250;
const SMOOTH_CALL_MS = 200;
const SMOOTHED_BY_CALLS = 15;

export interface CircuitBreakerOptions {
  readonly rc: RcClient;
  /** Undefined where nobody knows how to look for the NAS: the circuit breaker stays open. */
  readonly look: NasLook | undefined;
  /** Connections that rclone has to the NAS. */
  readonly tcpConnections?: TcpConnections | undefined;
  /** A call that needs the remote. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted with the mount. */
  readonly end: AbortSignal;
  readonly onShut: () => void;
}

/**
 * Shuts rclone's way to a NAS that is away. rclone gives up a read only after eleven failed attempts, and
 * dials for each as long as its time limits allow, with pauses of 2 s between. Given an address to dial from
 * that this machine does not have, each attempt fails at once, and as nothing that trying again would help:
 * most backends leave the pauses out then. Connections that stand and have gone silent are ended in the
 * kernel; one on which bytes still move goes on.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #isShut = false;
  #isTrusted = false;
  #hasLooked = false;
  #isSuspecting = false;
  #shutAtMs = 0;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  get isShut(): boolean {
    return this.#isShut;
  }

  /**
   * At the start: one that a former daemon shut stands open again, and calls in rclone itself have all their
   * tries.
   */
  async begin(): Promise<void> {
    await this.#set({ BindAddr: '', LowLevelRetries: TRIES }).catch((error: unknown) =>
      this.#options.log.debug({ err: error }, 'connection options not set'),
    );
  }

  /** Asks the remote. A shut gate opens for it only when the NAS is to be seen again. */
  async through(signal: AbortSignal): Promise<void> {
    if (this.#isShut) await this.#openWhenBack(signal);
    try {
      await this.#options.ask(signal);
    } catch (error) {
      void this.#suspect().catch(() => undefined);
      throw error;
    }
    if (this.#isTrusted) return;
    // The first time it is waited for, so that an outage right afterwards is met.
    const learning = this.#learn();
    if (!this.#hasLooked) await learning;
    this.#hasLooked = true;
  }

  /** Before nobody looks after it any more. */
  async open(): Promise<void> {
    if (this.#isShut) await this.#set({ BindAddr: '' });
    this.#isShut = false;
  }

  async #openWhenBack(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const missing = await this.#look(signal);
    if (missing !== undefined && clock.monotonic() - this.#shutAtMs < ASK_ANYWAY_EVERY_MS)
      throw remoteFailure([missing], 'the remote does not answer');
    await this.open();
  }

  /** What is seen from outside counts only where it has agreed with what rclone sees. */
  async #learn(): Promise<void> {
    this.#isTrusted = this.#options.look !== undefined && (await this.#look(this.#options.end)) === undefined;
  }

  async #suspect(): Promise<void> {
    const { clock, end } = this.#options;
    if (!this.#isTrusted || this.#isShut || this.#isSuspecting) return;
    this.#isSuspecting = true;
    try {
      if ((await this.#look(end)) === undefined) return;
      const before = await this.#options.tcpConnections?.look();
      await clock.sleep(LOOK_AGAIN_AFTER_MS, end);
      const missing = await this.#look(end);
      if (missing !== undefined) await this.#shut(missing, before);
    } finally {
      this.#isSuspecting = false;
    }
  }

  async #shut(reason: string, before: readonly Connection[] | undefined): Promise<void> {
    const { clock, log, onShut, tcpConnections } = this.#options;
    this.#isShut = true;
    this.#shutAtMs = clock.monotonic();
    // First: what is changed in place from now on is given up sooner.
    onShut();
    try {
      await this.#set({ BindAddr: NOWHERE });
      const cut = before && (await tcpConnections?.cut(before).catch(() => undefined));
      await this.#useUp();
      log.info({ reason, cut }, 'the NAS is away: what is not in the cache fails at once until it is back');
      await this.#smooth();
    } catch (error) {
      this.#isShut = false;
      log.debug({ err: error }, 'way to the NAS not shut');
    }
  }

  /**
   * Connections of before that have gone silent would each hold up a reader for the whole time limit. So
   * calls take them until one finds none left and fails.
   */
  async #useUp(): Promise<void> {
    const { ask, clock, end } = this.#options;
    let isThrough = false;
    for (let call = 0; call < USED_UP_BY_CALLS && this.#isShut && !isThrough && !end.aborted; call += 1) {
      const answer = ask(clock.deadline(LOOK_MS * 2, end))
        .catch(() => undefined)
        .then(() => (isThrough = true));
      await Promise.race([answer, clock.sleep(USE_UP_CALL_MS, end)]);
    }
  }

  /**
   * The pauses that failures made long shrink with every call that fails at once; where they do not, no call
   * helps.
   */
  async #smooth(): Promise<void> {
    const { ask, clock, end } = this.#options;
    let lastMs = Infinity;
    for (let call = 0; call < SMOOTHED_BY_CALLS && this.#isShut && !end.aborted; call += 1) {
      const begunMs = clock.monotonic();
      await ask(clock.deadline(LOOK_MS * 2, end)).catch(() => undefined);
      const tookMs = clock.monotonic() - begunMs;
      if (tookMs < SMOOTH_CALL_MS || tookMs > lastMs * 1.5) return;
      lastMs = tookMs;
    }
  }

  #look(parent: AbortSignal): Promise<string | undefined> {
    const { clock, look } = this.#options;
    return look ? look(clock.deadline(LOOK_MS, parent)) : Promise.resolve(undefined);
  }

  async #set(main: Readonly<Record<string, unknown>>): Promise<void> {
    const { clock, rc } = this.#options;
    await rc.call('options/set', { main }, clock.deadline(RC_TIMEOUT_MS));
  }
}
