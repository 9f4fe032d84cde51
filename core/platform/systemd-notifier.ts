/**
 * Reports the daemon's state to systemd, if it runs under it: that it is up, a status line, that it is not
 * stuck, and that a drain needs more time. Node.js has no unix datagram sockets, so each message is sent by
 * `systemd-notify`, which comes with systemd: few messages, never two at once, and only the latest status.
 */
import { pause } from './deadline.ts';
import type { Clock, Logger, Processes } from '../contract/platform.ts';
import type { Snapshot } from '../contract/status.ts';
import { createSerialQueue } from './serial-queue.ts';

const COMMAND = 'systemd-notify';
const STATUS = 'STATUS=';
const SEND_DEADLINE_MS = 10_000;
/** The status line is sent at most this often. */
const WORDS_EVERY_MS = 5_000;
/** While the daemon drains, the stop timeout is extended this often, by this much. */
const EXTEND_EVERY_MS = 10_000;
const EXTENSION_MS = 90_000;
/** The supervisor checks the mounts every 3 s; without a check for this long it counts as stuck. */
const STUCK_MS = 30_000;

export interface SystemdNotifierOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  readonly env: NodeJS.ProcessEnv;
  /** Monotonic time of the supervisor's last check, in milliseconds. */
  readonly lookedAtMs: () => number;
}

export class SystemdNotifier {
  readonly #options: SystemdNotifierOptions;
  readonly #socket: string | undefined;
  readonly #end = new AbortController();
  readonly #queue = createSerialQueue();
  #statusText = '';
  /** What the service manager shows: the last status line that has reached it. */
  #toldText = '';
  #isTelling = false;
  #filesAtStop: number | undefined;
  #stopsAtMs: number | undefined;
  #reloads = 0;
  /**
   * Set until it was sent that the daemon is up, each time another one: without that message systemd stops the daemon
   * in the end, and a reload never ends.
   */
  #readyOwed: symbol | undefined;

  constructor(options: SystemdNotifierOptions) {
    this.#options = options;
    this.#socket = options.env['NOTIFY_SOCKET'];
  }

  /** Reports that the daemon is up and starts the watchdog messages. */
  ready(): void {
    this.#readyOwed = Symbol('ready');
    void this.#send(`${STATUS}${this.#statusText || 'up'}`);
    const watchdogMs = Number(this.#options.env['WATCHDOG_USEC'] ?? 0) / 1000;
    if (this.#socket !== undefined && watchdogMs > 0) void this.#feed(watchdogMs / 3);
  }

  /**
   * Reports a reload while `act` runs, whatever comes of it: `systemctl reload` waits for its end, and takes
   * it only with a time after its own signal.
   */
  async reloading(act: () => Promise<void>): Promise<void> {
    this.#reloads += 1;
    this.#readyOwed = undefined;
    void this.#send('RELOADING=1', `MONOTONIC_USEC=${process.hrtime.bigint() / 1000n}`);
    try {
      await act();
    } finally {
      this.#reloads -= 1;
      // Another one may have begun meanwhile, and whoever stops is ready no more.
      if (this.#reloads === 0 && this.#stopsAtMs === undefined) {
        this.#readyOwed = Symbol('ready');
        void this.#send();
      }
    }
  }

  /** Takes a new status for the status line. */
  saw(snapshot: Snapshot): void {
    if (this.#socket === undefined) return;
    this.#statusText = this.#stopsAtMs === undefined ? wordsFor(snapshot) : this.#drainText(snapshot);
    void this.#tell();
  }

  /** Reports that a drain has begun that may take up to `limitMs`. */
  stopping(limitMs: number): void {
    if (this.#socket === undefined) return;
    this.#stopsAtMs = this.#options.clock.monotonic() + limitMs;
    this.#readyOwed = undefined;
    void this.#send('STOPPING=1', 'STATUS=draining');
    void this.#extend();
  }

  /** Sends nothing more; resolves when the message in progress is sent. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#queue.run(() => undefined);
  }

  /** Tells the newest status line, once more where it was lost. */
  async #tell(): Promise<void> {
    if (this.#isTelling) return;
    this.#isTelling = true;
    while (!this.#end.signal.aborted && this.#isNews) {
      await this.#send(`${STATUS}${this.#statusText}`);
      await pause(this.#options.clock, WORDS_EVERY_MS, this.#end.signal);
    }
    this.#isTelling = false;
  }

  get #isNews(): boolean {
    return this.#statusText !== this.#toldText || this.#readyOwed !== undefined;
  }

  #drainText({ record: { shares } }: Snapshot): string {
    const files = shares.reduce((sum, share) => sum + share.dirtyCount, 0);
    this.#filesAtStop = Math.max(this.#filesAtStop ?? 0, files);
    const leftMs = Math.max(0, (this.#stopsAtMs ?? 0) - this.#options.clock.monotonic());
    const isKnown = !shares.some(({ isDirtyCountUnknown }) => isDirtyCountUnknown === true);
    if (files === 0 && isKnown) return 'all files are up, taking the shares down';
    const waiting = isKnown
      ? `${files} of ${this.#filesAtStop} files wait`
      : 'nobody knows yet how many files wait';
    return `draining: ${waiting}, ${Math.ceil(leftMs / 1000)} s left`;
  }

  async #feed(everyMs: number): Promise<void> {
    const { clock, lookedAtMs } = this.#options;
    while (!this.#end.signal.aborted) {
      if (clock.monotonic() - lookedAtMs() < STUCK_MS) void this.#send('WATCHDOG=1');
      await pause(clock, everyMs, this.#end.signal);
    }
  }

  async #extend(): Promise<void> {
    while (!this.#end.signal.aborted) {
      void this.#send(`EXTEND_TIMEOUT_USEC=${EXTENSION_MS * 1000}`);
      await pause(this.#options.clock, EXTEND_EVERY_MS, this.#end.signal);
    }
  }

  /** Never rejects. */
  async #send(...assignments: readonly string[]): Promise<void> {
    const { log } = this.#options;
    const socket = this.#socket;
    if (socket === undefined) return;
    try {
      const { code, stderr } = await this.#queue.run(() => this.#sendNow(socket, assignments));
      if (code !== 0) log.warn({ said: stderr.trim() }, 'the service manager was not told');
    } catch (error) {
      log.warn({ err: error }, 'the service manager was not told');
    }
  }

  /** Each message brings along what an earlier one has lost. */
  async #sendNow(socket: string, assignments: readonly string[]): ReturnType<Processes['run']> {
    const owed = this.#readyOwed;
    const ended = await this.#options.processes.run({
      command: COMMAND,
      args: [...(owed === undefined ? [] : ['READY=1']), ...assignments],
      env: { NOTIFY_SOCKET: socket },
      timeoutMs: SEND_DEADLINE_MS,
    });
    if (ended.code !== 0) return ended;
    if (this.#readyOwed === owed) this.#readyOwed = undefined;
    const status = assignments.find((one) => one.startsWith(STATUS));
    if (status !== undefined) this.#toldText = status.slice(STATUS.length);
    return ended;
  }
}

function wordsFor({ record: { allSynced, shares } }: Snapshot): string {
  const healthy = shares.filter(({ health }) => health === 'healthy').length;
  const files = shares.reduce((sum, share) => sum + share.dirtyCount, 0);
  const whole = allSynced
    ? 'everything is on the NAS'
    : files === 0
      ? 'not known to be synced'
      : `${files} ${files === 1 ? 'file waits' : 'files wait'}`;
  return `${healthy} of ${shares.length} shares healthy, ${shares.length === 0 ? 'none configured' : whole}`;
}
