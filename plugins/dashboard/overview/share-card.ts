/**
 * A share's card: its health, waiting files, cache and speed. Everything here is refreshed automatically;
 * buttons are below it and stay untouched.
 */
import { html } from 'mountkeeper';
import type { Content, View } from 'mountkeeper';
import { copyable, icon, meter, sparkline } from '../pages/nodes.ts';
import type { ShareAddress, ShareData } from './share-data.ts';

export const sharePath = (share: string): string => `/shares/${encodeURIComponent(share)}`;

export function shareCard(data: ShareData, view: View): Content {
  const { status, tone } = data;
  return html`<div class="share" data-tone=${tone} data-share=${status.name}>
    <header><h3><a href=${sharePath(status.name)}><bdi>${status.name}</bdi></a></h3>${healthBadge(data, view)}</header>
    ${status.healthMessage === null ? null : html`<p class="reason"><bdi>${view.said(status.healthMessage)}</bdi></p>`}
    ${cacheBar(data, view)}
    <dl class="figures">${figures(data, view)}</dl>
    ${addresses(data.addresses, view)}
  </div>`;
}

export function healthBadge({ status, tone, since }: ShareData, view: View): Content {
  const label = status.health === 'healthy' && tone !== 'good' ? `healthy-${tone}` : status.health;
  return html`<span class="badge" data-tone=${tone}>${icon(tone)}<span>${view.t(`health-${label}`)}</span>
    ${since === undefined ? null : html` <small>${view.t('since', { time: view.time(since) })}</small>`}</span>`;
}

/**
 * The used part of the cache, the waiting part of that, and the limit. Without a limit there is no bar to
 * draw.
 */
export function cacheBar({ status, cacheLimit, dirtyBytes }: ShareData, view: View): Content {
  // rclone measures its cache only now and then, but waiting files are certainly in it.
  const used = Math.max(status.cacheBytes, dirtyBytes ?? 0);
  const label =
    cacheLimit === 0
      ? view.t('cache-used', { used: view.bytes(used) })
      : view.t('cache-used-of', { used: view.bytes(used), limit: view.bytes(cacheLimit) });
  const whole = cacheLimit === 0 ? Math.max(used, 1) : cacheLimit;
  return html`<div class="cache"><p>${label}</p>
    ${
      cacheLimit === 0 && used === 0
        ? null
        : meter({
            whole,
            parts: [
              { kind: 'dirty', size: dirtyBytes ?? 0 },
              { kind: 'clean', size: used - (dirtyBytes ?? 0) },
            ],
          })
    }</div>`;
}

function figure(label: Content, value: Content, tone?: string): Content {
  return html`<div data-tone=${tone}><dt>${label}</dt><dd>${value}</dd></div>`;
}

function figures(data: ShareData, view: View): Content {
  const { status, speeds } = data;
  const moving = view.t('transfers', { count: status.transfers });
  return [
    figure(
      view.t('to-upload'),
      [waiting(data, view), paused(data, view)],
      status.dirtyCount > 0 ? 'warn' : undefined,
    ),
    status.erroredFiles > 0
      ? figure(view.t('refused-files'), view.t('files', { count: status.erroredFiles }), 'bad')
      : null,
    figure(
      view.t('speed'),
      html`${view.rate(status.speed)} <small>${status.transfers > 0 ? moving : null}</small>${sparkline(speeds)}`,
    ),
    status.warmupState === 'none'
      ? null
      : figure(view.t('warmup'), warmup(data, view), status.warmupState === 'failed' ? 'bad' : undefined),
    status.dirRefreshActive || status.lastDirRefreshAt !== null
      ? figure(
          view.t('refresh'),
          refreshed(data, view),
          status.lastDirRefreshDirsFailed > 0 ? 'warn' : undefined,
        )
      : null,
  ];
}

export function waiting({ status, dirtyBytes, oldestDirtyAt }: ShareData, view: View): Content {
  if (status.dirtyCount === 0) return view.t(status.mounted ? 'nothing' : 'nothing-known');
  const count = status.dirtyCount;
  return html`${
    dirtyBytes === undefined
      ? view.t('files', { count })
      : view.t('files-bytes', { count, bytes: view.bytes(dirtyBytes) })
  }
    ${
      oldestDirtyAt === undefined
        ? null
        : html` <small>${view.t('oldest', { time: view.time(oldestDirtyAt, 'ago') })}</small>`
    }`;
}

function paused({ pausedUntil }: ShareData, view: View): Content {
  if (pausedUntil === undefined) return null;
  return html` <small>${view.t('paused-until', { time: view.time(pausedUntil) })}</small>`;
}

function warmup({ status }: ShareData, view: View): Content {
  const state = view.t(`warmup-${status.warmupState}`);
  const isCounted = status.warmupState === 'caching' || status.warmupState === 'complete';
  return isCounted
    ? html`${state} <small>${view.t('done-of', { done: status.warmupDone, total: status.warmupTotal })}</small>`
    : state;
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

function addresses(list: readonly ShareAddress[], view: View): Content {
  if (list.length === 0) return null;
  return html`<ul class="addresses">${list.map(
    ({ protocol, address, shown, windows }) =>
      html`<li><span class="protocol">${protocol}</span>
    ${copyable(address, view, shown)}${windows === undefined ? null : copyable(windows, view)}</li>`,
  )}</ul>`;
}
