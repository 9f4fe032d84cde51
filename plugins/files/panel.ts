/**
 * The files on a share's page: its folders and files, which of them are cached, and a button that caches a
 * folder.
 */
import { html, inEveryLanguage, readTexts, timeBoxOr } from 'mountkeeper';
import type { Content, Outcome, PluginContext, Tab, View } from 'mountkeeper';
import type { ListAnswer } from './list-process.ts';
import { downloadAddress, isOffered } from './download/route.ts';
import { NotMounted, folderOf, listFolder } from './listing.ts';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);
/** How long the click waits for the result. */
const REFRESH_MS = 15_000;

function crumbs(folder: string, view: View): Content {
  const parts = folder === '' ? [] : folder.split('/');
  const leads = parts.map((name, index) => ({ name, path: parts.slice(0, index + 1).join('/') }));
  return html`<p class="crumbs">
    ${open('', view.t('root'), view)}${leads.map(
      ({ name, path }) => html` / ${open(path, html`<bdi>${name}</bdi>`, view)}`,
    )}
  </p>`;
}

function open(path: string, label: Content, view: View): Content {
  const address = view.part('folder', { path });
  return html`<button
    type="button"
    class="quiet"
    hx-get=${address}
    hx-target="closest .browser"
    hx-swap="innerHTML"
  >
    ${label}
  </button>`;
}

const TONES = { waiting: 'wait', uploading: 'wait', failed: 'bad' } as const;

/** Neither 0 % nor 100 %, which would say something else. */
function percentOf(part: number, whole: number): number {
  return Math.min(99, Math.max(1, Math.floor((part / whole) * 100)));
}

function badge(
  { isCached, cachedBytes = 0, bytes, unsaved }: ListAnswer['files'][number],
  view: View,
): Content {
  const shown = (tone: string, words: Content): Content =>
    html`<span class="badge" data-tone=${tone}>${words}</span>`;
  if (unsaved !== undefined) return shown(TONES[unsaved], view.t(`unsaved-${unsaved}`));
  if (isCached) return shown('good', view.t('cached'));
  if (cachedBytes > 0) return shown('off', view.t('partial', { percent: percentOf(cachedBytes, bytes) }));
  return shown('off', view.t('remote'));
}

function download(path: string, name: string, view: View): Content {
  const label = view.text(text('download'));
  return html`<a href=${downloadAddress(view.share ?? '', path)} download aria-label=${`${label} ${name}`}
    >${label}</a
  >`;
}

interface Shown extends ListAnswer {
  readonly hasDownload: boolean;
}

function listing(folder: string, { folders, files, hidden, hasDownload }: Shown, view: View): Content {
  const below = (name: string): string => (folder === '' ? name : `${folder}/${name}`);
  if (folders.length + files.length === 0) return html`<p class="empty">${view.t('empty')}</p>`;
  const heads = ['name', 'size', 'changed', 'where'];
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${view.text(text('title'))}>
      <table class="stacked">
        <thead>
          <tr>
            ${heads.map((head) => html`<th scope="col">${view.t(head)}</th>`)}
            ${hasDownload ? html`<th scope="col">${view.t('download')}</th>` : null}
          </tr>
        </thead>
        <tbody>
          ${folders.map(
            (name) =>
              html`<tr>
                <th scope="row">${open(below(name), html`<bdi>${name}</bdi>/`, view)}</th>
                <td></td>
                <td></td>
                <td></td>
                ${hasDownload ? html`<td></td>` : null}
              </tr>`,
          )}
          ${files.map(
            (file) =>
              html`<tr>
                <th scope="row"><bdi>${file.name}</bdi></th>
                <td data-head=${view.plain('size')}>${view.bytes(file.bytes)}</td>
                <td data-head=${view.plain('changed')}>${view.time(file.modifiedMs)}</td>
                <td>${badge(file, view)}</td>
                ${hasDownload ? html`<td>${download(below(file.name), file.name, view)}</td>` : null}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
    ${hidden > 0 ? html`<p class="help">${view.t('hidden', { count: hidden })}</p>` : null}`;
}

async function folderPart(ctx: PluginContext, view: View): Promise<Content> {
  const folder = folderOf(view.query['path']);
  if (folder === undefined) return html`<p class="failed" role="alert">${view.t('no-path')}</p>`;
  const warm = canWarm(ctx)
    ? view.button({ action: 'warm', label: text('warm'), values: { path: folder } })
    : null;
  const refresh = ctx.find('directoryRefresher')
    ? view.button({ action: 'refresh', label: text('refresh'), values: { path: folder } })
    : null;
  try {
    const answer = await listFolder(ctx, view.share ?? '', folder);
    const hasDownload = isOffered(ctx) && view.role === 'admin';
    return html`${crumbs(folder, view)}${listing(folder, { ...answer, hasDownload }, view)}
      ${isOffered(ctx) ? null : html`<p class="help">${view.t('no-download')}</p>`}
      <div class="actions">${warm}${refresh}</div>`;
  } catch (error) {
    if (error instanceof NotMounted)
      return html`${crumbs(folder, view)}<p class="empty">${view.t('not-mounted')}</p>`;
    const reason = error instanceof Error ? error.message : String(error);
    return html`${crumbs(folder, view)}
      <p class="failed" role="alert"><bdi>${reason}</bdi></p>`;
  }
}

/** Another plugin fetches the files, and it may be off. */
function canWarm(ctx: PluginContext): boolean {
  return ctx
    .use('plugins')
    .list()
    .some(({ name, state }) => name === 'warmup' && state === 'active');
}

async function warm(ctx: PluginContext, view: View): Promise<Outcome> {
  const { share = '' } = view;
  const path = folderOf(view.form['path']);
  const isKnown = ctx.use('config').current.config.shares.some(({ name }) => name === share);
  if (path === undefined || !isKnown || !canWarm(ctx)) return { ok: false, message: text('no-path') };
  await ctx.send('warmup', { share, path, newerThan: null, isDryRun: false });
  return { ok: true, message: text('warming') };
}

/** For users of the share: the list here is the remote's own. */
async function refresh(ctx: PluginContext, view: View): Promise<Outcome> {
  const { share = '' } = view;
  const path = folderOf(view.form['path']);
  const refresher = ctx.find('directoryRefresher');
  if (path === undefined || !refresher) return { ok: false, message: text('no-path') };
  const done = refresher.refresh(share, path).then(({ ok, failed: [first] }) => ({
    ok: first === undefined,
    message: first ? `${first.path}: ${first.reason}` : view.plain('refreshed', { count: ok }),
  }));
  return timeBoxOr(ctx.use('clock'), REFRESH_MS, done, () => ({ ok: true, message: text('refreshing') }));
}

export function filesPanel(ctx: PluginContext): Tab {
  return {
    id: 'files',
    access: { see: 'operator', act: { warm: 'operator', refresh: 'operator' } },
    place: 'share',
    order: 50,
    title: text('title'),
    texts: TEXTS,
    render: () => html`<span class="unseen"></span>`,
    watch: () => () => undefined,
    // The remote is asked only when somebody has scrolled to the list.
    controls: (view) =>
      html`<div class="browser drawn" data-kept="files" hx-get=${view.part('folder')} hx-trigger="revealed"
        hx-swap="innerHTML">
        <p class="help">${view.t('looking')}</p>
      </div>`,
    parts: { folder: (view) => folderPart(ctx, view) },
    actions: { warm: (view) => warm(ctx, view), refresh: (view) => refresh(ctx, view) },
  };
}
