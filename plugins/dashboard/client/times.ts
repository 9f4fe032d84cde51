/** Writes times in the reader's time zone and language, and keeps those true that count from now. */

const LOOK_MS = 1_000;
/** Each tick has the browser draw the page, which takes longer than the texts themselves. */
const TICK_MS = 2_000;
const ALL_MS = 60_000;
const BUTTON = 'button[data-exact]';
const KEPT_AS = 'exact-times';
const root = document.documentElement;
let isExact = kept();
/** Of all times that count from now: a part that is drawn between two ticks says the same as its neighbours. */
let now = Date.now();

const STEPS: readonly (readonly [unit: Intl.RelativeTimeFormatUnit, seconds: number])[] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
  ['second', 1],
];

// Made once: hundreds of times are written at each update, and making a format takes longer than using it.
const AGO = new Intl.RelativeTimeFormat(root.lang, { numeric: 'auto' });
const TODAY = new Intl.DateTimeFormat(root.lang, { timeStyle: 'short' });
const TODAY_EXACT = new Intl.DateTimeFormat(root.lang, { timeStyle: 'medium' });
const ANY_DAY = new Intl.DateTimeFormat(root.lang, { dateStyle: 'medium', timeStyle: 'short' });
const EXACT = new Intl.DateTimeFormat(root.lang, { dateStyle: 'medium', timeStyle: 'medium' });

const MOST_MOMENTS = 1_000;

/** Those of less than a day: hundreds of cards say the same ones. */
const written = new Map<string, string>();

/** When the text of a time that counts from now is another one: of minutes once in a minute. */
const due = new WeakMap<Element, number>();

/** What has passed, in whole units of the size that is told, in seconds. */
function countOf(at: number): { unit: Intl.RelativeTimeFormatUnit; size: number; count: number } {
  const passed = Math.max(0, (now - at) / 1_000);
  const [unit, size] = STEPS.find(([, step]) => passed >= step) ?? ['second', 1];
  return { unit, size, count: Math.floor(passed / size) };
}

function ago(at: number): string {
  const { unit, count } = countOf(at);
  const known = written.get(`${count} ${unit}`);
  if (known !== undefined) return known;
  const text = AGO.format(-count, unit);
  if (unit !== 'day') written.set(`${count} ${unit}`, text);
  return text;
}

/** By the minute; for one day. */
const moments = new Map<number, string>();
let today = 0;

function moment(at: number): string {
  const day = new Date().setHours(0, 0, 0, 0);
  if (day !== today || moments.size > MOST_MOMENTS) moments.clear();
  today = day;
  const minute = Math.floor(at / 60_000);
  const known = moments.get(minute);
  if (known !== undefined) return known;
  const text = (isToday(at) ? TODAY : ANY_DAY).format(at);
  moments.set(minute, text);
  return text;
}

function isToday(at: number): boolean {
  return new Date(at).setHours(0, 0, 0, 0) === new Date().setHours(0, 0, 0, 0);
}

function textOf(at: number, style: string | undefined): string {
  if (isExact) return EXACT.format(at);
  if (style === 'second') return (isToday(at) ? TODAY_EXACT : EXACT).format(at);
  return style === 'ago' ? ago(at) : moment(at);
}

/** Another text in the same node is laid out sooner than another node. */
function putText(element: HTMLElement, text: string): void {
  const { firstChild } = element;
  if (!(firstChild instanceof Text) || firstChild !== element.lastChild) element.textContent = text;
  else if (firstChild.data !== text) firstChild.data = text;
}

export function writeTime(element: HTMLElement): void {
  const { at: given, style } = element.dataset;
  const at = Number(given);
  putText(element, textOf(at, style));
  const { size, count } = countOf(at);
  if (style === 'ago') due.set(element, isExact ? Infinity : at + (count + 1) * size * 1_000);
  // Under a pointer that rests on it.
  if (element.title !== '') element.title = EXACT.format(at);
}

function writeTimes(place: ParentNode): void {
  for (const element of place.querySelectorAll<HTMLElement>('time[data-at]')) writeTime(element);
}

// Written when somebody points at it: a page has hundreds of them.
document.addEventListener('mouseover', ({ target }) => {
  const time = target instanceof Element ? target.closest<HTMLElement>('time[data-at]') : null;
  if (time) time.title = EXACT.format(Number(time.dataset['at']));
});

// ---------------------------------------------------------------- exact ones

/** For who has no pointer to rest on a time: all of them, with the day and the second. */
function showWhich(button: HTMLElement | null): void {
  button?.setAttribute('aria-pressed', isExact ? 'true' : 'false');
  button?.removeAttribute('hidden');
}

/** A browser may keep nothing: then the choice holds for this page. */
function kept(change?: boolean): boolean {
  try {
    if (change !== undefined) localStorage.setItem(KEPT_AS, change ? 'yes' : '');
    return localStorage.getItem(KEPT_AS) === 'yes';
  } catch {
    // Asked by the reader's own settings.
    return change ?? false;
  }
}

document.addEventListener('click', ({ target }) => {
  const button = target instanceof Element ? target.closest<HTMLElement>(BUTTON) : null;
  if (!button) return;
  isExact = !isExact;
  kept(isExact);
  showWhich(button);
  writeTimes(document);
});

// ---------------------------------------------------------------- when

const changed = new Set<ParentNode>();

/** Once for all parts that one update brings, before they are painted. */
function writeTimesSoon(place: unknown): void {
  if (changed.size === 0)
    requestAnimationFrame(() => {
      for (const one of changed) writeTimes(one);
      changed.clear();
    });
  changed.add(place instanceof Element ? place : document);
}

/**
 * Those that count and are due; the others change at midnight alone, and a page has hundreds of them. With new figures,
 * for which the browser draws the page anyway, and by itself where none come.
 */
export function tick(): void {
  now = Date.now();
  if (document.hidden) return;
  for (const element of document.querySelectorAll<HTMLElement>('time[data-style=ago]'))
    if ((due.get(element) ?? 0) <= now) writeTime(element);
}

setInterval(() => {
  if (Math.abs(Date.now() - now) >= TICK_MS) tick();
}, LOOK_MS);
setInterval(() => writeTimes(document), ALL_MS);
document.addEventListener('visibilitychange', tick);
document.addEventListener('htmx:afterSettle', ({ target }) => writeTimesSoon(target));
document.addEventListener('htmx:sseMessage', ({ target }) => writeTimesSoon(target));
writeTimes(document);
showWhich(document.querySelector(BUTTON));
