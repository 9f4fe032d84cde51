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

function putText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

function putAttribute(element: Element, name: string, value: string): void {
  // The time that a text is about is an element in it.
  const target = name === 'data-at' ? (element.querySelector('time') ?? element) : element;
  if (value === '') target.removeAttribute(name);
  else if (target.getAttribute(name) !== value) target.setAttribute(name, value);
}

/** What a former version of the part has no place for is left out: its markup follows. */
function put(part: Element, { values }: Update, isSeen: boolean): void {
  const places = new Map<string, Element>();
  for (const element of part.querySelectorAll('[data-live]'))
    places.set(element.getAttribute('data-live') ?? '', element);
  for (const [key, value] of Object.entries(values)) {
    const [name = '', attribute] = key.split('@');
    const element = places.get(name);
    if (!element || (!isSeen && element instanceof SVGElement)) continue;
    if (attribute === undefined) putText(element, value);
    else putAttribute(element, attribute, value);
  }
}

function forget(id: string): void {
  waiting.delete(id);
  unread.delete(id);
}

/** `onPut` is told of each part that has new values. */
export function watchValues(onPut: (part: Element) => void): (event: MessageEvent<string>) => void {
  const show = (update: Update, isSeen: boolean): void => {
    unread.delete(update.id);
    if (isSeen) waiting.delete(update.id);
    const part = document.getElementById(update.id);
    if (!part) return;
    put(part, update, isSeen);
    onPut(part);
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
    if (target instanceof Element)
      for (const id of target.tagName === 'MAIN' ? waiting.keys() : [target.id]) forget(id);
  });
  return (event) => {
    const update = JSON.parse(event.data) as Update;
    const card = document.getElementById(update.id)?.closest('.card');
    if (!card || !unseen.has(card)) return show(update, true);
    waiting.set(update.id, update);
    unread.add(update.id);
  };
}
