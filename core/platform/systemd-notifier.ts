/**
 * Tells the service manager (systemd) how the daemon is, where there is one: that it is up, what it does in
 * words, that it still moves, and that a drain needs more time. Node.js has no datagram sockets of the unix
 * kind, so each message goes by `systemd-notify`, which comes with whoever listens: few messages, never two
 * at once, the latest words win.
 */
import type { Clock, Logger, Processes } from '../contract/platform.ts';
import type { Snapshot } from '../contract/status.ts';

const COMMAND = 'systemd-notify';
const SEND_DEADLINE_MS = 10_000;
/** Words are renewed only so often. */
const WORDS_EVERY_MS = 5_000;
/** While it drains, the manager's patience is extended this often, by so much. */
const EXTEND_EVERY_MS = 10_000;
const EXTENSION_MS = 90_000;
/** The supervisor looks at the mounts every 3 s; after this long it is stuck. */
const STUCK_MS = 30_000;

export interface SystemdNotifierOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Pick<Processes, 'run'>;
  readonly env: NodeJS.ProcessEnv;
  /** When the supervisor last looked, on the monotonic clock. */
  readonly lookedAtMs: () => number;
}

export class SystemdNotifier {
  readonly #options: SystemdNotifierOptions;
  readonly #socket: string | undefined;
  readonly #end = new AbortController();
  #queue: Promise<void> = Promise.resolve();
  #statusText = '';
  #toldText = '';
  #textToldAtMs = -Infinity;
  #filesAtStop: number | undefined;
  #stopsAtMs: number | undefined;

  constructor(options: SystemdNotifierOptions) {
    this.#options = options;
    this.#socket = options.env['NOTIFY_SOCKET'];
  }

  /** The daemon is up. From now on it has to move. */
  ready(): void {
    this.#send('READY=1', `STATUS=${this.#statusText || 'up'}`);
    const watchdogMs = Number(this.#options.env['WATCHDOG_USEC'] ?? 0) / 1000;
    if (this.#socket !== undefined && watchdogMs > 0) void this.#feed(watchdogMs / 3);
  }

  /** A new status: what it says in words. */
  saw(snapshot: Snapshot): void {
    if (this.#socket === undefined) return;
    this.#statusText = this.#stopsAtMs === undefined ? wordsFor(snapshot) : this.#drainText(snapshot);
    const { clock } = this.#options;
    if (this.#statusText === this.#toldText || clock.monotonic() - this.#textToldAtMs < WORDS_EVERY_MS)
      return;
    this.#textToldAtMs = clock.monotonic();
    this.#toldText = this.#statusText;
    this.#send(`STATUS=${this.#statusText}`);
  }

  /** A drain has begun that may take so long. */
  stopping(limitMs: number): void {
    if (this.#socket === undefined) return;
    this.#stopsAtMs = this.#options.clock.monotonic() + limitMs;
    this.#send('STOPPING=1', 'STATUS=draining');
    void this.#extend();
  }

  /** Nothing more is said; resolves when what was begun is. */
  async close(): Promise<void> {
    this.#end.abort();
    await this.#queue;
  }

  #drainText({ record: { shares } }: Snapshot): string {
    const files = shares.reduce((sum, share) => sum + share.dirtyCount, 0);
    this.#filesAtStop = Math.max(this.#filesAtStop ?? 0, files);
    const leftMs = Math.max(0, (this.#stopsAtMs ?? 0) - this.#options.clock.monotonic());
    if (files === 0) return 'all files are up, taking the shares down';
    return `draining: ${files} of ${this.#filesAtStop} files wait, ${Math.ceil(leftMs / 1000)} s left`;
  }

  async #feed(everyMs: number): Promise<void> {
    const { clock, lookedAtMs } = this.#options;
    while (!this.#end.signal.aborted) {
      if (clock.monotonic() - lookedAtMs() < STUCK_MS) this.#send('WATCHDOG=1');
      await clock.sleep(everyMs, this.#end.signal).catch(() => undefined);
    }
  }

  async #extend(): Promise<void> {
    while (!this.#end.signal.aborted) {
      this.#send(`EXTEND_TIMEOUT_USEC=${EXTENSION_MS * 1000}`);
      await this.#options.clock.sleep(EXTEND_EVERY_MS, this.#end.signal).catch(() => undefined);
    }
  }

  #send(...assignments: readonly string[]): void {
    const { processes, log } = this.#options;
    const socket = this.#socket;
    if (socket === undefined) return;
    const spec = {
      command: COMMAND,
      args: [...assignments],
      env: { NOTIFY_SOCKET: socket },
      timeoutMs: SEND_DEADLINE_MS,
    };
    this.#queue = this.#queue
      .then(() => processes.run(spec))
      .then(({ code, stderr }) => {
        if (code !== 0) log.warn({ said: stderr.trim() }, 'the service manager was not told');
      })
      .catch((error: unknown) => log.warn({ err: error }, 'the service manager was not told'));
  }
}

function wordsFor({ record: { allSynced, shares } }: Snapshot): string {
  const healthy = shares.filter(({ health }) => health === 'healthy').length;
  const files = shares.reduce((sum, share) => sum + share.dirtyCount, 0);
  const whole = allSynced
    ? 'everything is on the NAS'
    : files === 0
      ? 'not known to be synced'
      : `${files} files wait`;
  return `${healthy} of ${shares.length} shares healthy, ${shares.length === 0 ? 'none configured' : whole}`;
}
