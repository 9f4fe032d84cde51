/**
 * The document around every page: head, navigation, footer. Nothing is loaded from another host, and there
 * are no inline scripts.
 */
import { Fragment, h, html } from 'mountkeeper';
import type { Content, View } from 'mountkeeper';
import { LANGUAGES } from '../languages.ts';
import { withSigns } from './bidi.ts';
import { libraries } from './libraries.ts';
import { NAVIGATION } from './navigation.ts';

export interface ShellTraits {
  readonly title: string;
  readonly view: View;
  readonly theme: 'auto' | 'light' | 'dark';
  /** Path of this page with its query. */
  readonly path: string;
  /** Markup of the navigation. */
  readonly navigation: string;
  /** Address of the stream of this page's changes; undefined for a page without one. */
  readonly events: string | undefined;
  /** Returns the address of one of the dashboard's files. */
  readonly asset: (name: string) => string;
  readonly scripts: readonly string[];
  /** Where the button to sign out leads; undefined where nobody is asked. */
  readonly signOutAt: string | undefined;
  /** Settings on trial, and that this page has reached the daemon. */
  readonly arrival: Content;
  /** True: without navigation and footer. */
  readonly isBare: boolean;
  /** Changes with every version of the page. */
  readonly build: string;
  /** Markup of the main content. */
  readonly main: string;
}

const HTMX_CONFIG = JSON.stringify({
  allowEval: false,
  allowScriptTags: false,
  includeIndicatorStyles: false,
  selfRequestsOnly: true,
  historyEnabled: false,
  // What waits is another frame to draw, for fades that these pages do not have.
  defaultSettleDelay: 0,
  scrollIntoViewOnBoost: false,
  responseHandling: [
    { code: '204', swap: false },
    { code: '[23]..', swap: true },
    { code: '[45]..', swap: true, error: false },
  ],
});

export const toHtml = (content: Content): string => withSigns(libraries().render(h(Fragment, null, content)));

/** The only place where markup is inserted unescaped: `toHtml` made it. */
export function drawnInto(
  tag: string,
  attributes: Readonly<Record<string, string | undefined>>,
  markup: string,
): Content {
  return html`<${tag} ...${attributes} dangerouslySetInnerHTML=${{ __html: markup }} />`;
}

export function shell(traits: ShellTraits): string {
  const { title, view, theme, asset, scripts, build } = traits;
  const document = html`<html lang=${view.language} data-theme=${theme === 'auto' ? undefined : theme}
      data-build=${build}>
    <head>
      <meta charset="utf-8" />
      <meta name="viewport" content="width=device-width, initial-scale=1" />
      <meta name="color-scheme" content="light dark" />
      <meta name="htmx-config" content=${HTMX_CONFIG} />
      <title>${title} · Mountkeeper</title>
      <link rel="icon" type="image/svg+xml" href=${asset('icon.svg')} />
      <link rel="stylesheet" href=${asset('style.css')} />
      ${scripts.map((name) => loaded(name, asset(name)))}
    </head>
    <body hx-ext="sse,morph" sse-connect=${traits.events}>
      <a class="skip" href="#main">${view.t('skip')}</a>
      ${traits.isBare ? null : header(traits)}
      ${lostBanner(view)}
      ${traits.arrival}
      ${drawnInto(
        'main',
        {
          id: 'main',
          tabindex: '-1',
          'sse-swap': traits.events === undefined ? undefined : 'frame',
          'hx-swap': 'morph:innerHTML',
        },
        traits.main,
      )}
      ${traits.isBare ? null : footer(traits)}
    </body></html>`;
  return `<!doctype html>${toHtml(document)}`;
}

const OWN_SCRIPTS: ReadonlySet<string> = new Set([
  'app.js',
  'outcomes.js',
  'limit.js',
  'charts.js',
  'settings.js',
]);

/** The dashboard's own scripts are modules; the packages' are not. */
function loaded(name: string, address: string): Content {
  if (name.endsWith('.css')) return html`<link rel="stylesheet" href=${address} />`;
  return html`<script type=${OWN_SCRIPTS.has(name) ? 'module' : undefined} defer src=${address}></script>`;
}

function header({ view, navigation, events }: ShellTraits): Content {
  return html`<header class="top"><a class="brand" href="/">Mountkeeper</a>${drawnInto(
    'nav',
    {
      'aria-label': view.plain('navigation'),
      'sse-swap': events === undefined ? undefined : NAVIGATION,
      'hx-swap': 'morph:innerHTML',
    },
    navigation,
  )}</header>`;
}

/**
 * The page's script shows this when the connection is lost; without a script the page says so at once. It counts the
 * seconds: a screen reader is told beside it.
 */
function lostBanner(view: View): Content {
  return html`<div id="lost" class="lost" hidden data-lost=${view.t('lost', { age: '%' })}
      data-new=${view.t('back')} data-old=${view.t('old', { age: '%' })} data-signed-out=${view.t('not-signed-in')}
      data-gone=${view.t('action-gone')} data-unanswered=${view.t('unanswered')}
      data-sign-in=${view.t('sign-in')} data-outdated=${view.t('outdated')}
      data-reload=${view.t('load-anew')}></div>
    <p id="aloud-alert" class="unseen" role="alert"></p><p id="aloud-status" class="unseen" role="status"></p>
    <noscript><p class="lost">${view.t('no-script')}</p></noscript>`;
}

function footer({ view, theme, path, signOutAt }: ShellTraits): Content {
  const back = html`<input type="hidden" name="back" value=${path} />`;
  const choice = (name: string, value: string, label: Content, isChosen: boolean): Content =>
    html`<button type="submit" class="quiet" name=${name} value=${value}
    aria-pressed=${isChosen ? 'true' : 'false'}>${label}</button>`;
  return html`<footer><form method="post" action="/dashboard/preferences" class="preferences">${back}
      <span role="group" aria-label=${view.t('language')}>${LANGUAGES.map((language) =>
        choice('language', language, view.t(`language-${language}`), language === view.language),
      )}</span>
      <span role="group" aria-label=${view.t('theme')}>${(['auto', 'light', 'dark'] as const).map((one) =>
        choice('theme', one, view.t(`theme-${one}`), one === theme),
      )}</span>
      <button type="button" class="quiet" data-exact aria-pressed="false" hidden>${view.t('exact-times')}</button>
    </form>
    ${
      signOutAt !== undefined
        ? html`<form method="post" action=${signOutAt}><button type="submit" class="quiet">${view.t(
            'sign-out',
          )}</button></form>`
        : null
    }</footer>`;
}
