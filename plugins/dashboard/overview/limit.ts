/** The bandwidth limit: what is in force, and a form with a slider for each direction. */
import { html, rateBytes } from 'mountkeeper';
import type { BandwidthState, Content, View } from 'mountkeeper';

/** Where the sliders stop, in bytes per second; the last one is no limit. */
const STOPS = [
  '256K',
  '512K',
  '1M',
  '2M',
  '3M',
  '5M',
  '10M',
  '20M',
  '50M',
  '100M',
  '200M',
  '500M',
  '1G',
  '0',
] as const;

type Direction = 'up' | 'down';

const UNITS = ['G', 'M', 'K'] as const;

/** As people write it into the configuration; 0 is no limit. */
export function writtenRate(bytes: number): string {
  const power = UNITS.findIndex((_, index) => bytes >= 1024 ** (3 - index));
  if (bytes === 0 || power === -1) return bytes === 0 ? '0' : `${bytes}B`;
  const value = bytes / 1024 ** (3 - power);
  return Number.isInteger(value * 10) ? `${value}${UNITS[power] ?? ''}` : `${bytes}B`;
}

const shownRate = (rate: number, view: View): string =>
  rate === 0 ? view.plain('unlimited') : view.rate(rate);

export function limitPanel({ limit, effective }: BandwidthState, view: View): Content {
  const shown = (rate: number): Content => shownRate(rate, view);
  const isAdapted = effective.up !== limit.up || effective.down !== limit.down;
  return html`<dl class="figures" data-up=${writtenRate(limit.up)} data-down=${writtenRate(limit.down)}>
    <div><dt>${view.t('limit-up')}</dt><dd>${shown(limit.up)}</dd></div>
    <div><dt>${view.t('limit-down')}</dt><dd>${shown(limit.down)}</dd></div>
    ${
      isAdapted
        ? html`<div><dt>${view.t('limit-now')}</dt><dd
            >↑ ${shown(effective.up)} ↓ ${shown(effective.down)}</dd></div>`
        : null
    }</dl>`;
}

/** The slider and the text follow each other, and the limit in force until somebody uses one of them. */
function rateField(direction: Direction, now: number, view: View): Content {
  const written = writtenRate(now);
  const stops = STOPS.map((stop) => [stop, shownRate(rateBytes(stop), view)]);
  return html`<div class="rate">
    <label>${view.t(`limit-${direction}`)} <input name=${direction} value=${written} required inputmode="text"
        autocomplete="off" size="8" aria-describedby="rate-help" /></label>
    <input type="range" min="0" max=${STOPS.length - 1} step="1" value=${nearest(now)}
        data-rate=${direction} data-stops=${JSON.stringify(stops)} aria-label=${view.t(`limit-${direction}`)}
        aria-valuetext=${shownRate(now, view)} aria-describedby="rate-help" />
    <span class="shown-rate" aria-hidden="true">${shownRate(now, view)}</span></div>`;
}

function nearest(bytes: number): number {
  if (bytes === 0) return STOPS.length - 1;
  const distances = STOPS.slice(0, -1).map((stop) => Math.abs(Math.log(rateBytes(stop) / bytes)));
  return distances.indexOf(Math.min(...distances));
}

/** Not refreshed automatically, so that nobody's input is overwritten. */
export function limitForm(action: string, { limit }: BandwidthState, view: View): Content {
  return html`<form class="limit act" method="post" action=${action} hx-post=${action} hx-target="find output"
      hx-swap="innerHTML" hx-disabled-elt="find button">
    ${rateField('up', limit.up, view)}${rateField('down', limit.down, view)}
    <button type="submit">${view.t('limit-set')}</button><output aria-live="polite"></output>
    <p id="rate-help" class="help">${view.t('limit-help')}</p></form>`;
}
