/** Shown while no password is set: who can change what, and a form that sets a password. */
import { editToml, html, isAnybodyAsked, isLoopback } from 'mountkeeper';
import type { Content, Outcome, PluginContext, Tab, View, WebConfig } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { arrival, changesOf, reached } from './editor.ts';

const SHORTEST = 8;

function webOf(ctx: PluginContext): WebConfig {
  return ctx.use('config').current.config.web;
}

function banner({ listen }: WebConfig, view: View): Content {
  return html`<p>${view.t(isLoopback(listen) ? 'open-to-users' : 'open-to-network', { listen })}</p>`;
}

/**
 * Setting a password signs out the page that did it. So whoever comes in by that password tells that it works: nobody
 * else comes in any more.
 */
function proof({ ctx, lastSet }: Card, view: View): Content {
  const trial = changesOf(ctx)?.trial;
  const isWanted = trial !== undefined && trial.version === lastSet && !trial.isReached;
  return isWanted && isAnybodyAsked(webOf(ctx)) ? arrival(trial.version, view) : null;
}

function form({ ctx }: Card, view: View): Content {
  if (isAnybodyAsked(webOf(ctx)) || !changesOf(ctx)) return null;
  return html`<form
    class="act"
    method="post"
    hx-post=${view.action('set')}
    hx-target="find output"
    hx-swap="innerHTML"
    hx-disabled-elt="find button"
  >
    <label>
      ${view.t('new-password')}
      <input name="password" type="password" required minlength=${SHORTEST} autocomplete="new-password" />
    </label>
    <button type="submit">${view.t('set-password')}</button><output aria-live="polite"></output>
    <p class="help">${view.t('set-password-help', { user: webOf(ctx).username })}</p>
  </form>`;
}

/** On trial, like every change from the page: a mistyped password does not lock anybody out for good. */
async function set(card: Card, view: View): Promise<Outcome> {
  const { ctx } = card;
  const changes = changesOf(ctx);
  const { password = '' } = view.form;
  if (!changes) return { ok: false, message: everywhere('settings-no-api') };
  if (password.length < SHORTEST) return { ok: false, message: everywhere('password-short') };
  const { version } = changes;
  // A password that somebody has set meanwhile is not replaced from here.
  if (isAnybodyAsked(webOf(ctx))) return { ok: false, message: everywhere('password-there') };
  // As it stands in the file: shown to people it may have been written anew, without its notes.
  const { text: former } = ctx.use('config').current;
  const text = editToml(former, [{ path: ['web', 'password'], value: password }]);
  const {
    ok,
    message,
    version: applied,
  } = await changes.submit({
    text,
    by: 'page',
    keepSecrets: true,
    version,
    onTrial: true,
  });
  if (ok) card.lastSet = applied;
  return ok ? { ok, message: everywhere('password-set'), content: arrival(applied, view) } : { ok, message };
}

interface Card {
  readonly ctx: PluginContext;
  /** The version of the document with the password that was set here last. */
  lastSet: string | undefined;
}

export function passwordCard(ctx: PluginContext): Tab {
  const card: Card = { ctx, lastSet: undefined };
  return {
    id: 'password',
    place: 'card',
    order: 1,
    title: everywhere('no-password'),
    texts: CATALOGUES,
    render: (view) => (isAnybodyAsked(webOf(ctx)) ? null : banner(webOf(ctx), view)),
    controls: (view) => form(card, view) ?? proof(card, view),
    actions: {
      set: (view) => set(card, view),
      reached: (view) => reached(ctx, view),
    },
  };
}
