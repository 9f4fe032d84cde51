/** From which level on a plugin logs: a choice on its page, in force at once, as by `mountkeeper plugin log-level`. */
import { editToml, html } from 'mountkeeper';
import type { Content, Outcome, PluginContext, PluginInfo, View } from 'mountkeeper';
import { everywhere } from '../languages.ts';
import { applyEdit, isUnfinished } from './file-edit.ts';

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];
/** The level of the whole daemon: the plugin has none of its own. */
const DEFAULT = 'default';

function levelOf(ctx: PluginContext, name: string): string {
  const own = ctx.use('config').current.config.plugins[name] as { readonly log_level?: unknown } | undefined;
  const level = own?.log_level;
  return typeof level === 'string' && level !== '' ? level : DEFAULT;
}

/** Nothing for one that is off: it logs nothing. */
export function logLevelForm(ctx: PluginContext, { name, state }: PluginInfo, view: View): Content {
  if (state === 'disabled' || !view.may('log-level')) return null;
  const now = levelOf(ctx, name);
  const { level } = ctx.use('config').current.config.log;
  const option = (value: string, label: string): Content =>
    html`<option value=${value} selected=${value === now}>${label}</option>`;
  // What somebody has chosen and not sent yet stays while updates redraw the page.
  return html`<form class="act" method="post" action=${view.action('log-level')} hx-post=${view.action('log-level')}
      hx-target="find output" hx-swap="innerHTML" hx-disabled-elt="find button">
    <input type="hidden" name="name" value=${name} />
    <label>${view.t('log-level')} <select name="level" data-kept=${now}>${option(
      DEFAULT,
      view.plain('log-level-default', { level }),
    )}${LEVELS.map((one) => option(one, one))}</select></label>
    <button type="submit">${view.t('log-level-set')}</button><output aria-live="polite"></output></form>`;
}

export async function setLogLevel(ctx: PluginContext, view: View): Promise<Outcome> {
  const { name = '', level = '' } = view.form;
  const isKnown = ctx
    .use('plugins')
    .list()
    .some((one) => one.name === name);
  if (!isKnown || ![DEFAULT, ...LEVELS].includes(level))
    return { ok: false, message: everywhere('action-gone') };
  if (await isUnfinished(ctx)) return { ok: false, message: everywhere('file-differs') };
  const value = level === DEFAULT ? undefined : level;
  const refused = await applyEdit(ctx, view, (text) =>
    editToml(text, [{ path: ['plugins', name, 'log_level'], value }]),
  );
  if (refused !== undefined) return { ok: false, message: refused };
  const said = value === undefined ? 'log-level-as-daemon' : 'log-level-done';
  return { ok: true, message: view.plain(said, { level }), about: { plugin: name } };
}
