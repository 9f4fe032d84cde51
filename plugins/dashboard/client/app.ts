/**
 * What the page does in addition to htmx: says when its figures are old, copies addresses, and shows errors next to
 * the button that was clicked.
 */

import './focus.js';
import { sayAloud } from './aloud.js';
import { signed } from './signs.js';
import { tick, writeTime } from './times.js';
import { watchValues } from './values.js';
import { findWayIn, isSaying, markSignedIn, sayOutdated, saySignedOut } from './way-in.js';

interface Beat {
  readonly age: number;
  readonly build: string;
}

interface Htmx {
  createEventSource: (url: string) => EventSource;
}

declare const htmx: Htmx;

/** Figures older than this are shown with their age. */
const OLD_MS = 10_000;
const LOOK_MS = 1_000;
const HIDDEN_MS = 30_000;
const LEAVE_MS = 5_000;
/** A stream that ends with a change of the settings is there again after a second. */
const BROKEN_MS = 2_000;

const root = document.documentElement;
let source: EventSource | undefined;
/** On the page's own clock: when the daemon was last heard, and how old its figures were then. */
let heardAt = performance.now();
let ageThen = 0;
let triedAt = performance.now();
/** When the stream broke: what it said last may be untrue by now. */
let brokenAt = Infinity;

function heard(event: MessageEvent<string>): void {
  const beat = JSON.parse(event.data) as Beat;
  heardAt = performance.now();
  ageThen = beat.age;
  brokenAt = Infinity;
  markSignedIn();
  if (beat.build !== root.dataset['build']) return renew();
  look();
}

/** Somebody has typed what would be lost. */
function isTypedIn(): boolean {
  // A filter is chosen again in a moment.
  return document.querySelector('[data-typed]:not([method=get])') !== null;
}

/** The server has another version of the page, whose events this one would not understand. */
function renew(): void {
  if (!isTypedIn()) return location.reload();
  source?.close();
  sayOutdated();
}

const showValues = watchValues(writeTime);

htmx.createEventSource = (url) => {
  const made = new EventSource(url);
  source = made;
  made.addEventListener('beat', heard);
  made.addEventListener('error', () => (brokenAt = Math.min(brokenAt, performance.now())));
  made.addEventListener('refused', () => {
    made.close();
    setTimeout(openAnew, leavingUntil - performance.now());
  });
  made.addEventListener('values', (event) => {
    tick();
    showValues(event);
  });
  // While the browser reconnects by itself there is nothing to do; the extension takes over when the
  // browser has given up. Without an event it does so without a message in the console: the page itself
  // says that it is disconnected.
  Object.defineProperty(made, 'onerror', {
    set: (renew: () => void) => {
      made.addEventListener('error', () => {
        if (made.readyState !== EventSource.CLOSED) return;
        renew();
        // Not reached: the page says that it is disconnected.
        void findWayIn().catch(() => undefined);
      });
    },
  });
  // A tab that is opened in the background waits for its turn: when it is looked at, `seenOrNot` opens another one.
  if (document.hidden) made.close();
  return made;
};

// ---------------------------------------------------------------- old figures

function seconds(ms: number): string {
  const whole = Math.round(ms / 1_000);
  const [value, unit] =
    whole < 120
      ? [whole, 'second']
      : whole < 7_200
        ? [Math.round(whole / 60), 'minute']
        : [Math.round(whole / 3_600), 'hour'];
  return new Intl.NumberFormat(root.lang, { style: 'unit', unit, unitDisplay: 'long' }).format(
    value as number,
  );
}

type Age = 'lost' | 'old' | 'new';

/** Figures of a lost line are old first, and a moment later lost. */
const SURE_MS = 2_500;

let shownAge: Age = 'new';
let shownSince = 0;
let saidAge: Age = 'new';

/** Once each time, and not at every second that the banner counts. */
function sayAge(age: Age, text: string): void {
  if (age !== shownAge) shownSince = performance.now();
  shownAge = age;
  if (age === saidAge || performance.now() - shownSince < SURE_MS) return;
  saidAge = age;
  sayAloud(text, age === 'new' ? 'status' : 'alert');
}

