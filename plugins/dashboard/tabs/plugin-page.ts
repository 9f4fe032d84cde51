/** The page of one plugin: its card, what it holds, where its keys are set, and its README as it was written. */
import { html } from 'mountkeeper';
import type { Content, PluginInfo, View } from 'mountkeeper';
import { held } from './contributed.ts';

export interface PluginPage {
  readonly info: PluginInfo;
  readonly card: Content;
  readonly logLevel: Content;
  /** Undefined: it has none. */
  readonly readme: string | undefined;
  /** Where its keys stand in the form; undefined: it has none that can be set there. */
  readonly section: string | undefined;
}

export function pluginAddress(name: string): string {
  return `/tabs/plugins?plugin=${encodeURIComponent(name)}`;
}

export function pluginPage({ info, card, logLevel, readme, section }: PluginPage, view: View): Content {
  const { effects } = info;
  return html`<p class="crumbs"><a href="/tabs/plugins">${view.t('all-plugins')}</a></p>
    <div class="cards">${card}</div>
    ${logLevel}
    ${effects.length === 0 ? null : html`<p>${view.t('holds')} <code>${held(info, view)}</code></p>`}
    ${
      section === undefined
        ? null
        : html`<p><a href="/tabs/settings">${view.t('plugin-settings')}</a> <code>[${section}]</code></p>`
    }
    <section aria-labelledby="readme"><h2 id="readme">README</h2>
      ${
        readme === undefined
          ? html`<p>${view.t('no-readme')}</p>`
          : html`<pre class="readme card" tabindex="0" dir="auto">${readme}</pre>`
      }</section>`;
}
