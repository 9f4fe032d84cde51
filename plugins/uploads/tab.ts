/**
 * The uploads on a share's page: what waits, is uploading or is stuck, with the remote's own messages, and
 * both versions of conflicts.
 */
import { html, inEveryLanguage, readTexts } from 'mountkeeper';
import type {
  ActionButton,
  Clock,
  Content,
  FileDownloads,
  Mount,
  Outcome,
  QueuedUpload,
  QueueEntry,
  Tab,
  View,
} from 'mountkeeper';
import { conflictList, keepVersion } from './page/conflict-rows.ts';
import { pauseForm, pauseSeconds } from './page/pause-form.ts';
import { portionOf } from './page/portion.ts';
import { proofForm, proofPart, prove } from './page/proof-form.ts';
import type { ProofSources } from './page/proof-form.ts';
import { reasonText } from './page/reason.ts';
import { rowActions, rowId } from './page/row-actions.ts';
import type { RowTools } from './page/row-actions.ts';
import { canPause, isPaused, pauseUploads, sendNow, sendOne } from './pause.ts';
import { plainQueue, stateOf } from './plain-queue.ts';
import { noDiscard } from './routes.ts';
import type { Proofs } from './routes.ts';
import { KEPT_DAYS } from './transfer/leaving/left-files.ts';
import type { ManagedUploads } from './transfer/managed.ts';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);
const TONES = { waiting: 'wait', uploading: 'good', stuck: 'bad' } as const;
const ORDER = { stuck: 0, uploading: 1, waiting: 2 } as const;

function row(entry: QueueEntry, tools: RowTools, view: View): Content {
  const { path, action, state, bytes, sentBytes, since, reason, tries, nextTryAt, version } = entry;
  const what = view.t(`action-${action.replace(' ', '-')}`);
  return html`<tr id=${rowId(path)}><th scope="row"><bdi>${path}</bdi> <small>${what}</small></th>
    <td><span class="badge" data-tone=${TONES[state]}>${view.t(`state-${state}`)}</span>${
      reason === '' ? null : html` <small><bdi>${reasonText(reason, view)}</bdi></small>`
    }</td>${rowActions({ path, state, bytes, version, hasContent: action === 'upload' }, tools, view)}
    <td data-head=${view.plain('size')}>${
      state === 'uploading'
        ? view.t('sent', { sent: view.bytes(sentBytes), bytes: view.bytes(bytes) })
        : view.bytes(bytes)
    }</td>
    <td data-head=${view.plain('since')}>${view.time(since, 'ago')}</td><td data-head=${view.plain(
      'tries',
    )}>${view.number(tries)}${
      nextTryAt === undefined
        ? null
        : html` <small
        >${view.t('next', { time: view.time(nextTryAt) })}</small>`
    }</td></tr>`;
}

function table(uploads: ManagedUploads, tools: RowTools, view: View): Content {
  const queue = [...uploads.queue()].sort((a, b) => ORDER[a.state] - ORDER[b.state]);
  const { entries, links } = portionOf(queue, view);
  const heads = ['file', 'state', 'do', 'size', 'since', 'tries'];
  return html`<div class="drawn">${
    entries.length === 0
      ? html`<p class="help">${view.t('none')}</p>`
      : html`<div class="scroll" tabindex="0" role="region"
      aria-label=${view.plain('title')}><table class="stacked"><thead><tr>${heads.map(
        (head) => html`<th scope="col">${view.t(head)}</th>`,
      )}</tr></thead>
      <tbody>${entries.map((entry) => row(entry, tools, view))}</tbody></table></div>`
  }
    ${links}${conflictList(uploads.conflicts(), tools.text, view)}</div>`;
}

function queuedRow(queued: QueuedUpload, tools: RowTools, view: View): Content {
  const { path, bytes, failures, goesAt } = queued;
  const state = stateOf(queued);
  return html`<tr id=${rowId(path)}>
    <th scope="row"><bdi>${path}</bdi></th>
    <td><span class="badge" data-tone=${TONES[state]}>${view.t(`state-${state}`)}</span></td>
    ${rowActions({ path, state, bytes, hasContent: true }, tools, view)}
    <td>${view.bytes(bytes)}</td>
    <td>${view.number(failures)}${
      goesAt === undefined ? null : html` <small>${view.t('next', { time: view.time(goesAt) })}</small>`
    }</td>
  </tr>`;
}

