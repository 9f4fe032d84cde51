/**
 * Tells the daemon that its settings on trial have shut nobody out. The page that sent them does so; and so does
 * every page that somebody opens who may change settings: they have signed in anew, or have left the page that sent
 * them.
 */
import { html } from 'mountkeeper';
import type { ConfigChanges, Content, Outcome, PluginContext, View } from 'mountkeeper';
import { everywhere } from '../languages.ts';
import type { Reader, Sources } from '../pages/sources.ts';
import { createView } from '../view.ts';

/** Undefined while the control API is off. */
export function changesOf(ctx: PluginContext): ConfigChanges | undefined {
  return ctx.find('configChanges');
}

/** After a while, in which what was applied is in force; again until the daemon answers. */
export function arrival(version: string, view: View): Content {
  return html`${' '}<span
      class="arrival"
      hx-target="this"
      hx-post=${view.action('reached')}
      hx-trigger="load delay:2s, every 5s"
      hx-vals=${JSON.stringify({ version })}
      hx-swap="outerHTML"
    ></span
    >${' '}<a href="/tabs/settings#trial">${view.t('trial-link')}</a>`;
}

/** Nothing unless settings are on trial that no page has reached the daemon with. */
export function arrivalOf(sources: Sources, reader: Reader): Content {
  const owned = sources.tab('settings', reader);
  const { trial } = sources;
  if (!owned || !trial || trial.isReached) return null;
  return html`<p class="arrived">${arrival(trial.version, createView({ ...reader, tab: owned.tab }))}</p>`;
}

/** Called when the page is still reachable after its own change. */
export function reached(ctx: PluginContext, view: View): Outcome {
  const isKnown = changesOf(ctx)?.reached(view.form['version'] ?? '') === true;
  if (isKnown) return { ok: true, message: everywhere('settings-reached') };
  const problem = ctx.use('web').problem;
  if (problem === undefined) return { ok: false, message: everywhere('settings-gone') };
  return { ok: false, message: view.plain('settings-elsewhere', { problem: view.said(problem) }) };
}
