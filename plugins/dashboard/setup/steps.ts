/** The steps of the setup guide, each a form that leads to the next. */
import { html } from 'mountkeeper';
import type { ConfigVerdict, Content, FoundNas, LanAddresses, NasAnswers, NasKind, View } from 'mountkeeper';
import { copyable } from '../pages/nodes.ts';
import { settingIn } from '../said.ts';
import type { Session } from './sessions.ts';

export const KINDS: readonly NasKind[] = ['smb', 'sftp', 'webdav', 'ftp'];

/** The answer replaces the form; errors are shown below the form that was sent. */
export function guide(content: Content, isSwapped: boolean): Content {
  const swap = isSwapped ? 'true' : undefined;
  return html`<div id="guide" class="drawn" data-kept="guide" hx-swap-oob=${swap}>${content}</div>`;
}

interface Form {
  readonly action: string;
  readonly session?: string | undefined;
  readonly step: number;
  readonly heading: string;
}

/** What is known of the NAS already: it was chosen from those found, or typed before (`id`: of the session). */
export interface GivenNas {
  readonly nas: Pick<NasAnswers, 'kind' | 'address'> & Partial<NasAnswers>;
  readonly id?: string;
}

/** `to`: the step before. Whatever is ticked or typed goes along. */
function steps(to: 'nas' | 'folders' | 'lan', next: Content, view: View): Content {
  return html`<div class="actions">
    <button type="submit" class="primary">${next}</button>
    <button type="button" class="quiet" hx-post=${view.action('back')} hx-vals=${JSON.stringify({ to })}>
      ${view.t('step-back')}
    </button>
  </div>`;
}

/** Passwords are not sent back to the page. */
function keptPassword(isKept: boolean, view: View): Content {
  return isKept ? html`<p class="help">${view.t('password-kept')}</p>` : null;
}

function form({ action, session, step, heading }: Form, fields: Content, view: View): Content {
  return html`<form
    class="card guide"
    method="post"
    hx-post=${view.action(action)}
    hx-target="#guide-outcome"
    hx-swap="innerHTML"
    hx-disabled-elt="find button.primary"
    hx-disinherit="hx-disabled-elt"
  >
    <h2 tabindex="-1" autofocus=${session !== undefined}>
      <small>${view.t('step-of', { step, steps: 4 })}</small> ${view.t(heading)}
    </h2>
    ${session === undefined ? null : html`<input type="hidden" name="session" value=${session} />`}${fields}
    <output id="guide-outcome" aria-live="polite"></output>
  </form>`;
}

/** Servers that announce themselves; one click fills in kind and address. Names are strangers' text. */
export function foundServers(found: readonly FoundNas[], view: View): Content {
  if (found.length === 0) return html`<p class="help">${view.t('nas-none-found')}</p>`;
  return html`<p class="help">${view.t('nas-found')}</p>
    <ul class="folders">
      ${found.map(
        ({ kind, name, address }) =>
          html`<li>
            <span><bdi>${name}</bdi> <small>${view.t(`kind-${kind}`)} <bdi>${address}</bdi></small></span>
            <button
              type="button"
              class="quiet"
              hx-get=${view.part('nas', { kind, address })}
              hx-target="#guide"
              hx-swap="innerHTML"
            >
              ${view.t('nas-take')}<span class="unseen"> ${name}</span>
            </button>
          </li>`,
      )}
    </ul>`;
}

function looking(view: View): Content {
  return html`<div
    class="found"
    hx-get=${view.part('found')}
    hx-trigger="load"
    hx-target="this"
    hx-swap="innerHTML"
  >
    <p class="help">${view.t('nas-looking')}</p>
  </div>`;
}