/** Of a mount without this uploader: what it says of its queue. Null while nothing waits. */
function queueTable(queue: readonly QueuedUpload[], tools: RowTools, view: View): Content {
  if (queue.length === 0) return null;
  const { entries, links } = portionOf(queue, view);
  const heads = ['file', 'state', 'do', 'size', 'failures'];
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${view.plain('title')}>
      <table>
        <thead>
          <tr>
            ${heads.map((head) => html`<th scope="col">${view.t(head)}</th>`)}
          </tr>
        </thead>
        <tbody>
          ${entries.map((one) => queuedRow(one, tools, view))}
        </tbody>
      </table>
    </div>
    ${links}`;
}

const BUTTONS: readonly ActionButton[] = [
  { action: 'send', label: text('send') },
  { action: 'pause', label: text('pause'), confirm: text('pause-confirm') },
];
/** Sends what waits as well: another button for that would do the same. */
const BUTTONS_OF_PAUSED: readonly ActionButton[] = [{ action: 'go-on', label: text('go-on') }];

function pauseLine(mount: Mount | undefined, view: View): Content {
  const { until, obstacle } = mount?.uploadPause ?? {};
  if (obstacle !== undefined)
    return html`<p class="help">${view.t('no-pause', { reason: view.said(obstacle) })}</p>`;
  return until === undefined
    ? null
    : html`<p class="reason">${view.t('paused-until', { time: view.time(until) })}</p>`;
}

export interface UploadsPanelSources {
  /** Of shares with a write layer. */
  readonly shares: () => ReadonlyMap<string, ManagedUploads>;
  /** Undefined while the share is not mounted. */
  readonly mountOf: (share: string) => Mount | undefined;
  /** Nobody writes to it: nothing is to be sent but what waits from before. */
  readonly isReadOnly: (share: string) => boolean;
  readonly clock: () => Clock;
  /** Undefined while no plugin offers downloads. */
  readonly downloads: () => FileDownloads | undefined;
  readonly proofs: Proofs;
}

export function uploadsPanel(sources: UploadsPanelSources): Tab {
  const { shares, mountOf, isReadOnly, clock, downloads, proofs } = sources;
  const uploadsOf = ({ share = '' }: View): ManagedUploads | undefined => shares().get(share);
  const proofSources: ProofSources = { proofs, uploadsOf };
  const mount = ({ share = '' }: View): Mount | undefined => mountOf(share);
  const send =
    (said: string) =>
    async (view: View): Promise<Outcome> => {
      // One that is paused goes on also where settings have changed so that it could not be paused any more.
      if (!canPause(mount(view)) && !isPaused(mount(view)))
        return { ok: false, message: text('nothing-to-send') };
      await sendNow(mount(view), clock());
      return { ok: true, message: text(said) };
    };
  const pause = async (view: View): Promise<Outcome> => {
    const seconds = pauseSeconds(view);
    if (!canPause(mount(view)) || seconds === undefined) return { ok: false, message: text('no-uploads') };
    await pauseUploads(mount(view), clock().now() + seconds * 1_000, clock());
    return { ok: true, message: text(view.form['seconds'] === undefined ? 'paused' : 'paused-longer') };
  };
  const retry = async ({ share = '', form: { path = '' } }: View): Promise<Outcome> => {
    await sendOne({ uploads: shares().get(share), mount: mountOf(share), path }, clock());
    return { ok: true, message: text('sending-one'), endsWithButton: true };
  };
  const discard = async (view: View): Promise<Outcome> => {
    const { share = '', form } = view;
    const { path = '', version = '' } = form;
    const uploads = uploadsOf(view);
    const about = { path };
    if (!uploads) return { ok: false, message: view.said(noDiscard(share, mount(view))), about };
    try {
      const { keptAt, shows } = await uploads.discard({ path, version });
      const said = shows === 'nothing' ? 'discarded-gone' : 'discarded';
      return { ok: true, message: view.plain(said, { path, place: keptAt, days: KEPT_DAYS }), about };
    } catch (error) {
      return { ok: false, message: view.said((error as Error).message), about };
    }
  };
  return {
    id: 'uploads',
    access: {
      see: 'viewer',
      // What takes a version away is an administrator's: `keep`, `discard`.
      act: { send: 'operator', pause: 'operator', 'go-on': 'operator', retry: 'operator', prove: 'operator' },
    },
    place: 'share',
    order: 40,
    title: text('title'),
    texts: TEXTS,
    render: async (view) => {
      const uploads = uploadsOf(view);
      const line = pauseLine(mount(view), view);
      const tools: RowTools = { text, downloads: downloads() };
      const list = uploads
        ? table(uploads, tools, view)
        : queueTable((await plainQueue(mount(view), clock())) ?? [], tools, view);
      return line === null && list === null ? null : [line, list];
    },
    buttons: (view) => {
      const { share = '' } = view;
      if (isPaused(mount(view))) return BUTTONS_OF_PAUSED;
      const isUseful = !isReadOnly(share) || (uploadsOf(view)?.queue().length ?? 0) > 0;
      return canPause(mount(view)) && isUseful ? BUTTONS : [];
    },
    controls: (view) =>
      uploadsOf(view)
        ? [canPause(mount(view)) ? pauseForm(view) : null, proofForm(proofSources, view)]
        : null,
    controlsVersion: () =>
      JSON.stringify([...shares().keys()].sort().map((share) => [share, canPause(mountOf(share))])),
    parts: { proof: (view) => proofPart(proofSources, view) },
    actions: {
      send: send('sending'),
      pause,
      'go-on': send('going-on'),
      retry,
      discard,
      keep: (view) => keepVersion(uploadsOf(view), view),
      prove: (view) => prove(proofSources, view),
    },
    questions: ['prove'],
  };
}
