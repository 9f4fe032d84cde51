/** What is under way with packages of plugins, what came of the last change, and what the last search found. */
import { html } from 'mountkeeper';
import type { Content, PackageChange, PackageResult, PackageSearch, PluginContext, View } from 'mountkeeper';
import { everywhere } from '../languages.ts';
import { icon } from '../pages/nodes.ts';
import { may } from './plugin-may.ts';

/** From the daemon's memory: the same after a reload of the page. */
export function packageNews(ctx: PluginContext, view: View): Content {
  const packages = ctx.find('pluginPackages');
  if (!packages || !view.may('install')) return null;
  const { change, search, refusal } = packages;
  return [
    change ? changeCard(ctx, change, view) : null,
    search && refusal === undefined ? searchCard(search, view) : null,
  ];
}

function changeCard(ctx: PluginContext, change: PackageChange, view: View): Content {
  return html`<section class="card packages" id="package-change">
    <h2>${view.t('package-last')} <small>${view.time(change.startedAt)}</small></h2>
    ${told(ctx, change, view)}</section>`;
}

function told(ctx: PluginContext, change: PackageChange, view: View): Content {
  const { order, state, said, result, problem = '', question } = change;
  const what = html`<bdi>${order.what}</bdi>`;
  if (state === 'running')
    return html`<p role="status">${view.t(`package-${order.verb}-runs`, { what })}</p>
      <p class="help"><bdi>${said}</bdi></p>`;
  if (result) return [line('good', doneWords(order.verb, result, view)), facts(ctx, result, view)];
  const words = view.t(`package-${order.verb}-failed`, { what });
  if (question === undefined) return [line('bad', words), html`<p class="reason"><bdi>${problem}</bdi></p>`];
  return [
    line('bad', words),
    html`<p class="reason"><bdi>${problem}</bdi></p>`,
    view.button({
      action: 'agree',
      label: everywhere('package-agree'),
      confirm: view.plain('package-agree-confirm', { what: order.what, question }),
      values: { what: order.what, question },
    }),
  ];
}

function line(tone: 'good' | 'bad', words: Content): Content {
  return html`<p class="outcome" data-tone=${tone}>${icon(tone)}<span>${words}</span></p>`;
}

function doneWords(
  verb: PackageChange['order']['verb'],
  { name, version = '', former = '' }: PackageResult,
  view: View,
) {
  const values = { name: html`<bdi>${name}</bdi>`, version, former };
  if (verb === 'remove') return view.t('package-removed', values);
  if (former === '') return view.t('package-installed', values);
  return view.t(former === version ? 'package-stays' : 'package-replaced', values);
}

function facts(ctx: PluginContext, result: PackageResult, view: View): Content {
  const { version, permissions, hasScripts, integrity, provenance, warnings, name } = result;
  if (version === undefined) return notes(warnings, view);
  const { isolation = 'own' } =
    ctx
      .use('plugins')
      .list()
      .find((one) => one.name === name) ?? {};
  const rows: readonly (readonly [key: string, value: Content] | undefined)[] = [
    result.package === undefined ? undefined : ['package-package', html`<bdi>${result.package}</bdi>`],
    integrity === undefined ? undefined : ['package-integrity', html`<code>${integrity}</code>`],
    result.package === undefined ? undefined : ['package-provenance', provenanceWords(provenance, view)],
    ['package-may', may({ isolation }, permissions, view)],
    hasScripts ? ['package-scripts', view.t('package-scripts-not-run')] : undefined,
  ];
  return [
    html`<dl class="lists">${rows
      .filter((row) => row !== undefined)
      .map(([key, value]) => html`<div><dt>${view.t(key)}</dt><dd>${value}</dd></div>`)}</dl>`,
    notes(warnings, view),
  ];
}

function notes(warnings: readonly string[], view: View): Content {
  if (warnings.length === 0) return null;
  return html`<ul class="notices">${warnings.map(
    (one) => html`<li data-tone="warn">${icon('warn')}<div><p><bdi>${view.said(one)}</bdi></p></div></li>`,
  )}</ul>`;
}

function provenanceWords(provenance: string | undefined, view: View): Content {
  if (provenance === undefined) return view.t('package-provenance-unsaid');
  if (provenance === '') return view.t('package-provenance-none');
  return view.t('package-provenance-shown', { what: html`<code>${provenance}</code>` });
}

function searchCard({ words, state, found, problem = '' }: PackageSearch, view: View): Content {
  const body = (): Content => {
    if (state === 'running') return html`<p role="status">${view.t('package-searching')}</p>`;
    if (state === 'failed') return html`<p class="reason"><bdi>${problem}</bdi></p>`;
    if (found.length === 0) return html`<p class="empty">${view.t('package-found-none')}</p>`;
    return html`<ul class="notices found">${found.map(
      ({
        name,
        version,
        description,
      }) => html`<li><div><p><strong><bdi>${name}</bdi></strong> <small>${version}</small></p>
        <p><bdi>${description}</bdi></p></div>${view.button({
          action: 'install',
          label: everywhere('package-install'),
          about: name,
          confirm: view.plain('package-install-named-confirm', { name }),
          values: { package: name },
        })}</li>`,
    )}</ul>`;
  };
  const title =
    words === ''
      ? view.t('package-found-all')
      : view.t('package-found', { words: html`<bdi>${words}</bdi>` });
  return html`<section class="card packages" id="package-search"><h2>${title}</h2>${body()}</section>`;
}