/** Without a server that announced itself and was chosen, the network is looked through. */
export function nasStep(view: View, given?: GivenNas): Content {
  const { nas, id } = given ?? {};
  const fields = html`<fieldset class="kinds">
      <legend>${view.t('nas-kind')}</legend>
      ${KINDS.map(
        (kind, index) =>
          html`<label
            ><input type="radio" name="kind" value=${kind} checked=${nas ? kind === nas.kind : index === 0} />
            <span
              ><strong>${view.t(`kind-${kind}`)}</strong> <small>${view.t(`kind-${kind}-help`)}</small></span
            ></label
          >`,
      )}
    </fieldset>
    <label class="wide"
      >${view.t('nas-address')}
      <input
        name="address"
        required
        autocomplete="off"
        spellcheck="false"
        placeholder="nas.local"
        value=${nas?.address}
        aria-describedby="address-help"
    /></label>
    <p class="help" id="address-help">${view.t('nas-address-help')}</p>
    <label class="wide"
      >${view.t('nas-user')} <input name="user" autocomplete="off" spellcheck="false" value=${nas?.user}
    /></label>
    <label class="wide"
      >${view.t('nas-password')} <input name="password" type="password" autocomplete="new-password"
    /></label>
    ${keptPassword(nas?.password !== undefined && nas.password !== '', view)}
    <div class="actions"><button type="submit" class="primary">${view.t('nas-try')}</button></div>`;
  const step = form({ action: 'try', session: id, step: 1, heading: 'step-nas' }, fields, view);
  // Outside of the form: nothing that is typed there may become part of an address.
  return given && id === undefined ? step : html`${looking(view)}${step}`;
}

/** A button that opens another folder and sends the ticked boxes along. */
function leading(path: string, label: Content, view: View): Content {
  return html`<button
    type="button"
    class="quiet"
    hx-post=${view.action('open')}
    hx-include="closest form"
    hx-vals=${JSON.stringify({ path })}
  >
    ${label}
  </button>`;
}

function folder(path: string, { folders }: Session, view: View): Content {
  const name = path.split('/').at(-1) ?? '';
  return html`<li>
    <label><input type="checkbox" name=${`f:${path}`} checked=${folders.has(path)} /> <bdi>${name}</bdi></label>
    ${leading(path, html`${view.t('folder-open')}<span class="unseen"> ${name}</span>`, view)}
  </li>`;
}

export function foldersStep(session: Session, names: readonly string[], view: View): Content {
  const { id, at, folders, nas } = session;
  // The root of an SMB server is the list of its shares, which is no folder.
  const isFolder = at !== '' || nas.kind !== 'smb';
  const paths = names.map((name) => (at === '' ? name : `${at}/${name}`));
  const up = at.split('/').slice(0, -1).join('/');
  const elsewhere = [...folders].filter((path) => path !== at && !paths.includes(path));
  const list = html`<ul class="folders">
    ${paths.map((path) => folder(path, session, view))}
  </ul>`;
  const fields = html`<p class="crumbs"><bdi>/${at}</bdi> ${
    at === '' ? null : leading(up, view.t('folder-up'), view)
  }</p>
    ${names.length === 0 ? html`<p class="empty">${view.t('no-folders')}</p>` : list}
    ${
      isFolder
        ? html`<label><input type="checkbox" name=${`f:${at}`} checked=${folders.has(at)} /> ${view.t(
            'this-folder',
          )}</label>`
        : null
    }
    ${
      elsewhere.length === 0
        ? null
        : html`<p class="help">${view.t('also-chosen')} <bdi>${elsewhere.join(view.plain('list-comma'))}</bdi></p>`
    }
    ${steps('nas', view.t('next'), view)}`;
  return form({ action: 'choose', session: id, step: 2, heading: 'step-folders' }, fields, view);
}

export function lanStep({ id, lan }: Session, view: View): Content {
  const fields = html`<p>${view.t('lan-help')}</p>
    <label class="wide"
      >${view.t('lan-user')} <input name="user" autocomplete="off" spellcheck="false" maxlength="32" value=${lan?.user}
    /></label>
    <label class="wide"
      >${view.t('lan-password')} <input name="password" type="password" autocomplete="new-password"
    /></label>
    ${keptPassword(lan !== undefined && lan.password !== '', view)} ${steps('folders', view.t('next'), view)}`;
  return form({ action: 'share', session: id, step: 3, heading: 'step-lan' }, fields, view);
}

