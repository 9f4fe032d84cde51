/**
 * Messages to a share's runner that it has not handled yet. A message stays until it is taken, so one that
 * arrives while nobody waits is not lost.
 */
import { pause } from '../platform/deadline.ts';
import type { Clock } from '../contract/platform.ts';

/**
 * `changed`: settings that may need another mount; `refreshed`: settings that do not affect the mount that
 * is being made.
 */
export type ShareMessage = 'exited' | 'hung' | 'reset' | 'changed' | 'refreshed' | 'goal';

export const EVERYTHING: readonly ShareMessage[] = [
  'exited',
  'hung',
  'reset',
  'changed',
  'refreshed',
  'goal',
];

interface Waiting {
  readonly kinds: readonly ShareMessage[];
  readonly controller: AbortController;
}

export class Inbox {
  readonly #clock: Clock;
  readonly #messages = new Set<ShareMessage>();
  readonly #waiting = new Set<Waiting>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  put(message: ShareMessage): void {
    this.#messages.add(message);
    for (const { kinds, controller } of this.#waiting)
      if (kinds.includes(message)) controller.abort(new Error(message));
  }

  has(...kinds: readonly ShareMessage[]): boolean {
    return kinds.some((kind) => this.#messages.has(kind));
  }

  /** Removes the messages of these kinds; true if there was one. */
  take(...kinds: readonly ShareMessage[]): boolean {
    return kinds.map((kind) => this.#messages.delete(kind)).includes(true);
  }

  /** Runs `act` with a signal that aborts as soon as a message of these kinds arrives, or with `parent`. */
  async during<T>(
    kinds: readonly ShareMessage[],
    act: (signal: AbortSignal) => Promise<T>,
    parent?: AbortSignal,
  ): Promise<T> {
    const waiting = { kinds, controller: new AbortController() };
    const follow = (): void => waiting.controller.abort(parent?.reason);
    if (this.has(...kinds)) waiting.controller.abort(new Error('a message was there already'));
    if (parent?.aborted === true) follow();
    parent?.addEventListener('abort', follow, { once: true });
    this.#waiting.add(waiting);
    try {
      return await act(waiting.controller.signal);
    } finally {
      this.#waiting.delete(waiting);
      parent?.removeEventListener('abort', follow);
    }
  }

  /** Waits for a message of these kinds, at most `ms`. */
  wait(kinds: readonly ShareMessage[], ms?: number): Promise<void> {
    return this.during(kinds, (signal) =>
      ms === undefined ? aborted(signal) : pause(this.#clock, ms, signal),
    );
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
