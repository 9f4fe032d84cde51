/** Panels on the page of a share: its figures over time, and its events. */
import { html } from 'mountkeeper';
import type { Content, Tab, View } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import type { ShareEvent, ShareEvents } from '../live/events.ts';
import { SPAN_NAMES } from '../live/series.ts';
import type { Series, Span } from '../live/series.ts';
import { icon } from '../pages/nodes.ts';

const TONES = {
  healthy: 'good',
  failed: 'bad',
  waiting: 'info',
  saved: 'good',
  refused: 'bad',
  offline: 'bad',
  online: 'good',
  discarded: 'warn',
  replaced: 'info',
} as const;
const CHARTS = ['speed', 'cache', 'dirty'] as const;

function event({ at, kind, reason = '', files }: ShareEvent, view: View): Content {
  const why = view.said(reason);
  return html`<li data-tone=${TONES[kind]}>${icon(TONES[kind])}<div><p>${view.t(`event-${kind}`, {
    count: files ?? 0,
  })} <small>${view.time(at)}</small></p>
    ${why === '' ? null : html`<p class="help"><bdi>${why}</bdi></p>`}</div></li>`;
}

export function spanOf(text: string | undefined): Span {
  return SPAN_NAMES.find((span) => span === text) ?? 'hour';
}

/** Drawn by the page's script; without a script only the card's figures are shown. */
function charts(view: View): Content {
  const choice = spanOf(view.query['span']);
  return html`<div class="charts" data-charts=${`/dashboard/charts/${encodeURIComponent(view.share ?? '')}`}
      data-kept="charts" data-span=${choice}>
    <div class="actions" role="group" aria-label=${view.t('span')}>${SPAN_NAMES.map(
      (span) =>
        html`<button type="button" class="quiet" data-choose=${span}
      aria-pressed=${span === choice ? 'true' : 'false'}>${view.t(`span-${span}`)}</button>`,
    )}</div>
    ${CHARTS.map(
      (chart) =>
        html`<figure><figcaption>${view.t(`chart-${chart}`)}</figcaption>
      <div class="chart" data-chart=${chart} role="img" aria-label=${view.t(`chart-${chart}`)}></div></figure>`,
    )}
    <p class="help" data-empty hidden>${view.t('chart-empty')}</p></div>`;
}

export interface PanelParts {
  /** Both throw while the plugin is starting. */
  readonly events: () => ShareEvents;
  readonly series: () => Series;
}

export function sharePanels({ events }: PanelParts): readonly Tab[] {
  return [
    {
      id: 'share-charts',
      place: 'share',
      order: 60,
      title: everywhere('charts'),
      access: { see: 'viewer' },
      texts: CATALOGUES,
      render: () => html`<span class="unseen"></span>`,
      controls: charts,
    },
    {
      id: 'share-history',
      place: 'share',
      order: 70,
      title: everywhere('history'),
      access: { see: 'viewer' },
      texts: CATALOGUES,
      render: (view) => {
        const list = events().of(view.share ?? '');
        return list.length === 0
          ? html`<p class="help">${view.t('history-empty')}</p>`
          : html`<div class="events" tabindex="0" role="region" aria-label=${view.plain('history')}>
          <ul class="notices">${list.map((one) => event(one, view))}</ul></div>`;
      },
    },
  ];
}
