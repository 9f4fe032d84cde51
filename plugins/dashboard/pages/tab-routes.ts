/**
 * Serves the parts and actions that tabs declare. An action answers with its outcome, which is shown next
 * to its button.
 */
import type { Request, ResponseObject, ResponseToolkit, RouteOptions, ServerRoute } from '@hapi/hapi';
import { html, messageOf, pathOf, QUESTION, safeBack } from 'mountkeeper';
import type { Content, OwnedTab, Outcome, View } from 'mountkeeper';
import { htmlAnswer, queryOf } from './answer.ts';
import { everywhere } from '../languages.ts';
import { createView } from '../view.ts';
import { icon } from './nodes.ts';
import { NotDrawn } from './not-drawn.ts';
import { readerOf } from './preferences.ts';
import { toHtml } from './shell.ts';
import type { Sources } from './sources.ts';

const MAX_BODY_BYTES = 1024 * 1024;
/** htmx's own: what was asked for again by itself has an end. */
const ENDED = 286;
/** The field that says that the question was answered. */
const ANSWER = ':answer';
/** The page that the question was asked from. */
const BACK = ':back';

export interface ActionOptions {
  readonly options: RouteOptions;
  /** A whole page around what is said, for a browser without scripts. */
  readonly page: (request: Request, said: Content) => Promise<string>;
  /** Called when an action has ended: what pages show may be another now. */
  readonly changed: () => void;
}

/** Only own properties that the plugin has declared, never inherited ones. */
function own<T>(record: Readonly<Record<string, T>> | undefined, name: string): T | undefined {
  return record !== undefined && Object.hasOwn(record, name) ? record[name] : undefined;
}

function asked(
  sources: Sources,
  request: Request,
  form: Readonly<Record<string, string>> = {},
): { readonly owned: OwnedTab; readonly view: View; readonly name: string } | undefined {
  const reader = readerOf(request);
  const id = String(request.params['tab']);
  const owned = sources.tab(id, reader);
  if (!owned) {
    request.app.isRefused = sources.isRefused(id, reader);
    return undefined;
  }
  const query = queryOf(request);
  const share = form['share'] ?? query['share'];
  const view = createView({
    ...reader,
    query,
    form,
    tab: owned.tab,
    isStillLetIn: request.app.isStillLetIn,
    ...(share !== undefined && { share }),
  });
  return { owned, view, name: String(request.params['name']) };
}

export function outcomeNode({ ok, message, content, endsWithButton }: Outcome, view: View): Content {
  // Texts in several languages come as they are; what the parts of Mountkeeper say comes in English.
  const said = typeof message === 'string' ? view.said(message) : view.text(message);
  const line =
    said === ''
      ? null
      : html`<span class="outcome" data-tone=${ok ? 'good' : 'bad'} data-ends=${
          endsWithButton === true ? '' : undefined
        }>${icon(ok ? 'good' : 'bad')}<bdi>${said}</bdi></span>`;
  return [line, content];
}

/** Of a page that is older than what its plugins show; said where somebody clicked. */
function gone(request: Request, h: ResponseToolkit, status = 404): ResponseObject {
  const outcome = { ok: false, message: everywhere('action-gone') };
  return htmlAnswer(request, h, toHtml(outcomeNode(outcome, createView(readerOf(request)))), status);
}

/** A page may ask for a part again and again: a status of an error is one in the browser's console each time. */
function goneOfPart(request: Request, h: ResponseToolkit): ResponseObject {
  return gone(request, h, isFromScript(request) ? ENDED : 404);
}

function isFromScript({ headers }: Request): boolean {
  return headers['hx-request'] === 'true';
}

function notDrawnPart(request: Request, h: ResponseToolkit, plugin: string): ResponseObject {
  const view = createView(readerOf(request));
  const outcome = { ok: false, message: view.plain('not-drawn', { plugin }) };
  return htmlAnswer(request, h, toHtml(outcomeNode(outcome, view)), 500);
}

