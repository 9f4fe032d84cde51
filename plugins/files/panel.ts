/**
 * The files on a share's page: its folders and files, which of them are cached, and a button that caches a
 * folder. What the panel draws by itself is a sign alone: whenever it changes, the page asks for the folder that its
 * reader has open.
 */
import { createHash } from 'node:crypto';
import { html, inEveryLanguage, readTexts, timeBoxOr } from 'mountkeeper';
import type { Content, Outcome, PluginContext, Tab, View } from 'mountkeeper';
import { downloadAddress, isOffered } from './download/route.ts';
import { FolderLists, NotMounted, folderOf } from './listing.ts';
import type { ShownFolder } from './listing.ts';
import type { ShownFile } from './merge.ts';
import { Waiting } from './waiting.ts';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);
/** How long the click waits for the result. */
const REFRESH_MS = 15_000;
const ID = 'files';

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

function badge({ isCached, cachedBytes = 0, bytes, unsaved }: ShownFile, view: View): Content {
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

/** By it the page keeps a row, and who is at its link or button, while others come and go. */
function rowId(path: string): string {
  return `file-${createHash('sha256').update(path).digest('hex').slice(0, 16)}`;
}

interface Shown extends ShownFolder {
  readonly hasDownload: boolean;
}

function table(folder: string, { folders, files, hidden, hasDownload }: Shown, view: View): Content {
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
              html`<tr id=${rowId(`${below(name)}/`)}>
                <th scope="row">${open(below(name), html`<bdi>${name}</bdi>/`, view)}</th>
                <td></td>
                <td></td>
                <td></td>
                ${hasDownload ? html`<td></td>` : null}
              </tr>`,
          )}
          ${files.map(
            (file) =>
              html`<tr id=${rowId(below(file.name))}>
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

function shareNames(ctx: PluginContext): readonly string[] {
  return ctx.use('config').current.config.shares.map(({ name }) => name);
}

function isConfigured(ctx: PluginContext, share = ''): boolean {
  return shareNames(ctx).includes(share);
}

function shareGone(view: View): Content {
  return html`<p class="empty">${view.t('share-gone')}</p>`;
}

function failure(reason: string, view: View): Content {
  return html`<p class="failed" role="alert"><bdi>${view.said(reason)}</bdi></p>`;
}

async function listing(
  ctx: PluginContext,
  view: View,
  { folder, list }: { readonly folder: string; readonly list: () => Promise<ShownFolder> },
): Promise<Content> {
  try {
    const shown = await list();
    const hasDownload = isOffered(ctx) && view.role === 'admin';
    return html`${shown.failed === undefined ? null : failure(shown.failed, view)}${table(
      folder,
      { ...shown, hasDownload },
      view,
    )}${isOffered(ctx) ? null : html`<p class="help">${view.t('no-download')}</p>`}`;
  } catch (error) {
    if (error instanceof NotMounted) return html`<p class="empty">${view.t('not-mounted')}</p>`;
    return failure(error instanceof Error ? error.message : String(error), view);
  }
}

/** What somebody has opened: the path, what is in it, what can be done about it. */
async function folderPart(ctx: PluginContext, lists: FolderLists, view: View): Promise<Content> {
  if (!isConfigured(ctx, view.share)) return shareGone(view);
  const folder = folderOf(view.query['path']);
  if (folder === undefined) return failure(view.plain('no-path'), view);
  const warm = canWarm(ctx)
    ? view.button({ action: 'warm', label: text('warm'), values: { path: folder } })
    : null;
  const refresh = ctx.find('directoryRefresher')
    ? view.button({ action: 'refresh', label: text('refresh'), values: { path: folder } })
    : null;
  const { share = '' } = view;
  const shown = await listing(ctx, view, { folder, list: () => lists.open(share, folder) });
  // At once again: it may have changed since it was listed, before the page heard of changes for it.
  return html`${crumbs(folder, view)}<div
      hx-get=${view.part('list', { path: folder })}
      hx-trigger=${`load, sse:panel-${ID}`}
      hx-target="this"
      hx-swap="morph:innerHTML"
    >
      ${shown}
    </div>
    <div class="actions">${warm}${refresh}</div>`;
}

/** The same folder a moment later. */
async function listPart(ctx: PluginContext, lists: FolderLists, view: View): Promise<Content> {
  if (!isConfigured(ctx, view.share)) return shareGone(view);
  const folder = folderOf(view.query['path']);
  if (folder === undefined) return failure(view.plain('no-path'), view);
  return listing(ctx, view, { folder, list: () => lists.again(view.share ?? '', folder) });
}

/** Another plugin fetches the files, and it may be off. */
function canWarm(ctx: PluginContext): boolean {
  return ctx
    .use('plugins')
    .list()
    .some(({ name, state }) => name === 'warmup' && state === 'active');
}

async function warm(ctx: PluginContext, { fills }: Waiting, view: View): Promise<Outcome> {
  const { share = '' } = view;
  const path = folderOf(view.form['path']);
  if (path === undefined || !isConfigured(ctx, share) || !canWarm(ctx))
    return { ok: false, message: text('no-path') };
  await ctx.send('warmup', { share, path, newerThan: null, isDryRun: false });
  fills.fetching(ctx.use('shares').get(share)?.mount);
  return { ok: true, message: text('warming') };
}

/** For users of the share: the list here is the remote's own. */
async function refresh(ctx: PluginContext, { fills }: Waiting, view: View): Promise<Outcome> {
  const { share = '' } = view;
  const path = folderOf(view.form['path']);
  const refresher = ctx.find('directoryRefresher');
  if (path === undefined || !refresher) return { ok: false, message: text('no-path') };
  const done = refresher.refresh(share, path).then(({ ok, failed: [first] }) => {
    // Who has pressed it looks at the list, which is asked of the remote anew, too.
    fills.readAgain(ctx.use('shares').get(share)?.mount);
    return {
      ok: first === undefined,
      message: first ? `${first.path}: ${view.said(first.reason)}` : view.plain('refreshed', { count: ok }),
    };
  });
  return timeBoxOr(ctx.use('clock'), REFRESH_MS, done, () => ({ ok: true, message: text('refreshing') }));
}

/** The remote is asked only when somebody has scrolled to the list. */
function browser(view: View): Content {
  return html`<div
    class="browser drawn"
    data-kept="files"
    hx-get=${view.part('folder')}
    hx-trigger="revealed"
    hx-swap="innerHTML"
  >
    <p class="help">${view.t('looking')}</p>
  </div>`;
}

export function filesPanel(ctx: PluginContext): Tab {
  const waiting = new Waiting(ctx);
  const lists = new FolderLists(ctx, waiting);
  return {
    id: ID,
    access: { see: 'operator', act: { warm: 'operator', refresh: 'operator' } },
    place: 'share',
    order: 50,
    title: text('title'),
    texts: TEXTS,
    render: async ({ share = '' }) =>
      html`<span hidden>${await waiting.sign(ctx.use('shares').get(share))}</span>`,
    controls: (view) => (isConfigured(ctx, view.share) ? browser(view) : shareGone(view)),
    controlsVersion: () => JSON.stringify(shareNames(ctx)),
    parts: {
      folder: (view) => folderPart(ctx, lists, view),
      list: (view) => listPart(ctx, lists, view),
    },
    actions: {
      warm: (view) => warm(ctx, waiting, view),
      refresh: (view) => refresh(ctx, waiting, view),
    },
  };
}
