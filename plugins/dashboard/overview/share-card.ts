/**
 * A share's card: its health, waiting files, cache and speed. Everything here is refreshed automatically;
 * buttons are below it and stay untouched.
 */
import { html } from 'mountkeeper';
import type { Content, View } from 'mountkeeper';
import type { Values } from '../live/feed.ts';
import { copyable, icon, live, meter, sparkline } from '../pages/nodes.ts';
import { qrDisclosure } from './qr-panel.ts';
import { isWarmed, liveValues } from './live-values.ts';
import { conditionOf } from './share-data.ts';
import type { ShareData } from './share-data.ts';

export const sharePath = (share: string): string => `/shares/${encodeURIComponent(share)}`;

export function shareCard(data: ShareData, view: View): Content {
  const { status, tone } = data;
  const values = liveValues(data, view);
  return html`<div class="share" data-tone=${tone} data-share=${status.name}>
    <header><h3><a href=${sharePath(status.name)}><bdi>${status.name}</bdi></a></h3>${healthBadge(data, view)}</header>
    ${status.healthMessage === null ? null : html`<p class="reason"><bdi>${view.said(status.healthMessage)}</bdi></p>`}
    ${cacheBar(data, values)}
    <dl class="figures">${figures(data, values, view)}</dl>
    ${addresses(data, view)}
  </div>`;
}

export function healthBadge({ status, tone, since }: ShareData, view: View): Content {
  return html`<span class="badge" data-tone=${tone}>${icon(tone)}<span>${view.t(`health-${conditionOf(status)}`)}</span>
    ${since === undefined ? null : html` <small>${view.t('since', { time: view.time(since) })}</small>`}</span>`;
}

/** The used part of the cache, the waiting part of that, and the limit. Without one a bar would say nothing. */
export function cacheBar(data: ShareData, values: Values): Content {
  return html`<div class="cache"><p>${live('cache', values['cache'])}</p>
    ${data.cacheLimit === 0 ? null : meter(values)}</div>`;
}

function figure(label: Content, value: Content, tone?: string): Content {
  return html`<div data-tone=${tone}><dt>${label}</dt><dd>${value}</dd></div>`;
}

function figures(data: ShareData, values: Values, view: View): Content {
  const { status } = data;
  return [
    html`<div data-live="waits" data-tone=${values['waits@data-tone'] || undefined}><dt>${view.t('to-upload')}</dt>
      <dd>${live('waiting', values['waiting'])}${oldest(data, values, view)}${paused(data, view)}</dd></div>`,
    status.erroredFiles > 0
      ? figure(view.t('refused-files'), view.t('files', { count: status.erroredFiles }), 'bad')
      : null,
    figure(
      view.t('speed'),
      html`${live('speed', values['speed'])} <small data-live="moving">${values['moving']}</small>${sparkline(values)}`,
    ),
    status.warmupState === 'none'
      ? null
      : figure(
          view.t('warmup'),
          warmup(data, values, view),
          status.warmupState === 'failed' ? 'bad' : undefined,
        ),
    status.dirRefreshActive || status.lastDirRefreshAt !== null
      ? figure(
          view.t('refresh'),
          refreshed(data, view),
          status.lastDirRefreshDirsFailed > 0 ? 'warn' : undefined,
        )
      : null,
  ];
}

/** There also when nothing waits, since that changes from one cycle to the next. */
function oldest({ oldestDirtyAt = 0 }: ShareData, values: Values, view: View): Content {
  return html` <small data-live="oldest" hidden=${values['oldest@hidden'] !== ''}>${view.t('oldest', {
    time: view.time(oldestDirtyAt, 'ago'),
  })}</small>`;
}

function paused({ pausedUntil }: ShareData, view: View): Content {
  if (pausedUntil === undefined) return null;
  return html` <small>${view.t('paused-until', { time: view.time(pausedUntil) })}</small>`;
}

function warmup(data: ShareData, values: Values, view: View): Content {
  const state = view.t(`warmup-${data.status.warmupState}`);
  return isWarmed(data) ? html`${state} <small data-live="warmed">${values['warmed']}</small>` : state;
}

function refreshed({ status }: ShareData, view: View): Content {
  if (status.lastDirRefreshAt === null) return view.t('not-yet');
  const { lastDirRefreshDirsOk: good, lastDirRefreshDirsFailed: failed } = status;
  return html`${view.time(status.lastDirRefreshAt, 'ago')} <small>${
    failed > 0
      ? view.t('folders-failed', {
          good,
          failed,
        })
      : view.t('folders', { count: good })
  }</small>`;
}

function addresses({ status, addresses: list }: ShareData, view: View): Content {
  if (list.length === 0) return null;
  return html`<ul class="addresses">${list.map(
    ({ protocol, address, shown, windows }) =>
      html`<li><span class="protocol">${protocol}</span>
    ${copyable(address, view, shown)}${windows === undefined ? null : copyable(windows, view)}</li>`,
  )}</ul>${
    // The share's own page has a panel of them.
    view.share === undefined ? qrDisclosure(status.name, list, view) : null
  }`;
}