export function partRoute(sources: Sources, options: RouteOptions): ServerRoute {
  return {
    method: 'GET',
    path: '/dashboard/parts/{tab}/{name}',
    options,
    handler: async (request, h) => {
      const found = asked(sources, request);
      const part = found && own(found.owned.tab.parts, found.name);
      if (!found || !part) return goneOfPart(request, h);
      const { owned, view, name } = found;
      const notDrawn = new NotDrawn(owned, sources.log, `part ${name} ${view.language}`);
      try {
        const drawn = toHtml(await part(view));
        notDrawn.forget();
        return htmlAnswer(request, h, drawn);
      } catch (err) {
        // The route is the dashboard's; whose part it was, the web server does not know.
        notDrawn.tell(err, 'a part of a tab was not drawn');
        return notDrawnPart(request, h, owned.plugin);
      }
    },
  };
}

function formOf(payload: unknown): Readonly<Record<string, string>> {
  if (typeof payload !== 'object' || payload === null) return {};
  return Object.fromEntries(
    Object.entries(payload).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}

/** Undefined where it was asked: by the page's script, or by the page that `asking` makes. */
function questionIn(request: Request, form: Readonly<Record<string, string>>): string | undefined {
  return isFromScript(request) || form[ANSWER] !== undefined ? undefined : form[QUESTION];
}

/** A browser without scripts, or in which they have not started yet, sends the form at once. */
function asking(request: Request, question: string): Content {
  const view = createView(readerOf(request));
  const fields = Object.entries(formOf(request.payload)).filter(([name]) => name !== QUESTION);
  const hidden = { name: BACK, value: pathOf(request.headers.referer) };
  return html`<p>${question}</p>
    <form method="post" action=${request.path}>
      ${fields.map(([name, value]) => html`<input type="hidden" name=${name} value=${value} />`)}
      <input type="hidden" name=${hidden.name} value=${hidden.value} />
      <button type="submit" class="primary" name=${ANSWER} value="yes">${view.t('do-it')}</button>
    </form>
    <p><a href=${hidden.value}>${view.t('do-not')}</a></p>`;
}

/** What came of it, and the way back. */
function toldWithoutScript(request: Request, said: Content): Content {
  const { [BACK]: back } = formOf(request.payload);
  const to = back === undefined ? pathOf(request.headers.referer) : safeBack(back);
  return html`<p>${said}</p><p><a href=${to}>${createView(readerOf(request)).t('go-back')}</a></p>`;
}

async function outcomeOf(
  sources: Sources,
  { owned, view }: { readonly owned: OwnedTab; readonly view: View },
  act: (view: View) => Outcome | Promise<Outcome>,
): Promise<Outcome> {
  try {
    return await act(view);
  } catch (err) {
    const message = messageOf(err);
    sources.log.warn({ shownBy: owned.plugin, err: err ?? message }, 'an action of the dashboard failed');
    return { ok: false, message };
  }
}

export function actionRoute(sources: Sources, { options, page, changed }: ActionOptions): ServerRoute {
  return {
    method: 'POST',
    path: '/dashboard/do/{tab}/{name}',
    options: {
      ...options,
      payload: { maxBytes: MAX_BODY_BYTES, allow: 'application/x-www-form-urlencoded' },
    },
    handler: async (request, h) => {
      const { [QUESTION]: _, [ANSWER]: __, [BACK]: ___, ...form } = formOf(request.payload);
      const found = asked(sources, request, form);
      const act = found && own(found.owned.tab.actions, found.name);
      if (!found || !act) return gone(request, h);
      if (!found.view.may(found.name)) {
        const message = everywhere('role-refused');
        return htmlAnswer(request, h, toHtml(outcomeNode({ ok: false, message }, found.view)), 403);
      }
      const question = questionIn(request, formOf(request.payload));
      if (question !== undefined) {
        request.app.isQuestion = true;
        return htmlAnswer(request, h, await page(request, asking(request, question)));
      }
      request.app.isQuestion = found.owned.tab.questions?.includes(found.name) === true;
      const outcome = await outcomeOf(sources, found, act);
      // Not with the next figures: what was done, or has gone wrong, shows as soon as it is said.
      changed();
      const { share } = found.view;
      request.app.isDone = outcome.ok;
      request.app.about = { ...outcome.about, ...(share !== undefined && { share }) };
      const said = outcomeNode(outcome, found.view);
      const isScript = isFromScript(request);
      return htmlAnswer(
        request,
        h,
        isScript ? toHtml(said) : await page(request, toldWithoutScript(request, said)),
      );
    },
  };
}
