/** POST /api/webhooks/test, GET /api/webhooks/deliveries, POST /api/webhooks/deliveries/{id}/resend. */
import { randomUUID } from 'node:crypto';
import type { ServerRoute } from '@hapi/hapi';
import { documented } from 'mountkeeper';
import type { Clock } from 'mountkeeper';
import type { Delivery } from './delivery/delivery.ts';
import { DOCUMENTS } from './route-documents.ts';
import type { Outbox } from './delivery/outbox.ts';

const ANSWER_WITHIN_MS = 15_000;
const MAX_BODY_BYTES = 16 * 1_024;

export interface DeliveryView {
  readonly id: string;
  readonly type: string;
  readonly message: string;
  readonly created_at: string;
  readonly state: Delivery['state'];
  readonly tries: number;
  readonly next_at: string | null;
  readonly attempts: readonly {
    readonly at: string;
    readonly ms: number;
    readonly status: number | null;
    readonly problem: string | null;
  }[];
}

export interface WebhookAnswer {
  readonly ok: boolean;
  readonly message: string;
  readonly id: string | null;
}

export interface RouteOptions {
  /** Undefined while the plugin is starting. */
  readonly outbox: () => Outbox | undefined;
  readonly clock: () => Clock;
  readonly signal: AbortSignal;
}

function iso(at: number): string {
  return new Date(at).toISOString();
}

export function viewOf({ id, event, createdAt, state, tries, nextAt, attempts }: Delivery): DeliveryView {
  return {
    id,
    type: event.type,
    message: event.message,
    created_at: iso(createdAt),
    state,
    tries,
    next_at: state === 'waiting' ? iso(nextAt) : null,
    attempts: attempts.map(({ at, ms, status, problem }) => ({ at: iso(at), ms, status, problem })),
  };
}

function answer(ok: boolean, message: string, id: string | null = null): WebhookAnswer {
  return { ok, message, id };
}

async function outcomeOf(
  outbox: Outbox,
  id: string,
  { clock, signal }: RouteOptions,
): Promise<WebhookAnswer> {
  const end = new AbortController();
  try {
    const { state, attempts } = await outbox.afterNextAttempt(
      id,
      clock().deadline(ANSWER_WITHIN_MS, AbortSignal.any([signal, end.signal])),
    );
    const problem = attempts.at(-1)?.problem;
    return state === 'delivered'
      ? answer(true, 'Delivered', id)
      : answer(false, `Not delivered: ${problem ?? 'unknown'}; it is tried again`, id);
  } catch {
    // Late: the delivery goes on by itself.
    return answer(false, 'Not delivered yet; "mountkeeper webhook log" tells what becomes of it', id);
  } finally {
    end.abort();
  }
}

export async function sendTest(options: RouteOptions): Promise<WebhookAnswer> {
  const outbox = options.outbox();
  const key = `test/${randomUUID()}`;
  const delivery = outbox?.add({
    type: 'test',
    severity: 'info',
    message: 'This is a test notification.',
    data: {},
    key,
  });
  if (!outbox || !delivery)
    return answer(false, 'There is nowhere to send to: set notifications.webhook_url');
  return outcomeOf(outbox, delivery.id, options);
}

export async function resend(options: RouteOptions, id: string): Promise<WebhookAnswer> {
  const outbox = options.outbox();
  if (outbox?.resend(id) !== true) return answer(false, `Delivery '${id}' not found`);
  return outcomeOf(outbox, id, options);
}

const OPERATOR = { role: 'operator', verb: 'webhooks' } as const;

export function routes(options: RouteOptions): ServerRoute[] {
  // The path is enough; a body is neither needed nor read.
  const unread = {
    payload: { maxBytes: MAX_BODY_BYTES, parse: false, output: 'data', failAction: 'ignore' },
  } as const;
  return [
    {
      method: 'GET',
      path: '/api/webhooks/deliveries',
      options: documented(DOCUMENTS.deliveries, OPERATOR),
      handler: () => ({ deliveries: (options.outbox()?.deliveries ?? []).map(viewOf) }),
    },
    {
      method: 'POST',
      path: '/api/webhooks/test',
      options: { ...unread, ...documented(DOCUMENTS.test, OPERATOR) },
      handler: async (_request, h) => h.response(await sendTest(options)),
    },
    {
      method: 'POST',
      path: '/api/webhooks/deliveries/{id}/resend',
      options: { ...unread, ...documented(DOCUMENTS.resend, OPERATOR) },
      handler: async (request, h) => h.response(await resend(options, String(request.params['id']))),
    },
  ];
}
