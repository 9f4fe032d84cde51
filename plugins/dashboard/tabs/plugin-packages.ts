/**
 * Packages of plugins on the page of plugins, where `plugins.install_from_page` allows it: what begins a search or a
 * change, by the service `pluginPackages`. What is under way, and what came of it, is drawn by `package-news.ts`.
 */
import { actionForm, html } from 'mountkeeper';
import type {
  Content,
  Outcome,
  PackageOrder,
  PackageRefusal,
  PluginContext,
  PluginInfo,
  PluginPackages,
  View,
} from 'mountkeeper';
import { everywhere } from '../languages.ts';
import { copyable } from '../pages/nodes.ts';

/** Undefined also where the file does not allow it, or nobody is asked for a password. */
function allowed(ctx: PluginContext): PluginPackages | undefined {
  const packages = ctx.find('pluginPackages');
  return packages?.refusal === undefined ? packages : undefined;
}

/** Where it differs, other forms stand on the page. */
export function formsVersion(ctx: PluginContext): string {
  return ctx.find('pluginPackages')?.refusal ?? 'allowed';
}

/** The search, and a package by its name; nothing where the file does not allow it, and on the page of one plugin. */
export function packageForms(ctx: PluginContext, view: View): Content {
  if (!allowed(ctx) || view.query['plugin'] !== undefined) return null;
  const search = html`<label>${view.t('package-words')} <input name="words" type="search" maxlength="300"
      autocomplete="off" /></label>
    <button type="submit">${view.t('package-search')}</button>`;
  const byName = html`<label>${view.t('package-name-label')} <input name="package" required maxlength="280"
      autocomplete="off"
      autocapitalize="none" spellcheck="false" placeholder="@friend/garden" aria-describedby="package-help" /></label>
    <button type="submit">${view.t('package-install')}</button>`;
  const confirm = everywhere('package-install-confirm');
  return html`<section class="card packages" aria-labelledby="packages-title">
    <h2 id="packages-title">${view.t('install')}</h2><p>${view.t('install-here')}</p>
    ${actionForm(view, { action: 'search', fields: search })}
    ${actionForm(view, { action: 'install', fields: byName, confirm })}
    <p id="package-help" class="help">${view.t('package-help')}</p></section>`;
}

/** Who may install code has a shell here, unless the file says otherwise: the page shows what to run. */
export function installCard(ctx: PluginContext, view: View): Content {
  if (allowed(ctx)) return null;
  const commands = [
    'mountkeeper plugin search',
    'mountkeeper plugin install PACKAGE',
    'mountkeeper plugin update',
    'mountkeeper plugin remove NAME',
  ];
  const isAllowed = ctx.find('pluginPackages')?.refusal === 'nobody-asked';
  return html`<article class="card"><h2>${view.t('install')}</h2><p>${view.t('install-help')}</p>
    <ul class="plain">${commands.map((command) => html`<li>${copyable(command, view)}</li>`)}</ul>
    <p>${
      isAllowed
        ? view.t('package-nobody-asked')
        : view.t('install-allow', { key: html`<code>install_from_page = true</code>` })
    }</p></article>`;
}

/** On the card of a plugin that `plugin install` has put there. */
export function packageButtons(
  ctx: PluginContext,
  { name, state, isInstalled }: PluginInfo,
  view: View,
): Content {
  if (isInstalled !== true || !allowed(ctx)) return null;
  const values = { name };
  const update = {
    action: 'update',
    label: everywhere('package-update'),
    about: name,
    confirm: view.plain(state === 'disabled' ? 'package-update-confirm' : 'package-update-on-confirm', {
      name,
    }),
    values,
  };
  const remove = {
    action: 'remove',
    label: everywhere('package-remove'),
    about: name,
    confirm: view.plain('package-remove-confirm', { name }),
    values,
  };
  // The command line takes none away that is on.
  return [view.button(update), state === 'disabled' ? view.button(remove) : null];
}

/** The lines that switch a third party's plugin on: the file alone does that. */
export function switchLines(
  ctx: PluginContext,
  { name, state, thirdParty }: PluginInfo,
  view: View,
): Content {
  if (!thirdParty || state !== 'disabled') return null;
  const hasTable = isWritten(ctx, name);
  const lines = [...(hasTable ? [] : [`[plugins.${name}]`]), 'enabled = true'];
  const shown = lines.map((line, index) => [index === 0 ? null : html`<br />`, line]);
  return html`<p class="lines"><span>${view.t(hasTable ? 'switch-lines-there' : 'switch-lines', { name })}</span>
    ${copyable(`${lines.join('\n')}\n`, view, shown)}</p>`;
}

/** A second table of that name would make the file invalid. */
function isWritten(ctx: PluginContext, name: string): boolean {
  const { plugins } = ctx.use('config').current.document as { readonly plugins?: object };
  return plugins !== undefined && Object.hasOwn(plugins, name);
}

type Begin = (packages: PluginPackages) => PackageRefusal | undefined;

/** `about` goes into the record of changes. */
function begun(ctx: PluginContext, about: Record<string, string>, begin: Begin): Outcome {
  const packages = ctx.find('pluginPackages');
  const refused = packages ? begin(packages) : 'off';
  return { ok: refused === undefined, message: everywhere(`package-${refused ?? 'began'}`), about };
}

const MOST_RECORDED = 300;

function order(verb: PackageOrder['verb'], field: string) {
  return (ctx: PluginContext, { form }: View): Outcome => {
    const what = (form[field] ?? '').trim();
    return begun(ctx, { [field]: what.slice(0, MOST_RECORDED) }, (packages) =>
      packages.begin({ verb, what }),
    );
  };
}

/** By the name of the action. */
export const PACKAGE_ACTIONS: Readonly<Record<string, (ctx: PluginContext, view: View) => Outcome>> = {
  install: order('install', 'package'),
  update: order('update', 'name'),
  remove: order('remove', 'name'),
  agree: (ctx, { form }) => {
    const { what = '', question = '' } = form;
    const about = { package: what.slice(0, MOST_RECORDED), agreed: question.slice(0, MOST_RECORDED) };
    return begun(ctx, about, (packages) => packages.agree(what, question));
  },
  search: (ctx, { form }) => begun(ctx, {}, (packages) => packages.look(form['words'] ?? '')),
};
