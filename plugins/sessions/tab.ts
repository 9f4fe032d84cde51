/** Who is connected, on the dashboard, with a button that disconnects. */
import { html, inEveryLanguage, readTexts } from 'mountkeeper';
import type { Content, Outcome, PluginContext, Tab, View } from 'mountkeeper';
import { sessionsIn } from './routes.ts';
import type { ListedSession, ProtocolSessions, SessionBook } from './book.ts';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);
const REFRESH_MS = 5_000;
const MOST_SHOWN = 500;
const LABELS: Readonly<Record<string, string>> = { smb: 'SMB', nfs: 'NFS', webdav: 'WebDAV' };
const HEADS = ['protocol', 'user', 'address', 'shares', 'since', 'to-client', 'from-client', 'what'];

function labelOf(protocol: string): string {
  return LABELS[protocol] ?? protocol;
}

/** Nothing where the protocol does not tell. */
function lastOf({ lastAt }: ListedSession, view: View): Content {
  return lastAt === null ? null : html` <small>${view.t('last', { time: view.time(lastAt, 'ago') })}</small>`;
}

function row(session: ListedSession, view: View): Content {
  const { id, protocol, user, address, shares, since, canEnd } = session;
  const unknown = html`<small>${view.t('unknown')}</small>`;
  const amount = (bytes: number | null): Content => (bytes === null ? unknown : view.bytes(bytes));
  const who = user ?? view.plain('nobody');
  const named = shares === null ? unknown : html`<bdi>${shares.join(view.plain('comma'))}</bdi>`;
  return html`<tr><td>${labelOf(protocol)}</td>
    <th scope="row">${user === null ? html`<small>${view.t('nobody')}</small>` : html`<bdi>${user}</bdi>`}</th>
    <td data-head=${view.plain('address')}><bdi>${address}</bdi></td>
    <td data-head=${view.plain('shares')}>${named}</td>
    <td data-head=${view.plain('since')}>${since === null ? unknown : view.time(since, 'ago')}${lastOf(
      session,
      view,
    )}</td>
    <td data-head=${view.plain('to-client')}>${amount(session.bytesToClient)}</td>
    <td data-head=${view.plain('from-client')}>${amount(session.bytesFromClient)}</td>
    <td>${
      canEnd
        ? view.button({
            action: 'end',
            label: text('end'),
            about: `${who}, ${address}`,
            confirm: view.plain('confirm', { who, address }),
            values: { id },
          })
        : html`<small>${view.t('cannot')}</small>`
    }</td></tr>`;
}

function table(found: readonly ProtocolSessions[], view: View): Content {
  const sessions = sessionsIn(found);
  const problems = found.filter(({ problem }) => problem !== undefined);
  return html`<div class="drawn">${problems.map(
    ({ protocol, problem = '' }) =>
      html`<p class="empty">${view.t('problem', { protocol: labelOf(protocol), problem: view.said(problem) })}</p>`,
  )}
    ${sessions.length === 0 && problems.length === 0 ? html`<p class="empty">${view.t('none')}</p>` : null}
    ${
      sessions.length === 0
        ? null
        : html`<div class="scroll" tabindex="0" role="region" aria-label=${view.text(text('title'))}>
    <table class="stacked"><thead><tr>
    ${HEADS.map((head) => html`<th scope="col">${view.t(head)}</th>`)}</tr></thead><tbody>${sessions
      .slice(0, MOST_SHOWN)
      .map((session) => row(session, view))}</tbody></table></div>`
    }
    ${
      sessions.length > MOST_SHOWN
        ? html`<p>${view.t('more', { count: sessions.length - MOST_SHOWN })}</p>`
        : null
    }</div>`;
}

async function end(book: SessionBook, view: View): Promise<Outcome> {
  const { result, about } = await book.end(view.form['id'] ?? '');
  if (result === 'ended') return { ok: true, message: text('ended'), about };
  if (result === 'unknown') return { ok: false, message: text('gone'), about };
  return { ok: false, message: view.plain('not-ended', { problem: view.said(result.problem) }), about };
}

export function sessionsTab(ctx: PluginContext, book: () => SessionBook): Tab {
  return {
    id: 'sessions',
    access: { see: 'operator', act: { end: 'operator' } },
    order: 55,
    title: text('title'),
    texts: TEXTS,
    icon: 'M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2 19a6 6 0 0 1 12 0M16 5a3 3 0 0 1 0 6M17 13a6 6 0 0 1 5 6',
    render: async (view) => table(await book().list(), view),
    watch: (changed) => {
      const clock = ctx.use('clock');
      let cancel: () => void;
      const wait = (): void => {
        cancel = clock.after(REFRESH_MS, () => {
          wait();
          changed();
        });
      };
      wait();
      return () => cancel();
    },
    actions: { end: (view) => end(book(), view) },
  };
}
