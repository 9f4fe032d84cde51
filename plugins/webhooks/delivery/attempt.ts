import { hostname } from 'node:os';
import type { Clock, Secrets, WebhookFormatsService } from 'mountkeeper';
import type { WebhooksConfig } from '../config.ts';
import { formatOf, outgoing, refusalIn } from './formats.ts';
import type { Outgoing, WrittenHere } from './formats.ts';
import type { Delivery } from './delivery.ts';
import type { OutboxOptions, Outcome } from './outbox.ts';
import { post } from './post.ts';
import type { Reply } from './post.ts';
import { askedWaitMs } from './retry-times.ts';

export interface AttemptOptions {
  readonly clock: Clock;
  readonly secrets: Secrets;
  readonly formats: WebhookFormatsService;
  /** Called at each attempt. */
  readonly config: () => Readonly<WebhooksConfig>;
}

/** One attempt to send a delivery to the currently configured receiver. */
export function createAttempt({ clock, secrets, formats, config }: AttemptOptions): OutboxOptions['attempt'] {
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
      const given = givenBy(format);
      const around = { host: hostname(), secret: secrets.resolve(reference), now: clock.now() };
      const message =
        given === undefined
          ? outgoing(format as WrittenHere, delivery, { url, around })
          : await rendered(formats, given, { delivery, url });
      return outcomeOf(format, await post(message, { signal, allowPrivate }), clock.now());
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

/** The name under which plugins give a format, this one included; undefined for one that is written here. */
function givenBy(format: string): string | undefined {
  if (format === 'slack' || format === 'discord') return `webhooks/${format}`;
  return format.includes('/') ? format : undefined;
}

/** The secret is not shown to those who make it. */
async function rendered(
  formats: WebhookFormatsService,
  name: string,
  { delivery, url }: { readonly delivery: Delivery; readonly url: URL },
): Promise<Outgoing> {
  const { event, id, createdAt: at } = delivery;
  const { headers = {}, body } = await formats.render(name, { event, id, at, host: hostname() });
  return { url, headers, body };
}

function outcomeOf(format: string, reply: Reply, now: number): Outcome {
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
