/** The deliveries on the dashboard: what was sent, with which result, and a button to send it again. */
import { html, inEveryLanguage, readTexts } from 'mountkeeper';
import type { Content, Outcome, Tab, View } from 'mountkeeper';
import type { Delivery } from './delivery/delivery.ts';
import { resend, sendTest } from './routes.ts';
import type { RouteOptions } from './routes.ts';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);
const TONES = { waiting: 'wait', delivered: 'good', failed: 'bad' } as const;
/** All that are kept. */
const MOST_SHOWN = 200;

function said(problem: string, view: View): Content {
  return html` <small><bdi>${view.said(problem)}</bdi></small>`;
}

function nobody(view: View): Content {
  return html`<p class="empty">${view.t('off')} <a href="/tabs/settings">${view.t('to-settings')}</a></p>`;
}

function row({ id, event, createdAt, state, tries, nextAt, attempts }: Delivery, view: View): Content {
  const problem = attempts.at(-1)?.problem;
  return html`<tr><td>${view.time(createdAt)}</td><td><bdi>${view.said(
    event.message,
  )}</bdi> <small>${event.type}</small></td>
    <td><span class="badge" data-tone=${TONES[state]}>${view.t(`state-${state}`)}</span>
      ${state !== 'delivered' && typeof problem === 'string' ? said(problem, view) : null}
      ${state === 'waiting' ? html` <small>${view.t('next', { time: view.time(nextAt) })}</small>` : null}</td>
    <td data-head=${view.plain('tries')}>${view.number(tries)}</td><td>${view.button({
      action: 'again',
      label: text('again'),
      values: {
        id,
      },
    })}</td></tr>`;
}

function table({ outbox }: RouteOptions, isOn: boolean, view: View): Content {
  const deliveries = [...(outbox()?.deliveries ?? [])].reverse().slice(0, MOST_SHOWN);
  const heads = ['when', 'event', 'state', 'tries', 'what'];
  const test = html`<div class="actions">${view.button({ action: 'test', label: text('test') })}</div>`;
  return html`<div class="drawn">${isOn ? test : nobody(view)}
    ${isOn && deliveries.length === 0 ? html`<p class="empty">${view.t('none')}</p>` : null}
    ${
      deliveries.length === 0
        ? null
        : html`<div class="scroll" tabindex="0" role="region" aria-label=${view.text(text('title'))}>
      <table class="stacked"><thead><tr>
      ${heads.map((head) => html`<th scope="col">${view.t(head)}</th>`)}</tr></thead><tbody>${deliveries.map(
        (one) => row(one, view),
      )}</tbody></table></div>`
    }</div>`;
}

async function told(work: Promise<{ readonly ok: boolean; readonly message: string }>): Promise<Outcome> {
  const { ok, message } = await work;
  return { ok, message: ok ? text('delivered') : message };
}

export function notificationsTab(options: RouteOptions, isOn: () => boolean): Tab {
  return {
    id: 'notifications',
    access: { see: 'operator', act: { again: 'operator', test: 'operator' } },
    order: 60,
    title: text('title'),
    texts: TEXTS,
    icon: 'M6 17V11a6 6 0 0 1 12 0v6l2 2H4zM10 21h4',
    render: (view) => table(options, isOn(), view),
    actions: {
      test: () => told(sendTest(options)),
      again: (view) => told(resend(options, view.form['id'] ?? '')),
    },
  };
}