/** What there is to be said of the answers beside themselves. */
export interface Review {
  readonly verdict: Extract<ConfigVerdict, { ok: true }>;
  /** Names that the folders get as shares, in the order of their paths. */
  readonly names: readonly string[];
  /** The user has a password already, which stays. */
  readonly isKept: boolean;
  /** Where SMB is reached now; the change may say otherwise. */
  readonly smb: { readonly port: number; readonly listen: readonly string[] };
}

function reachedAt({ verdict, smb: { port, listen: now } }: Review, view: View): Content {
  const change = verdict.changes.find(({ path }) => path === 'smb.listen');
  const listen = change ? (change.after as readonly string[]) : now;
  return listen.length === 0 || listen.some((one) => one === '0.0.0.0' || one === '::')
    ? view.t('review-everywhere', { port: String(port) })
    : view.t('review-at', { addresses: listen.join(view.plain('list-comma')), port: String(port) });
}

/** What will be, in words. */
function inWords({ nas, folders, lan }: Session, review: Review, view: View): readonly Content[] {
  const bold = (text: string): Content => html`<strong><bdi>${text}</bdi></strong>`;
  return [
    nas.user === ''
      ? view.t('review-nas', { address: bold(nas.address.trim()) })
      : view.t('review-nas-user', { address: bold(nas.address.trim()), user: bold(nas.user) }),
    ...[...folders]
      .sort()
      .map((folder, at) =>
        view.t('review-share', { folder: bold(`/${folder}`), share: bold(review.names[at] ?? '') }),
      ),
    ...(lan
      ? [
          view.t(review.isKept ? 'review-kept' : 'review-lan', { user: bold(lan.user) }),
          reachedAt(review, view),
        ]
      : [view.t('review-local')]),
  ];
}

export function reviewStep(session: Session, review: Review, view: View): Content {
  const { verdict } = review;
  const fields = html`<ul class="lines">
      ${inWords(session, review, view).map((line) => html`<li>${line}</li>`)}
    </ul>
    <details>
      <summary>${view.t('review-details')}</summary>
      <ul class="difference">
        ${verdict.summary
          .split('\n')
          .map((line) => html`<li><bdi>${settingIn(view.language, line)}</bdi></li>`)}
      </ul>
    </details>
    ${verdict.warnings.map((warning) => html`<p class="help"><bdi>${settingIn(view.language, warning)}</bdi></p>`)}
    ${steps('lan', view.t('set-up'), view)}`;
  return form({ action: 'finish', session: session.id, step: 4, heading: 'step-review' }, fields, view);
}

/** `lan`: none where the shares are for this machine alone. */
/** `kept`: who had a password already, which stays as it was. */
export function doneStep(lan: readonly LanAddresses[], kept: string | undefined, view: View): Content {
  return html`<section class="card guide done">
    <h2 tabindex="-1" autofocus>${view.t('step-done')}</h2>
    ${lan.length > 0 ? lan.map((one) => addresses(one, view)) : html`<p>${view.t('done-local')}</p>`}
    ${kept === undefined ? null : html`<p>${view.t('done-kept', { user: kept })}</p>`}
    <p>${view.t('done-help')}</p>
    <p><a href="/">${view.t('overview')}</a></p>
  </section>`;
}

function addresses({ share, finder, explorer, linux }: LanAddresses, view: View): Content {
  const readable = `${finder.slice(0, finder.lastIndexOf('/'))}/${share}`;
  return html`<h3><bdi>${share}</bdi></h3>
    <dl class="lists">
      <div>
        <dt>Finder</dt>
        <dd>${copyable(finder, view, readable)}</dd>
      </div>
      <div>
        <dt>Explorer</dt>
        <dd>${explorer === undefined ? view.t('explorer-port') : copyable(explorer, view)}</dd>
      </div>
      <div>
        <dt>Linux</dt>
        <dd>${copyable(linux, view)}</dd>
      </div>
    </dl>`;
}
