/**
 * A page whose sign-in has ended leads to a new one: what it loads is refused, and the answer names the way
 * (`HX-Redirect`), which htmx follows. What somebody has typed is not thrown away: the page says then where to go.
 */

import { sayAloud } from './aloud.js';

interface LoadEvent extends Event {
  readonly detail: { readonly xhr: XMLHttpRequest };
}

/** After a line was lost, an answer may never come. */
const ANSWER_MS = 5_000;

let hasTyped = false;
let isSaid = false;

/** Also by a button that fills in, as that of a preset does: leaving asks then. */
function isTyped(): boolean {
  return hasTyped || document.querySelector('[data-typed]:not([method=get])') !== null;
}

/** The banner says so, or that the page is out of date, and nothing else any more. */
export function isSaying(): boolean {
  return isSaid;
}

/** The daemon answers again: somebody has signed in, in another tab of this browser. */
export function markSignedIn(): void {
  isSaid = false;
}

function say(to: string, what: 'signedOut' | 'outdated', label: 'signIn' | 'reload'): void {
  const banner = document.getElementById('lost');
  if (!banner || isSaid) return;
  isSaid = true;
  document.documentElement.toggleAttribute('data-stale', true);
  const link = document.createElement('a');
  link.href = to;
  link.textContent = banner.dataset[label] ?? to;
  banner.replaceChildren(`${banner.dataset[what] ?? ''} `, link);
  banner.hidden = false;
  sayAloud(banner.textContent ?? '', 'alert');
}

/** The daemon has other pages by now. Somebody has typed into this one: they say when it is loaded anew. */
export function sayOutdated(): void {
  say(`${location.pathname}${location.search}`, 'outdated', 'reload');
}

/** Somebody has just set a password: the page leads to itself, and from there to the page to sign in. */
export function saySignedOut(): void {
  say(`${location.pathname}${location.search}`, 'signedOut', 'signIn');
}

/**
 * A refused stream does not say why; where it is for want of a sign-in, another answer names the way. False: whoever
 * reads is signed in. Rejects where there is no answer.
 */
export async function findWayIn(): Promise<boolean> {
  const headers = { 'hx-request': 'true', 'hx-current-url': location.href };
  const signal = AbortSignal.timeout(ANSWER_MS);
  const answer = await fetch(location.pathname, { method: 'HEAD', headers, signal });
  const to = answer.headers.get('hx-redirect');
  if (to === null) return false;
  if (isTyped()) say(to, 'signedOut', 'signIn');
  else location.assign(to);
  return true;
}

document.addEventListener('input', () => (hasTyped = true));
document.addEventListener('htmx:beforeOnLoad', (event) => {
  const to = (event as LoadEvent).detail.xhr.getResponseHeader('hx-redirect');
  if (to === null || !isTyped()) return;
  event.preventDefault();
  say(to, 'signedOut', 'signIn');
});
