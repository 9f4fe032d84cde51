import { hostname } from 'node:os';
import type { Clock, Secrets } from 'mountkeeper';
import type { WebhooksConfig } from '../config.ts';
import { formatOf, outgoing, refusalIn } from './formats.ts';
import type { Format } from './formats.ts';
import type { OutboxOptions, Outcome } from './outbox.ts';
import { post } from './post.ts';
import type { Reply } from './post.ts';
import { askedWaitMs } from './retry-times.ts';

export interface AttemptOptions {
  readonly clock: Clock;
  readonly secrets: Secrets;
  /** Called at each attempt. */
  readonly config: () => Readonly<WebhooksConfig>;
}

/** One attempt to send a delivery to the currently configured receiver. */
export function createAttempt({ clock, secrets, config }: AttemptOptions): OutboxOptions['attempt'] {
  return async (delivery, signal) => {
    try {
      const {
        webhook_url: address,
        webhook_format: wanted,
        webhook_secret: reference,
        allow_private: allowPrivate,
      } = config();
      const url = new URL(address);
      const format = wanted === 'auto' ? formatOf(url) : wanted;
      const around = { host: hostname(), secret: secrets.resolve(reference), now: clock.now() };
      return outcomeOf(
        format,
        await post(outgoing(format, delivery, { url, around }), { signal, allowPrivate }),
        clock.now(),
      );
    } catch (error) {
      const isLate = signal.aborted && (signal.reason as Error | undefined)?.name === 'TimeoutError';
      return {
        ok: false,
        status: null,
        problem: isLate ? 'the receiver did not answer in time' : (error as Error).message,
      };
    }
  };
}

function outcomeOf(format: Format, reply: Reply, now: number): Outcome {
  const { status } = reply;
  if (status < 200 || status > 299)
    return {
      ok: false,
      status,
      problem: `the receiver answered ${status}`,
      askedWaitMs: askedWaitMs(reply.retryAfter, now),
    };
  const refusal = refusalIn(format, reply.body);
  return refusal === undefined ? { ok: true, status } : { ok: false, status, problem: refusal };
}
