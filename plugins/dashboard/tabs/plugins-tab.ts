/**
 * The plugins: whether each is on, its problem, its contributions, a switch, and a page of its own; and those of others
 * that may be installed.
 */
import { html } from 'mountkeeper';
import type { ActionButton, Content, Outcome, PluginContext, PluginInfo, Tab, View } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { describedIn, settingIn } from '../said.ts';
import { isSwitch } from '../settings/sections.ts';
import { contributions } from './contributed.ts';
import { applyEdit, isUnfinished } from './file-edit.ts';
import { hitBy } from './plugin-hits.ts';
import type { HitSources } from './plugin-hits.ts';
import { logLevelForm, setLogLevel } from './plugin-log-level.ts';
import { may } from './plugin-may.ts';
import { packageNews } from './package-news.ts';
import {
  formsVersion,
  installCard,
  PACKAGE_ACTIONS,
  packageButtons,
  packageForms,
  switchLines,
} from './plugin-packages.ts';
import { pluginAddress, pluginPage } from './plugin-page.ts';
import { withPluginSwitched } from './plugin-switch.ts';

const TONES = { active: 'good', waiting: 'wait', failed: 'bad', invalid: 'bad', disabled: 'off' } as const;
/** Cannot be switched off here: nobody could switch anything on again, or everybody could come in. */
const NOT_FROM_HERE: ReadonlySet<string> = new Set(['auth', 'control-api', 'dashboard']);

function isSwitchedHere({ name, state, thirdParty }: PluginInfo): boolean {
  return !NOT_FROM_HERE.has(name) && !(thirdParty && state === 'disabled');
}

function switchOf(info: PluginInfo, hit: HitSources, view: View): ActionButton | undefined {
  if (!isSwitchedHere(info)) return undefined;
  const { name, state } = info;
  const isOn = state !== 'disabled';
  const values = { name, to: isOn ? 'off' : 'on' };
  return isOn
    ? {
        action: 'switch',
        label: everywhere('switch-off'),
        confirm: [view.plain('switch-off-confirm', { name }), ...hitBy(info, hit, view)].join(' '),
        values,
      }
    : { action: 'switch', label: everywhere('switch-on'), values };
}

/** A button for those that broke off; other strangers that failed come back when what is wrong has changed. */
function wayBack({ name, isBrokenOff, thirdParty, state }: PluginInfo, view: View): Content {
  if (isBrokenOff)
    return view.button({ action: 'enable', label: everywhere('enable-again'), values: { name } });
  return thirdParty && state === 'failed' ? html`<small>${view.t('tried-again')}</small>` : null;
}

function entry(ctx: PluginContext, info: PluginInfo, hit: HitSources, view: View): Content {
  const { name, version, description, state, reason, thirdParty, isolation, permissions } = info;
  const button = switchOf(info, hit, view);
  const title = html`<a href=${pluginAddress(name)}><bdi>${name}</bdi></a> <small>${version}</small>`;
  return html`<article class="card plugin" id=${`plugin-${name}`}><div class="share"><header><h2>${title}</h2>
      <span class="badge" data-tone=${TONES[state]}>${view.t(`state-${state}`)}</span></header></div>
    <p>${describedIn(view.language, description)} ${
      thirdParty ? html`<small>(${view.t('third-party')}; ${view.t(`isolation-${isolation}`)})</small>` : null
    }</p>
    ${permissions ? html`<p><small>${may(info, permissions, view)}</small></p>` : null}
    ${reason === undefined ? null : html`<p class="reason"><bdi>${view.said(reason)}</bdi></p>`}
    ${contributions(info, view)}${switchLines(ctx, info, view)}
    <div class="actions">${wayBack(info, view)}${
      button ? view.button(button) : html`<small>${view.t('switch-by-file')}</small>`
    }${packageButtons(ctx, info, view)}</div></article>`;
}

/** Refused where it would change more than the switch. */
async function flip(ctx: PluginContext, view: View): Promise<Outcome> {
  const { name = '', to } = view.form;
  const config = ctx.use('config');
  const info = ctx
    .use('plugins')
    .list()
    .find((one) => one.name === name);
  if (!info || !isSwitchedHere(info)) return { ok: false, message: everywhere('switch-by-file') };
  const switched = (text: string): string => withPluginSwitched(text, name, to === 'on');
  if (await isUnfinished(ctx)) return { ok: false, message: everywhere('file-differs') };
  const check = await config.check(switched(config.current.text), 'http');
  if (!check.ok)
    return { ok: false, message: settingIn(view.language, `Validation error: ${check.message}`) };
  const others = check.diff.changes.filter(({ path }) => path !== `plugins.${name}.enabled`);
  if (others.length > 0) return { ok: false, message: everywhere('switch-by-file') };
  const refused = await applyEdit(ctx, view, switched);
  if (refused !== undefined) return { ok: false, message: refused };
  return { ok: true, message: everywhere(to === 'on' ? 'switched-on' : 'switched-off') };
}

/** Only of one that broke off; any other would not be helped by it. */
function bringBack(ctx: PluginContext, { form }: View): Outcome {
  const isBack = ctx.use('plugins').enable(form['name'] ?? '');
  return { ok: isBack, message: everywhere(isBack ? 'enabled-again' : 'not-broken-off') };
}

async function draw(ctx: PluginContext, view: View): Promise<Content> {
  const plugins = ctx.use('plugins');
  const hit = { config: ctx.use('config').current.config, exporters: ctx.use('exporters') };
  const asked = view.query['plugin'];
  const info = plugins.list().find(({ name }) => name === asked);
  if (info) {
    const { name } = info;
    const section = ctx
      .use('config')
      .keys()
      .filter(({ owner, path }) => owner === name && !isSwitch(path))
      .map(({ path }) => path.slice(0, path.lastIndexOf('.')))[0];
    const page = pluginPage(
      {
        info,
        card: entry(ctx, info, hit, view),
        logLevel: logLevelForm(ctx, info, view),
        readme: await plugins.readme(name),
        section,
      },
      view,
    );
    return html`${packageNews(ctx, view)}${page}`;
  }
  const entries = plugins.list().map((one) => entry(ctx, one, hit, view));
  return html`${packageNews(ctx, view)}<div class="cards">${entries}${installCard(ctx, view)}</div>`;
}

export function pluginsTab(ctx: PluginContext): Tab {
  return {
    id: 'plugins',
    order: 90,
    title: everywhere('plugins'),
    texts: CATALOGUES,
    icon: 'M9 3v5M15 3v5M6 8h12v4a6 6 0 0 1-12 0zM12 18v3',
    controls: (view) => packageForms(ctx, view),
    controlsVersion: () => formsVersion(ctx),
    render: (view) => draw(ctx, view),
    questions: ['search'],
    actions: {
      ...Object.fromEntries(
        Object.entries(PACKAGE_ACTIONS).map(([name, act]) => [name, (view: View) => act(ctx, view)]),
      ),
      enable: (view) => bringBack(ctx, view),
      switch: (view) => flip(ctx, view),
      'log-level': (view) => setLogLevel(ctx, view),
    },
  };
}