/** Null where there are no figures, and where it says something else. */
function bannerOfAge(): HTMLElement | null {
  const isWanted = document.body.hasAttribute('sse-connect') && !isSaying();
  return isWanted ? document.getElementById('lost') : null;
}

function look(): void {
  const banner = bannerOfAge();
  if (!banner) return;
  const silentMs = performance.now() - heardAt;
  const isLost = silentMs > OLD_MS || performance.now() - brokenAt > BROKEN_MS;
  const ageMs = ageThen + silentMs;
  const age = isLost ? 'lost' : ageMs > OLD_MS ? 'old' : 'new';
  root.toggleAttribute('data-stale', age !== 'new');
  const text = (banner.dataset[age] ?? '').replace('%', seconds(ageMs));
  const shown = age === 'new' ? '' : text;
  if (banner.textContent !== shown) banner.textContent = shown;
  banner.hidden = age === 'new';
  sayAge(age, text);
  if (isLost && performance.now() - triedAt > OLD_MS) reconnect();
}

/**
 * After the computer slept, a connection may be dead without an error. The extension reconnects by itself
 * when its source has failed.
 */
function reconnect(): void {
  triedAt = performance.now();
  if (source?.readyState !== EventSource.OPEN) return;
  source.close();
  source.dispatchEvent(new Event('error'));
}

/**
 * A browser opens only a few connections per server: a hidden page closes its own, and when it is shown
 * again says how old its figures are.
 */
let leaving: ReturnType<typeof setTimeout> | undefined;

/** The page that signs out is on its way already, and is not led elsewhere. */
let leavingUntil = 0;
addEventListener('beforeunload', () => (leavingUntil = performance.now() + LEAVE_MS));

/** A stream that is refused is an error in the browser's console: whether it would be is asked first. */
function openAnew(): void {
  const open = (): unknown => source?.dispatchEvent(new Event('error'));
  findWayIn().then((isOut) => isOut || open(), open);
}

function seenOrNot(): void {
  clearTimeout(leaving);
  if (document.hidden) {
    leaving = setTimeout(() => source?.close(), HIDDEN_MS);
    return;
  }
  look();
  if (source?.readyState === EventSource.CLOSED) openAnew();
}

setInterval(look, LOOK_MS);
document.addEventListener('visibilitychange', seenOrNot);
addEventListener('online', () => {
  triedAt = -Infinity;
  look();
});
// Restored from the browser's cache: its figures are as old as the last visit.
addEventListener('pageshow', (event) => {
  if (event.persisted && !isTypedIn()) location.reload();
});

// ---------------------------------------------------------------- signing out

interface RequestEvent extends Event {
  readonly detail: { readonly elt: Element };
}

/** A form that signs its own page out when it is done: the stream would be cut, and refused when it is opened anew. */
function isSigningOut({ detail: { elt } }: RequestEvent): boolean {
  return elt.matches('[data-signs-out]');
}

document.addEventListener('htmx:beforeRequest', (event) => {
  if (isSigningOut(event as RequestEvent)) source?.close();
});
document.addEventListener('htmx:afterRequest', (event) => {
  if (!isSigningOut(event as RequestEvent)) return;
  if ((event as RequestEvent).detail.elt.querySelector('[data-signed-out]')) saySignedOut();
  else source?.dispatchEvent(new Event('error'));
});

// ---------------------------------------------------------------- long lists

/** Keeps only the newest entries of a growing list, and scrolls to them if the reader was at its end. */
function tend(list: HTMLElement, box: HTMLElement): void {
  const most = Number(list.dataset['most']);
  while (list.childElementCount > most) list.firstElementChild?.remove();
  const newest = list.lastElementChild?.textContent ?? '';
  if (list.dataset['seen'] === newest) return;
  const wasAtEnd = Number(list.dataset['height'] ?? 0) - box.scrollTop - box.clientHeight < 40;
  list.dataset['seen'] = newest;
  list.dataset['height'] = String(box.scrollHeight);
  if (wasAtEnd) box.scrollTop = box.scrollHeight;
}

function tendLists(): void {
  for (const list of document.querySelectorAll<HTMLElement>('[data-most]'))
    if (list.parentElement) tend(list, list.parentElement);
}

document.addEventListener('htmx:afterSettle', tendLists);
document.addEventListener('htmx:oobAfterSwap', tendLists);

