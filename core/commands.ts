/**
 * The command channel: a bounded queue with one consumer. `send` resolves when a command is accepted, so
 * that a request handler never waits for a reload that replaces the HTTP generation it is running on.
 */
import type { Logger } from 'pino';
import type { Commands } from './contract/commands.ts';
import { unlessAborted } from './platform/deadline.ts';

export type CommandName = keyof Commands;
export interface Command {
  readonly name: CommandName;
  readonly args: readonly unknown[];
}
export type Dispatch = (command: Command) => Promise<void>;
/** Goes before all others, and finds a place when these fill the queue: it may be what takes rights away. */
const FIRST: CommandName = 'reload';

export class CommandChannel {
  readonly #log: Logger;
  readonly #capacity: number;
  readonly #queue: Command[] = [];
  #dispatch: Dispatch | undefined;
  #running: Promise<void> | undefined;
  #closed = false;

  constructor(options: { readonly log: Logger; readonly capacity?: number }) {
    this.#log = options.log;
    this.#capacity = options.capacity ?? 64;
  }

  /** Rejects with a plain sentence when the channel is closed or full. */
  async send<K extends CommandName>(name: K, ...args: Commands[K]['args']): Promise<void> {
    if (this.#closed) throw new Error('the daemon is stopping and takes no more commands');
    const ahead = this.#queue.filter((one) => one.name === FIRST).length;
    const isFirst = name === FIRST;
    if ((isFirst ? ahead : this.#queue.length - ahead) >= this.#capacity)
      throw new Error(`${this.#capacity} commands are waiting already; try again in a moment`);
    this.#queue.splice(isFirst ? ahead : this.#queue.length, 0, { name, args });
    this.#pump();
  }

  /** Starts the only consumer; commands sent before are handled first. */
  consume(dispatch: Dispatch): void {
    this.#dispatch = dispatch;
    this.#pump();
  }

  /**
   * Refuses new commands, drops those that wait, and resolves when the running one has ended or `patience`
   * aborts.
   */
  async close(patience?: AbortSignal): Promise<void> {
    this.#closed = true;
    for (const command of this.#queue.splice(0))
      this.#log.warn({ command: command.name }, 'command dropped, the daemon is stopping');
    const running = this.#running;
    if (!running) return;
    try {
      await (patience ? unlessAborted(patience, running) : running);
    } catch {
      // Commands' own failures end in the log: what is caught here is that patience is over.
      this.#log.warn('a command has not ended, the daemon stops without it');
    }
  }

  #pump(): void {
    const dispatch = this.#dispatch;
    if (!dispatch || this.#running) return;
    this.#running = this.#drain(dispatch).finally(() => {
      this.#running = undefined;
      if (this.#queue.length > 0) this.#pump();
    });
  }

  async #drain(dispatch: Dispatch): Promise<void> {
    for (let command = this.#queue.shift(); command; command = this.#queue.shift()) {
      try {
        await dispatch(command);
      } catch (error) {
        this.#log.error({ command: command.name, err: error }, 'command failed');
      }
    }
  }
}
