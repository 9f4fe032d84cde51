/**
 * Formats of webhooks that plugins give, as the plugin that sends asks for them. What a plugin makes of an event is
 * checked here: it may be a stranger's, and goes out under the daemon's name.
 */
import type { WebhookEvent, WebhookFormatsService, WebhookMessage } from '../contract/notifications.ts';
import type { Clock } from '../contract/platform.ts';
import { timeBox } from '../platform/deadline.ts';
import { reasonOf } from '../sdk/reason-of.ts';
import type { StallWatch } from '../sdk/stall-watch.ts';
import { plainCopy, UnfitValue } from './instance/given-values.ts';
import { placeIn } from './instance/ledger.ts';
import type { Ledger } from './instance/ledger.ts';

const RENDER_MS = 5_000;
const MOST_BODY_BYTES = 65_536;
const MOST_HEADERS = 20;
const LONGEST_HEADER = 1_000;
const HEADER_NAME = /^[a-z][a-z0-9-]{0,63}$/i;
/** What a header may hold; a line of its own would be another header. */
const HEADER_VALUE = /^[\t\x20-\x7e]*$/;
/** Said by the connection itself. */
const NOT_THEIRS: ReadonlySet<string> = new Set([
  'connection',
  'content-length',
  'expect',
  'host',
  'keep-alive',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

export interface WebhookFormatsOptions {
  /** Of the active plugins. */
  readonly ledgers: () => readonly Ledger[];
  readonly clock: Clock;
  readonly stalls: StallWatch;
}

export function createWebhookFormats({
  ledgers,
  clock,
  stalls,
}: WebhookFormatsOptions): WebhookFormatsService {
  const all = () =>
    ledgers().flatMap((ledger) =>
      ledger.webhookFormats.map((format) => ({
        name: `${ledger.plugin}/${format.name}`,
        format,
        place: placeIn(ledger, `webhook format ${format.name}`),
      })),
    );
  return {
    names: () => all().map(({ name }) => name),
    async render(name: string, event: WebhookEvent): Promise<WebhookMessage> {
      const found = all().find((one) => one.name === name);
      if (!found) throw new Error(`no plugin that is up gives the format "${name}"`);
      try {
        const copy = Object.freeze(structuredClone(event));
        const render = async () => stalls.call(found.place, () => found.format.render(copy));
        return messageIn(await timeBox(clock, RENDER_MS, render()));
      } catch (error) {
        // Without the cause: it may be whatever the plugin has thrown.
        throw new Error(`the format "${name}" of a plugin failed: ${reasonOf(error)}`, { cause: undefined });
      }
    },
  };
}

/** Throws an `UnfitValue`. */
function messageIn(given: unknown): WebhookMessage {
  const { body, headers = {} } = (given ?? {}) as { readonly body?: unknown; readonly headers?: unknown };
  if (typeof body !== 'string') throw new UnfitValue('it gave no text as body');
  if (Buffer.byteLength(body) > MOST_BODY_BYTES)
    throw new UnfitValue(`its body has more than ${MOST_BODY_BYTES} bytes`);
  return { body, headers: headersIn(headers) };
}

function headersIn(given: unknown): Readonly<Record<string, string>> {
  const copy = plainCopy(given);
  const entries = Object.entries(copy as object) as readonly [string, unknown][];
  if (Array.isArray(copy) || entries.length > MOST_HEADERS)
    throw new UnfitValue(`its headers are no table of at most ${MOST_HEADERS}`);
  const odd = entries.find((entry) => !isHeader(entry));
  if (odd)
    throw new UnfitValue(`it may not send the header ${JSON.stringify(odd[0].slice(0, 100))} like this`);
  return Object.fromEntries(entries.map(([name, value]) => [name.toLowerCase(), value as string]));
}

function isHeader([name, value]: readonly [string, unknown]): boolean {
  if (!HEADER_NAME.test(name) || NOT_THEIRS.has(name.toLowerCase())) return false;
  return typeof value === 'string' && value.length <= LONGEST_HEADER && HEADER_VALUE.test(value);
}