// ---------------------------------------------------------------- copying

/** Without https scripts cannot use the clipboard, but they can select text and copy the selection. */
async function copy(text: string): Promise<void> {
  if (isSecureContext) return navigator.clipboard.writeText(text);
  const field = document.createElement('textarea');
  field.value = text;
  field.className = 'unseen';
  document.body.append(field);
  field.select();
  document.execCommand('copy');
  field.remove();
}

document.addEventListener('click', (event) => {
  const button =
    event.target instanceof Element ? event.target.closest<HTMLButtonElement>('button[data-copy]') : null;
  if (!button) return;
  void copy(button.dataset['copy'] ?? '').then(() => {
    const label = button.firstChild;
    const before = label?.textContent ?? '';
    if (!label || button.dataset['copied'] === 'yes') return;
    button.dataset['copied'] = 'yes';
    label.textContent = button.dataset['done'] ?? before;
    setTimeout(() => {
      label.textContent = before;
      delete button.dataset['copied'];
    }, 1_500);
  });
});

// ---------------------------------------------------------------- errors

interface SwapEvent extends Event {
  readonly detail: {
    readonly xhr: XMLHttpRequest;
    readonly target: Element;
    readonly requestConfig: { readonly elt: Element };
    serverResponse: string;
    error?: string;
    shouldSwap: boolean;
  };
}

/** The plugin is off whose part was asked for. */
const PART_GONE = 286;

/** What asks again by itself stays until it has its answer: a problem in its place would be the end of it. */
function isAskingAgain({ requestConfig }: SwapEvent['detail']): boolean {
  return requestConfig.elt.getAttribute('hx-trigger')?.includes('every ') === true;
}

function escaped(text: string): string {
  const box = document.createElement('span');
  box.textContent = text;
  return box.innerHTML;
}

/** A path must not look as another one here either. */
function problem(text: string): string {
  return `<span class="outcome" data-tone="bad">${escaped(signed(text))}</span>`;
}

/** A sentence that the page brings along, for what the daemon cannot say itself. */
function ownWords(name: 'gone' | 'unanswered'): string {
  return document.getElementById('lost')?.dataset[name] ?? '';
}

function isJson(xhr: XMLHttpRequest): boolean {
  return (xhr.getResponseHeader('content-type') ?? '').startsWith('application/json');
}

/** Undefined where it is not the daemon's. */
function messageOf(xhr: XMLHttpRequest): string | undefined {
  if (!isJson(xhr)) return undefined;
  try {
    const { message } = JSON.parse(xhr.responseText) as { readonly message?: unknown };
    return typeof message === 'string' ? message : `HTTP ${xhr.status}`;
  } catch {
    // A proxy calls its page so, or has cut the answer off.
    return undefined;
  }
}

/**
 * What a failed request says; undefined for what the daemon has written for the page: an outcome, or that somebody has
 * to sign in. Its other refusals are JSON with a message; whatever else answers in its place, such as a proxy, has a
 * page of its own, which is no outcome.
 */
function refusal(xhr: XMLHttpRequest): string | undefined {
  if (xhr.status < 400 || xhr.responseText.includes('class="outcome"')) return undefined;
  if (xhr.status === 401 && !isJson(xhr)) return undefined;
  if (xhr.status === 404) return ownWords('gone');
  return messageOf(xhr) ?? ownWords('unanswered');
}

// htmx would write a request that was not answered to the console: what names no error it does not. The page says it.
document.addEventListener('htmx:beforeRequest', (event) => {
  (event as SwapEvent).detail.error = '';
});

document.addEventListener('htmx:beforeSwap', (event) => {
  const { detail } = event as SwapEvent;
  if ((detail.xhr.status >= 400 || detail.xhr.status === PART_GONE) && isAskingAgain(detail)) {
    detail.shouldSwap = false;
    return;
  }
  const said = refusal(detail.xhr);
  if (said !== undefined) detail.serverResponse = problem(said);
});

document.addEventListener('htmx:sendError', (event) => {
  const { detail } = event as SwapEvent;
  if (isAskingAgain(detail)) return;
  detail.target.innerHTML = problem(ownWords('unanswered'));
});
