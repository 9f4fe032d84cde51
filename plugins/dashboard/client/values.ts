/**
 * Figures that change at every cycle: put into their places, without new markup. Hundreds of cards are too many
 * for one frame: those out of sight follow some at a time, and at once when they come into sight.
 */

interface Update {
  readonly id: string;
  /** Texts by `NAME`, attributes by `NAME@ATTRIBUTE`; an empty one is not there. */
  readonly values: Readonly<Record<string, string>>;
}

interface SightEvent extends Event {
  readonly skipped: boolean;
}

const SLICE_MS = 2_000;
const SLICE = 50;
/** However many there are, each is renewed before it is as old as what the page calls old. */
const SLICES = 4;

/** Cards that the browser does not draw now. */
const unseen = new WeakSet<Element>();
/** The newest figures of cards out of sight. */
const waiting = new Map<string, Update>();
/** Those of which not even the text was put, for screen readers and searches. Oldest first. */
const unread = new Set<string>();

interface Places {
  readonly elements: ReadonlyMap<string, Element>;
  /** What stands in them, as it came: reading it from the page takes longer than writing it. */
  readonly shown: Map<string, string>;
}

/** Found once for each markup of a part. */
let places = new WeakMap<Element, Places>();

function placesOf(part: Element): Places {
  const known = places.get(part);
  if (known) return known;
  const elements = new Map<string, Element>();
  for (const element of part.querySelectorAll('[data-live]'))
    elements.set(element.getAttribute('data-live') ?? '', element);
  const found = { elements, shown: new Map<string, string>() };
  places.set(part, found);
  return found;
}

/** Another text in the same node is laid out sooner than another node. */
function putText(element: Element, text: string): void {
  const { firstChild } = element;
  if (firstChild instanceof Text && firstChild === element.lastChild) firstChild.data = text;
  else element.textContent = text;
}

function putAttribute(element: Element, name: string, value: string): void {
  if (value === '') element.removeAttribute(name);
  else element.setAttribute(name, value);
}

type OnTime = (time: HTMLElement) => void;

/** What a former version of the part has no place for is left out: its markup follows. */
function put(part: Element, { values }: Update, isSeen: boolean, onTime: OnTime): void {
  const { elements, shown } = placesOf(part);
  for (const [key, value] of Object.entries(values)) {
    if (shown.get(key) === value) continue;
    const [name = '', attribute] = key.split('@');
    const element = elements.get(name);
    if (!element || (!isSeen && element instanceof SVGElement)) continue;
    shown.set(key, value);
    if (attribute === undefined) putText(element, value);
    else if (attribute === 'data-at') putTime(element, value, onTime);
    else putAttribute(element, attribute, value);
  }
}

/** The time that a text is about is an element in it. */
function putTime(element: Element, at: string, onTime: OnTime): void {
  const time = element.querySelector('time');
  time?.setAttribute('data-at', at);
  if (time) onTime(time);
}

function forget(id: string): void {
  waiting.delete(id);
  unread.delete(id);
}

/** `onTime` is told of each `<time>` that has another moment. */
export function watchValues(onTime: OnTime): (event: MessageEvent<string>) => void {
  const show = (update: Update, isSeen: boolean): void => {
    unread.delete(update.id);
    if (isSeen) waiting.delete(update.id);
    const part = document.getElementById(update.id);
    if (part) put(part, update, isSeen, onTime);
  };
  setInterval(() => {
    for (const id of [...unread].slice(0, Math.max(SLICE, unread.size / SLICES)))
      show(waiting.get(id) ?? { id, values: {} }, false);
  }, SLICE_MS);
  document.addEventListener('contentvisibilityautostatechange', (event) => {
    const { target, skipped } = event as SightEvent;
    if (!(target instanceof Element)) return;
    if (skipped) unseen.add(target);
    else unseen.delete(target);
    if (skipped) return;
    for (const update of waiting.values()) if (target.querySelector(`#${update.id}`)) show(update, true);
  });
  // New markup is newer than what waits for the former one.
  document.addEventListener('htmx:sseMessage', ({ target }) => {
    if (!(target instanceof Element)) return;
    const isPage = target.tagName === 'MAIN';
    if (isPage) places = new WeakMap();
    else places.delete(target);
    for (const id of isPage ? waiting.keys() : [target.id]) forget(id);
  });
  const take = (update: Update): void => {
    const card = document.getElementById(update.id)?.closest('.card');
    if (!card || !unseen.has(card)) return show(update, true);
    waiting.set(update.id, update);
    unread.add(update.id);
  };
  return ({ data }) => {
    for (const line of data.split('\n')) take(JSON.parse(line) as Update);
  };
}
