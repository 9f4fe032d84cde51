/** Parts of the overview around the shares: the main sentence, notices, the servers. */
import { html } from 'mountkeeper';
import type { CertificatesService, Content, Notice, StatusRecord, View } from 'mountkeeper';
import type { Values } from '../live/feed.ts';
import { signed } from '../client/signs.ts';
import { icon, live } from '../pages/nodes.ts';
import { amountOf, isLive, MOST_NAMES, sentenceValues } from './sentence-values.ts';
import { offerOf, PROTOCOLS, reachedAs } from './share-data.ts';
import type { ProtocolOffer } from './share-data.ts';
import type { Sentence } from './sentence.ts';

export function sentencePanel(sentence: Sentence, view: View): Content {
  const { tone, key, files, bytes, since } = sentence;
  const amount = amountOf(files, bytes, view);
  const message = isOffline(sentence) && since === undefined ? `${key}-now` : key;
  return html`<section class="sentence" data-tone=${tone} data-key=${key}><span class="sign">${icon(
    key === 'unsaved' ? 'unsaved' : tone,
  )}</span><div>
    <p class="headline">${view.t(`sentence-${message}`, {
      amount: isLive(sentence) ? live('amount', amount) : amount,
      count: files,
      since: since === undefined ? '' : view.time(since),
    })}</p>
    ${detailsOf(sentence, amount, view).map((line) => html`<p>${line}</p>`)}</div></section>`;
}

function isOffline({ key }: Sentence): boolean {
  return key.startsWith('offline');
}

/** What can be used while the NAS is offline, where that is not the same for all shares. */
function useLines({ use }: Sentence, view: View): readonly Content[] {
  if (!use) return [];
  const line = (key: string, names: readonly string[]): readonly Content[] =>
    names.length === 0 ? [] : [view.t(key, { names: nameList(names, view) })];
  return [
    ...line('sentence-usable', use.usable),
    ...line('sentence-usable-partly', use.usablePartly),
    ...line('sentence-unreadable', use.unreadable),
    ...line('sentence-unmounted', use.unmounted),
  ];
}

function nameList(names: readonly string[], view: View): Content {
  const more = names.length - MOST_NAMES;
  return [
    names
      .slice(0, MOST_NAMES)
      .map((name, at) => [at === 0 ? '' : view.t('list-comma'), html`<bdi>${signed(name)}</bdi>`]),
    more > 0 ? [' ', view.t('and-more', { count: more })] : '',
  ];
}

/** What waits for the NAS that is offline, and what is on its way to another one. */
function whileOffline({ files, elsewhere = 0 }: Sentence, amount: Content, view: View): readonly Content[] {
  const inFiles = (count: number): Content => (count === files ? amount : view.t('files', { count }));
  return [
    ...(files > elsewhere ? [view.t('sentence-waiting', { amount: inFiles(files - elsewhere) })] : []),
    ...(elsewhere > 0 ? [view.t('sentence-unsaved', { amount: inFiles(elsewhere) })] : []),
  ];
}

/** What else waits beside the files that are refused, and what a pause keeps. */
function whileWaiting({ others = 0, paused }: Sentence, view: View): readonly Content[] {
  return [
    ...(others > 0 ? [view.t('sentence-others', { count: others })] : []),
    ...(paused
      ? [view.t('paused-some', { names: nameList(paused.shares, view), time: view.time(paused.until) })]
      : []),
  ];
}

function detailsOf(sentence: Sentence, amount: Content, view: View): readonly Content[] {
  const { files, oldestAt, shares } = sentence;
  return [
    ...useLines(sentence, view),
    ...(isOffline(sentence) ? whileOffline(sentence, amount, view) : []),
    ...(oldestAt !== undefined && files > 0
      ? [
          html`<span data-live="oldest">${view.t('sentence-oldest', { time: view.time(oldestAt, 'ago') })}</span>`,
        ]
      : []),
    ...(shares.length > 0 ? [named(sentenceValues(sentence, view))] : []),
    ...whileWaiting(sentence, view),
  ];
}

function named(values: Values): Content {
  const names = Array.from(
    { length: MOST_NAMES },
    (_, at) =>
      html`${live(`comma${at}`, values[`comma${at}`])}<bdi data-live=${`name${at}`}>${values[`name${at}`]}</bdi>`,
  );
  return [names, live('more', values['more'])];
}

/** Where what a notice tells of can be dealt with: by what it says, the tab or card, and the way there. */
const WAYS = [
  { says: /\bSet web\.password\b/, tab: 'password', to: '#frame-password', label: 'notice-password' },
  {
    says: /^the settings that were applied last were taken back\b/,
    tab: 'settings',
    to: '/tabs/settings#taken-back',
    label: 'notice-settings',
  },
] as const;

/** `has`: whether the reader has this tab or card. */
export function noticesPanel(
  notices: readonly Notice[],
  view: View,
  has: (tab: string) => boolean = () => false,
): Content {
  if (notices.length === 0) return null;
  const order = { error: 0, warning: 1, info: 2 } as const;
  const tones = { error: 'bad', warning: 'warn', info: 'info' } as const;
  const sorted = [...notices].sort((a, b) => order[a.level] - order[b.level]);
  return html`<ul class="notices" aria-label=${view.t('notices')}>${sorted.map(
    ({ level, message }) =>
      html`<li data-tone=${tones[level]}>
    ${icon(tones[level])}<p><strong>${view.t(`level-${level}`)}</strong> <bdi>${view.said(message)}</bdi>${wayOf(
      message,
      view,
      has,
    )}</p></li>`,
  )}</ul>`;
}

function wayOf(message: string, view: View, has: (tab: string) => boolean): Content {
  const way = WAYS.find(({ says, tab }) => says.test(message) && has(tab));
  return way && html` <a href=${way.to}>${view.t(way.label)}</a>`;
}

export interface ServerFacts {
  readonly record: StatusRecord;
  readonly offers: readonly ProtocolOffer[];
  readonly host: string;
  /** Whether the configuration switches a server on. */
  readonly isOn: (section: 'smb' | 'nfs' | 'webdav') => boolean;
}

/** Whether each server is serving, and at which address. */
export function serversPanel({ record, offers, host, isOn }: ServerFacts, view: View): Content {
  const isUp = { smb: record.smbdRunning, nfs: record.nfsExported, webdav: record.webdavRunning };
  return html`<ul class="servers">${PROTOCOLS.map(({ protocol, key, services }) => {
    const offer = offerOf(offers, key, services);
    const where = offer === undefined ? null : html` <code>${reachedAs(offer, host)}:${offer.port}</code>`;
    const state = isUp[key] ? 'serving' : isOn(key) ? 'not-ready' : 'not-serving';
    const tone = isUp[key] ? 'good' : isOn(key) ? 'warn' : 'off';
    const says = view.t(state, { doctor: doctor(view) });
    return html`<li data-tone=${tone}><span class="protocol">${protocol}</span> <span>${says}</span>${
      isUp[key] ? where : null
    }</li>`;
  })}</ul>`;
}

/** A link for who may see the doctor's page. */
function doctor(view: View): Content {
  const says = view.t('not-ready-doctor');
  return view.role === 'viewer' ? says : html`<a href="/tabs/doctor">${says}</a>`;
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
