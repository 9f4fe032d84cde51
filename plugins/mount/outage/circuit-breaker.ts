import { endsWithin } from 'mountkeeper';
import type { Clock, ConnectionMonitor, Logger } from 'mountkeeper';
import { TRIES } from '../rclone/arguments.ts';
import type { RcClient } from '../rclone/control/remote-control.ts';
import type { Connection, TcpConnections } from './tcp-connections.ts';
import { NOWHERE, remoteFailure } from '../rclone/error-messages.ts';

const RC_TIMEOUT_MS = 2_000;
const ASK_TIMEOUT_MS = 4_000;
const DIAL_AGAIN_AFTER_MS = 1_000;
/** A call that waits longer makes somebody look from outside: a NAS gone silent blocks rclone's listings. */
const SLOW_MS = 1_000;
/** rclone itself is asked at least this often, however silent the NAS looks from outside. */
const ASK_ANYWAY_EVERY_MS = 600_000;
const USED_UP_BY_CALLS = 16;
const USE_UP_CALL_MS = 250;
const SMOOTH_CALL_MS = 200;
const SMOOTHED_BY_CALLS = 15;

export interface CircuitBreakerOptions {
  readonly rc: RcClient;
  /** Undefined when the address of the NAS is unknown: then the circuit breaker never opens. */
  readonly monitor: () => Pick<ConnectionMonitor, 'dial'> | undefined;
  /** TCP connections from rclone to the NAS. */
  readonly tcpConnections?: TcpConnections | undefined;
  /** A call that needs the remote. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  readonly clock: Clock;
  readonly log: Logger;
  /** Aborted with the mount. */
  readonly end: AbortSignal;
}

/**
 * Stops rclone from dialling a NAS that is away. rclone gives up a read only after eleven failed attempts,
 * and dials for each as long as its time limits allow, with pauses of 2 s. When it is told to dial from an
 * address that this machine does not have, each attempt fails at once, with an error that most backends do
 * not retry. Established connections that have gone silent are closed in the kernel; a connection on which
 * bytes still move goes on.
 */
export class CircuitBreaker {
  readonly #options: CircuitBreakerOptions;
  #isShut = false;
  #isTrusted = false;
  #hasDialled = false;
  #isSuspecting = false;
  #shutAtMs = 0;

  constructor(options: CircuitBreakerOptions) {
    this.#options = options;
  }

  get isShut(): boolean {
    return this.#isShut;
  }

  /**
   * Called at the start: lets rclone dial again if a former daemon had stopped it, and resets the number of
   * attempts of calls.
   */
  async begin(): Promise<void> {
    await this.#set({ BindAddr: '', LowLevelRetries: TRIES }).catch((error: unknown) =>
      this.#options.log.debug({ err: error }, 'connection options not set'),
    );
  }

  /** Asks the remote. While the circuit is open, it asks only when the NAS may be back. */
  async through(signal: AbortSignal): Promise<void> {
    if (this.#isShut) await this.#openWhenBack(signal);
    const { ask, clock } = this.#options;
    // An error of the look means that the mount has ended, or that the next failure repeats it.
    const suspect = (): void => void this.#suspect().catch(() => undefined);
    const asked = ask(signal);
    try {
      if (!(await endsWithin(clock, SLOW_MS, asked))) suspect();
      await asked;
    } catch (error) {
      suspect();
      throw error;
    }
    if (this.#isTrusted) return;
    // The first time it is awaited, so that an outage right afterwards is handled.
    const learning = this.#learn();
    if (!this.#hasDialled) await learning;
    this.#hasDialled = true;
  }

  /** Called when this daemon stops looking after the mount. */
  async open(): Promise<void> {
    if (this.#isShut) await this.#set({ BindAddr: '' });
    this.#isShut = false;
  }

  async #openWhenBack(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const monitor = this.#options.monitor();
    const missing = monitor ? await monitor.dial(signal) : 'nobody can tell whether it is back';
    if (missing !== undefined && clock.monotonic() - this.#shutAtMs < ASK_ANYWAY_EVERY_MS)
      throw remoteFailure([missing], 'the remote does not answer');
    await this.open();
  }

  /** The view from outside is used only when it has agreed with rclone's own before. */
  async #learn(): Promise<void> {
    const monitor = this.#options.monitor();
    this.#isTrusted = monitor !== undefined && (await monitor.dial(this.#options.end)) === undefined;
  }

  async #suspect(): Promise<void> {
    const { clock, end } = this.#options;
    if (!this.#isTrusted || this.#isShut || this.#isSuspecting) return;
    this.#isSuspecting = true;
    try {
      if ((await this.#options.monitor()?.dial(end)) === undefined) return;
      const before = await this.#options.tcpConnections?.look();
      await clock.sleep(DIAL_AGAIN_AFTER_MS, end);
      const missing = await this.#options.monitor()?.dial(end);
      if (missing !== undefined) await this.#shut(missing, before);
    } finally {
      this.#isSuspecting = false;
    }
  }

  async #shut(reason: string, before: readonly Connection[] | undefined): Promise<void> {
    const { clock, log, tcpConnections } = this.#options;
    this.#isShut = true;
    this.#shutAtMs = clock.monotonic();
    try {
      await this.#set({ BindAddr: NOWHERE });
      // Connections that could not be closed are used up below.
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
   * Each old connection that has gone silent would block a reader for the whole time limit. So calls are
   * made that use them up, until a call finds none and fails.
   */
  async #useUp(): Promise<void> {
    const { ask, clock, end } = this.#options;
    let isThrough = false;
    for (let call = 0; call < USED_UP_BY_CALLS && this.#isShut && !isThrough && !end.aborted; call += 1) {
      // The loop ends with this failure.
      const answer = ask(clock.deadline(ASK_TIMEOUT_MS, end))
        .catch(() => undefined)
        .then(() => (isThrough = true));
      await endsWithin(clock, USE_UP_CALL_MS, answer);
    }
  }

  /**
   * Failures have made rclone's pauses long; each call that fails at once shortens them. Ends when calls no
   * longer help.
   */
  async #smooth(): Promise<void> {
    const { ask, clock, end } = this.#options;
    let lastMs = Infinity;
    for (let call = 0; call < SMOOTHED_BY_CALLS && this.#isShut && !end.aborted; call += 1) {
      const begunMs = clock.monotonic();
      // Only the time until the failure matters.
      await ask(clock.deadline(ASK_TIMEOUT_MS, end)).catch(() => undefined);
      const tookMs = clock.monotonic() - begunMs;
      if (tookMs < SMOOTH_CALL_MS || tookMs > lastMs * 1.5) return;
      lastMs = tookMs;
    }
  }

  async #set(main: Readonly<Record<string, unknown>>): Promise<void> {
    const { clock, rc } = this.#options;
    await rc.call('options/set', { main }, clock.deadline(RC_TIMEOUT_MS));
  }
}
