import { createHmac } from 'node:crypto';
import type { Delivery } from './delivery.ts';

export const FORMATS = ['generic', 'slack', 'discord', 'ntfy', 'wecom', 'dingtalk', 'feishu'] as const;
export type Format = (typeof FORMATS)[number];
/** Those that sign, or need the address or the secret; `text-formats.ts` has the others. */
export type WrittenHere = Exclude<Format, 'slack' | 'discord'>;

export interface MessageOrigin {
  /** Name of this machine. */
  readonly host: string;
  /** Clear text; empty when there is none. */
  readonly secret: string;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

export interface Outgoing {
  readonly url: URL;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Limits of the receivers, in bytes of text; longer texts are refused or become attachments. */
const MOST_BYTES = { wecom: 2_048, ntfy: 4_096 } as const;
const JSON_TYPE = 'application/json; charset=utf-8';
const PRIORITIES = { info: 'low', warning: 'default', error: 'high' } as const;

/** Chosen by the receiver's address; unknown ones get the documented payload. */
export function formatOf(url: URL): Format {
  const { hostname } = url;
  if (hostname === 'hooks.slack.com') return 'slack';
  if (/(^|\.)discord(app)?\.com$/.test(hostname)) return 'discord';
  if (hostname === 'ntfy.sh') return 'ntfy';
  if (hostname === 'qyapi.weixin.qq.com') return 'wecom';
  if (hostname === 'oapi.dingtalk.com') return 'dingtalk';
  return /^open\.(feishu\.cn|larksuite\.com)$/.test(hostname) ? 'feishu' : 'generic';
}

/** Version 1 of the documented payload. */
export function payloadOf({ id, event, createdAt }: Delivery, host: string): object {
  const { type, severity, message, data } = event;
  return {
    version: 1,
    id,
    type,
    timestamp: new Date(createdAt).toISOString(),
    severity,
    message,
    source: { service: 'mountkeeper', host },
    data,
  };
}

/** Standard Webhooks: a secret `whsec_…` is base64, any other is used as it is. */
export function signatureOf(
  id: string,
  seconds: number,
  signed: { readonly body: string; readonly secret: string },
): string {
  const key = signed.secret.startsWith('whsec_')
    ? Buffer.from(signed.secret.slice('whsec_'.length), 'base64')
    : Buffer.from(signed.secret);
  return `v1,${createHmac('sha256', key).update(`${id}.${seconds}.${signed.body}`).digest('base64')}`;
}

type Writer = (delivery: Delivery, url: URL, around: MessageOrigin) => Outgoing;

function sentence({ event }: Delivery, { host }: MessageOrigin): string {
  return `Mountkeeper (${host}): ${event.message}`;
}

/** As much of a text as fits, in whole characters. */
function within(bytes: number, long: string): string {
  if (Buffer.byteLength(long) <= bytes) return long;
  const cut = Buffer.from(long)
    .subarray(0, bytes - Buffer.byteLength('…'))
    .toString();
  return `${cut.replace(/(?<!\uFFFD)\uFFFD+$/, '')}…`;
}

function json(url: URL, body: object): Outgoing {
  return { url, headers: { 'content-type': JSON_TYPE }, body: JSON.stringify(body) };
}

const generic: Writer = (delivery, url, { host, secret, now }) => {
  const plain = json(url, payloadOf(delivery, host));
  const seconds = Math.floor(now / 1000);
  const identity = { 'webhook-id': delivery.id, 'webhook-timestamp': String(seconds) };
  const signature =
    secret === ''
      ? {}
      : { 'webhook-signature': signatureOf(delivery.id, seconds, { body: plain.body, secret }) };
  return { ...plain, headers: { ...plain.headers, ...identity, ...signature } };
};

const ntfy: Writer = (delivery, url, around) => {
  const { event } = delivery;
  const access = around.secret === '' ? {} : { authorization: `Bearer ${around.secret}` };
  return {
    url,
    headers: {
      'content-type': 'text/plain; charset=utf-8',
      title: `Mountkeeper ${event.type}`,
      priority: PRIORITIES[event.severity],
      ...access,
    },
    body: within(MOST_BYTES.ntfy, sentence(delivery, around)),
  };
};

const wecom: Writer = (delivery, url, around) =>
  json(url, { msgtype: 'text', text: { content: within(MOST_BYTES.wecom, sentence(delivery, around)) } });

const text: Writer = (delivery, url, around) =>
  json(url, { msgtype: 'text', text: { content: sentence(delivery, around) } });

/** 加签: the time and its signature are part of the address. */
const dingtalk: Writer = (delivery, url, around) => {
  const { secret, now } = around;
  if (secret === '') return text(delivery, url, around);
  const signed = new URL(url);
  signed.searchParams.set('timestamp', String(now));
  signed.searchParams.set('sign', createHmac('sha256', secret).update(`${now}\n${secret}`).digest('base64'));
  return text(delivery, signed, around);
};

/** 签名校验: the key consists of time and secret, and the signed message is empty. */
const feishu: Writer = (delivery, url, around) => {
  const { secret, now } = around;
  const seconds = String(Math.floor(now / 1000));
  const proof =
    secret === ''
      ? {}
      : { timestamp: seconds, sign: createHmac('sha256', `${seconds}\n${secret}`).digest('base64') };
  return json(url, { ...proof, msg_type: 'text', content: { text: sentence(delivery, around) } });
};

const WRITERS: Readonly<Record<WrittenHere, Writer>> = { generic, ntfy, wecom, dingtalk, feishu };

export function outgoing(
  format: WrittenHere,
  delivery: Delivery,
  to: { readonly url: URL; readonly around: MessageOrigin },
): Outgoing {
  return WRITERS[format](delivery, to.url, to.around);
}

/** These receivers answer 200 even when they refuse, and say so in the body. */
export function refusalIn(format: string, body: string): string | undefined {
  if (format !== 'wecom' && format !== 'dingtalk' && format !== 'feishu') return undefined;
  try {
    const { errcode, code, errmsg, msg } = JSON.parse(body) as {
      errcode?: number;
      code?: number;
      errmsg?: string;
      msg?: string;
    };
    const number = errcode ?? code ?? 0;
    return number === 0
      ? undefined
      : `the receiver refused it: ${number} ${errmsg ?? msg ?? ''}`.slice(0, 150).trim();
  } catch {
    // Said in the answer's own terms.
    return 'the receiver answered something that is no JSON';
  }
}
