/** Formats that need neither secret nor address: given in the way in which every plugin gives one. */
import type { WebhookEvent, WebhookFormat, WebhookMessage } from 'mountkeeper';

const MOST_OF_DISCORD = 2_000;

function sentence({ event, host }: WebhookEvent): string {
  return `Mountkeeper (${host}): ${event.message}`;
}

function json(body: object): WebhookMessage {
  return { headers: { 'content-type': 'application/json; charset=utf-8' }, body: JSON.stringify(body) };
}

export const slack = {
  name: 'slack',
  render: (about: WebhookEvent) =>
    json({ text: sentence(about).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;') }),
} satisfies WebhookFormat;

export const discord = {
  name: 'discord',
  render: (about: WebhookEvent) =>
    json({ content: sentence(about).slice(0, MOST_OF_DISCORD), allowed_mentions: { parse: [] } }),
} satisfies WebhookFormat;
