/** Shown while no password is set: who can change what, and a form that sets a password. */
import { editToml, html, isAnybodyAsked, isLoopback } from 'mountkeeper';
import type { Content, Outcome, PluginContext, Tab, View, WebConfig } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { changesOf } from './arrival.ts';

const SHORTEST = 8;

function webOf(ctx: PluginContext): WebConfig {
  return ctx.use('config').current.config.web;
}

function banner({ listen }: WebConfig, view: View): Content {
  return html`<p>${view.t(isLoopback(listen) ? 'open-to-users' : 'open-to-network', { listen })}</p>`;
}

function form(ctx: PluginContext, view: View): Content {
  if (isAnybodyAsked(webOf(ctx)) || !changesOf(ctx)) return null;
  return html`<form
    class="act"
    data-signs-out
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

/**
 * On trial, like every change from the page: a mistyped password does not lock anybody out for good. Setting it signs
 * out the page that did it, which asks for nothing more (`data-signed-out`); whoever comes in by it tells that it works
 * (`arrivalOf`).
 */
async function set(ctx: PluginContext, view: View): Promise<Outcome> {
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
  const { ok, message } = await changes.submit({
    text,
    by: 'page',
    keepSecrets: true,
    version,
    isStillLetIn: view.isStillLetIn,
    onTrial: true,
  });
  return ok
    ? { ok, message: everywhere('password-set'), content: html`<span data-signed-out></span>` }
    : { ok, message };
}

export function passwordCard(ctx: PluginContext): Tab {
  return {
    id: 'password',
    place: 'card',
    order: 1,
    title: everywhere('no-password'),
    texts: CATALOGUES,
    render: (view) => (isAnybodyAsked(webOf(ctx)) ? null : banner(webOf(ctx), view)),
    controls: (view) => form(ctx, view),
    actions: {
      set: (view) => set(ctx, view),
    },
  };
}
