import type { Clock, ManagedProcess } from '../../contract/platform.ts';
import { pause } from '../../platform/deadline.ts';

/** Milliseconds that one question may take. */
const ASK_MS = 1_000;
const LOOK_MS = 40;

export interface AskedServer {
  readonly process: ManagedProcess;
  readonly clock: Clock;
  /** Ends the wait; what is rejected with then is its reason. */
  readonly signal: AbortSignal;
  /** How long the server may take, in milliseconds. */
  readonly readyMs: number;
  /** As a client would ask. Rejects while there is no answer. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
}

export interface Unanswered {
  /** What the last question came to. */
  readonly last: unknown;
}

/** Asks a server that has just been started until it answers. Undefined once it has; else it has ended or is late. */
export async function untilAnswered(server: AskedServer): Promise<Unanswered | undefined> {
  const { process, clock, signal, readyMs, ask } = server;
  const deadline = clock.deadline(readyMs, signal);
  let last: unknown;
  while (process.isAlive() && !deadline.aborted) {
    try {
      await ask(clock.deadline(ASK_MS, deadline));
      return undefined;
    } catch (error) {
      last = error;
    }
    await pause(clock, LOOK_MS, deadline);
  }
  signal.throwIfAborted();
  return { last };
}
