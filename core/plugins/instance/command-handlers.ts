/**
 * Runs what plugins have registered for commands. There is one queue of commands for all, so nobody is waited for
 * beyond a limit, and a third party's plugin not at all: a handler that fails or hangs is logged with its plugin's
 * name, and its plugin hears of no such command before the call that hangs has ended.
 */
import type { Clock, Logger } from '../../contract/platform.ts';
import { timeBoxOr } from '../../platform/deadline.ts';
import { sentence } from '../../platform/log/thrown.ts';
import { StallWatch } from '../../sdk/stall-watch.ts';
import { placeIn } from './ledger.ts';
import type { Ledger } from './ledger.ts';

export interface CommandHandlersOptions {
  /** Of the active plugins. */
  readonly ledgers: () => readonly Ledger[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Longest wait for the handlers of one command; default 5 s. */
  readonly timeoutMs?: number | undefined;
  /** Default: one of its own. */
  readonly stalls?: StallWatch;
}

type Handle = (...args: readonly unknown[]) => unknown;

export class CommandHandlers {
  readonly #options: CommandHandlersOptions;
  readonly #stalls: StallWatch;
  /** Plugins of which a call goes on after its limit, by the command. */
  readonly #hanging = new Map<string, number>();

  constructor(options: CommandHandlersOptions) {
    this.#options = options;
    this.#stalls = options.stalls ?? new StallWatch(options);
  }

  /** Never rejects. */
  async run(command: string, args: readonly unknown[]): Promise<void> {
    const calls = this.#options.ledgers().flatMap((ledger) => {
      const begun = ledger.handlers
        .filter((entry) => entry.command === command)
        .map(({ fn }) => this.#call(ledger, command, () => (fn as unknown as Handle)(...args)));
      return ledger.routePrefix === '' ? begun : [];
    });
    await Promise.all(calls);
  }

  async #call(ledger: Ledger, command: string, handle: () => unknown): Promise<void> {
    const { clock, log, timeoutMs = 5_000 } = this.#options;
    const { plugin } = ledger;
    const key = `${plugin} ${command}`;
    if ((this.#hanging.get(key) ?? 0) > 0) return;
    const call = Promise.resolve()
      .then(() => this.#stalls.call(placeIn(ledger, `command ${command}`), handle))
      .catch((error: unknown) =>
        log.error({ plugin, command, err: error ?? sentence(error) }, 'command failed'),
      );
    await timeBoxOr(clock, timeoutMs, call, () => {
      log.error(
        { plugin, command },
        'plugin did not end with a command in time; it hears of no other until then',
      );
      const count = (by: number): void => void this.#hanging.set(key, (this.#hanging.get(key) ?? 0) + by);
      count(1);
      void call.then(() => count(-1));
    });
  }
}
