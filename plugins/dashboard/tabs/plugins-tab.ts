/** Every plugin: whether it is on, why not, what it contributes, and a switch. */
import { readFile } from 'node:fs/promises';
import { html } from 'mountkeeper';
import type { ActionButton, Content, Outcome, PluginContext, PluginInfo, Tab, View } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { withPluginSwitched } from './plugin-switch.ts';

const TONES = { active: 'good', waiting: 'wait', failed: 'bad', invalid: 'bad', disabled: 'off' } as const;
/** Without them nobody could switch anything on again, or everybody could come in. */
const NOT_FROM_HERE: ReadonlySet<string> = new Set(['auth', 'control-api', 'dashboard']);

function switchOf({ name, state, thirdParty }: PluginInfo, view: View): ActionButton | undefined {
  const isOn = state !== 'disabled';
  if (NOT_FROM_HERE.has(name) || (thirdParty && !isOn)) return undefined;
  const values = { name, to: isOn ? 'off' : 'on' };
  return isOn
    ? {
        action: 'switch',
        label: everywhere('switch-off'),
        confirm: view.plain('switch-off-confirm', { name }),
        values,
      }
    : { action: 'switch', label: everywhere('switch-on'), values };
}

function entry(info: PluginInfo, view: View): Content {
  const { name, version, description, state, reason, contributes = [], thirdParty } = info;
  const button = switchOf(info, view);
  return html`<article class="card plugin" id=${`plugin-${name}`}><div class="share"><header><h2><bdi>${name}</bdi> <small>${version}</small></h2>
      <span class="badge" data-tone=${TONES[state]}>${view.t(`state-${state}`)}</span></header></div>
    <p>${description} ${thirdParty ? html`<small>(${view.t('third-party')})</small>` : null}</p>
    ${reason === undefined ? null : html`<p class="reason"><bdi>${reason}</bdi></p>`}
    ${
      contributes.length === 0
        ? null
        : html`<details><summary>${view.t('contributes')}</summary><dl class="lists">
      ${contributes.map(
        ([kind, names]) => html`<div><dt>${kind}</dt><dd><code>${names.join(', ')}</code></dd></div>`,
      )}</dl></details>`
    }
    <div class="actions">${button ? view.button(button) : html`<small>${view.t('switch-by-file')}</small>`}</div></article>`;
}

/** The file as it is, with one key changed; nothing else, and nothing that others have written meanwhile. */
async function flip(ctx: PluginContext, view: View): Promise<Outcome> {
  const { name = '', to } = view.form;
  const config = ctx.use('config');
  const info = ctx
    .use('plugins')
    .list()
    .find((one) => one.name === name);
  if (!info || !switchOf(info, view)) return { ok: false, message: everywhere('switch-by-file') };
  const switched = (text: string): string => withPluginSwitched(text, name, to === 'on');
  const { text } = config.current;
  // What stands in the file and cannot run is somebody's work, too.
  if ((await readFile(config.file, 'utf8')) !== text)
    return { ok: false, message: everywhere('file-differs') };
  const check = await config.check(switched(text), 'http');
  if (!check.ok) return { ok: false, message: check.message };
  const others = check.diff.changes.filter(({ path }) => path !== `plugins.${name}.enabled`);
  if (others.length > 0) return { ok: false, message: everywhere('switch-by-file') };
  const applied = await config.apply({ text: (running) => switched(running.text), origin: 'http' });
  if (!applied.ok) return { ok: false, message: applied.message };
  return { ok: true, message: everywhere(to === 'on' ? 'switched-on' : 'switched-off') };
}

export function pluginsTab(ctx: PluginContext): Tab {
  return {
    id: 'plugins',
    order: 90,
    title: everywhere('plugins'),
    texts: CATALOGUES,
    icon: 'M9 3v5M15 3v5M6 8h12v4a6 6 0 0 1-12 0zM12 18v3',
    render: (view) =>
      html`<div class="cards">${ctx
        .use('plugins')
        .list()
        .map((info) => entry(info, view))}</div>`,
    actions: {
      switch: (view) => flip(ctx, view),
    },
  };
}
