/** How much a runner may say: reading it is the daemon's work, and nothing else runs meanwhile. */
import type { Clock } from '../../../contract/platform.ts';
import { Allowance } from '../../../platform/allowance.ts';
import { BrokenProtocol } from '../protocol.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
/** For a moment there may be much to say. */
const IN_A_SECOND = { messages: 2_000, bytes: 8 * 1_048_576 };
/**
 * In the long run much less: 8 MiB of small values take the daemon a second and more of a processor, so this is some
 * 8 percent of one core at the worst.
 */
const IN_A_MINUTE = { messages: 30_000, bytes: 32 * 1_048_576 };

interface Amounts {
  readonly messages: Allowance;
  readonly bytes: Allowance;
}

export class MessageLimit {
  readonly #second: Amounts;
  readonly #minute: Amounts;

  constructor(clock: Pick<Clock, 'monotonic'>) {
    const amounts = ({ messages, bytes }: typeof IN_A_SECOND, everyMs: number): Amounts => ({
      messages: new Allowance(clock, { most: messages, everyMs }),
      bytes: new Allowance(clock, { most: bytes, everyMs }),
    });
    this.#second = amounts(IN_A_SECOND, SECOND_MS);
    this.#minute = amounts(IN_A_MINUTE, MINUTE_MS);
  }

  /** One read of the socket, with the messages that it has completed. Throws a `BrokenProtocol` for too much. */
  take(bytes: number, messages: readonly object[]): void {
    // Each read costs as much as a message, also where it brings one byte.
    const count = Math.max(1, messages.length);
    if (!this.#second.bytes.take(bytes) || !this.#second.messages.take(count))
      throw new BrokenProtocol('it sent more than the daemon can take');
    // What a page or a picture is made of is one text, which costs hardly anything to read.
    const light = messages.reduce((sum, message) => sum + bodyOf(message), 0);
    if (!this.#minute.bytes.take(bytes - light) || !this.#minute.messages.take(count))
      throw new BrokenProtocol('it sent more within a minute than the daemon can take');
  }
}

/** Characters of a route's answer. */
function bodyOf(message: object): number {
  const { value } = message as { readonly value?: { readonly body?: unknown } | null };
  return typeof value?.body === 'string' ? value.body.length : 0;
}
