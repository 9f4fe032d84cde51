/** Parts of the overview around the shares: the main sentence, notices, the servers, the bandwidth limit. */
import { html } from 'mountkeeper';
import type { BandwidthState, CertificatesService, Content, Notice, StatusRecord, View } from 'mountkeeper';
import { icon } from '../pages/nodes.ts';
import { offerOf, PROTOCOLS, reachedAs } from './share-data.ts';
import type { ProtocolOffer } from './share-data.ts';
import type { Sentence } from './sentence.ts';

export function sentencePanel(sentence: Sentence, view: View): Content {
  const { tone, key, files, bytes, since } = sentence;
  const amount =
    bytes === undefined || files === 0
      ? view.t('files', { count: files })
      : view.t('files-bytes', { count: files, bytes: view.bytes(bytes) });
  const message = isOffline(sentence) && since === undefined ? `${key}-now` : key;
  return html`<section class="sentence" data-tone=${tone} data-key=${key}><span class="sign">${icon(
    key === 'unsaved' ? 'unsaved' : tone,
  )}</span><div>
    <p class="headline">${view.t(`sentence-${message}`, {
      amount,
      count: files,
      since: since === undefined ? '' : view.time(since),
    })}</p>
    ${detailsOf(sentence, amount, view).map((line) => html`<p>${line}</p>`)}</div></section>`;
}

function isOffline({ key }: Sentence): boolean {
  return key === 'offline' || key === 'offline-cached';
}

/** What waits for the NAS that is offline, and what is on its way to another one. */
function whileOffline({ files, elsewhere = 0 }: Sentence, amount: Content, view: View): readonly Content[] {
  const inFiles = (count: number): Content => (count === files ? amount : view.t('files', { count }));
  return [
    ...(files > elsewhere ? [view.t('sentence-waiting', { amount: inFiles(files - elsewhere) })] : []),
    ...(elsewhere > 0 ? [view.t('sentence-unsaved', { amount: inFiles(elsewhere) })] : []),
  ];
}

function detailsOf(sentence: Sentence, amount: Content, view: View): readonly Content[] {
  const { files, oldestAt, shares } = sentence;
  return [
    ...(isOffline(sentence) ? whileOffline(sentence, amount, view) : []),
    ...(oldestAt !== undefined && files > 0
      ? [view.t('sentence-oldest', { time: view.time(oldestAt, 'ago') })]
      : []),
    ...(shares.length > 0
      ? [shares.map((name, index) => [index === 0 ? null : view.t('list-comma'), html`<bdi>${name}</bdi>`])]
      : []),
  ];
}

export function noticesPanel(notices: readonly Notice[], view: View): Content {
  if (notices.length === 0) return null;
  const order = { error: 0, warning: 1, info: 2 } as const;
  const tones = { error: 'bad', warning: 'warn', info: 'info' } as const;
  const sorted = [...notices].sort((a, b) => order[a.level] - order[b.level]);
  return html`<ul class="notices" aria-label=${view.t('notices')}>${sorted.map(
    ({ level, message }) =>
      html`<li data-tone=${tones[level]}>
    ${icon(tones[level])}<p><strong>${view.t(`level-${level}`)}</strong> <bdi>${message}</bdi></p></li>`,
  )}</ul>`;
}

export interface ServerFacts {
  readonly record: StatusRecord;
  readonly offers: readonly ProtocolOffer[];
  readonly host: string;
}

/** Whether each server is serving, and at which address. */
export function serversPanel({ record, offers, host }: ServerFacts, view: View): Content {
  const isUp = { smb: record.smbdRunning, nfs: record.nfsExported, webdav: record.webdavRunning };
  return html`<ul class="servers">${PROTOCOLS.map(({ protocol, key, services }) => {
    const offer = offerOf(offers, key, services);
    const where = offer === undefined ? null : html` <code>${reachedAs(offer, host)}:${offer.port}</code>`;
    return html`<li data-tone=${isUp[key] ? 'good' : 'off'}><span class="protocol">${protocol}</span> <span>${view.t(
      isUp[key] ? 'serving' : 'not-serving',
    )}</span>${isUp[key] ? where : null}</li>`;
  })}</ul>`;
}

/** For people to compare with what their browser shows; anybody who connects is shown the same. */
export function certificatesPanel(
  certificates: ReturnType<CertificatesService['list']>,
  view: View,
): Content {
  if (certificates.length === 0) return null;
  return html`<ul class="servers certificates">${certificates.map(
    ({ label, fingerprint, endsAt }) =>
      html`<li><span>${view.t('certificate', {
        of: html`<code>${label}</code>`,
        end: new Date(endsAt).toISOString().slice(0, 10),
      })}</span> <code class="fingerprint">${fingerprint}</code></li>`,
  )}</ul>`;
}

export function limitPanel({ limit, effective }: BandwidthState, view: View): Content {
  const shown = (rate: number): Content => (rate === 0 ? view.t('unlimited') : view.rate(rate));
  const isAdapted = effective.up !== limit.up || effective.down !== limit.down;
  return html`<dl class="figures"><div><dt>${view.t('limit-up')}</dt><dd>${shown(limit.up)}</dd></div>
    <div><dt>${view.t('limit-down')}</dt><dd>${shown(limit.down)}</dd></div>
    ${
      isAdapted
        ? html`<div><dt>${view.t('limit-now')}</dt><dd
            >↑ ${shown(effective.up)} ↓ ${shown(effective.down)}</dd></div>`
        : null
    }</dl>`;
}

/** Not refreshed automatically, so that nobody's input is overwritten. */
export function limitForm(action: string, view: View): Content {
  const choices = ['0', '512K', '1M', '2M', '5M', '10M', '50M'];
  return html`<form class="limit act" method="post" action=${action} hx-post=${action} hx-target="find output"
      hx-swap="innerHTML" hx-disabled-elt="find button">
    <label>${view.t('limit-up')} <input name="up" list="rates" required inputmode="text" autocomplete="off"
        size="8" placeholder="5M" aria-describedby="rate-help" /></label>
    <label>${view.t('limit-down')} <input name="down" list="rates" required inputmode="text" autocomplete="off"
        size="8" placeholder="0" aria-describedby="rate-help" /></label>
    <datalist id="rates">${choices.map((rate) => html`<option value=${rate} />`)}</datalist>
    <button type="submit">${view.t('limit-set')}</button><output aria-live="polite"></output>
    <p id="rate-help" class="help">${view.t('limit-help')}</p></form>`;
}
