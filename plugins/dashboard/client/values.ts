/**
 * Figures that change at every cycle: put into their places, without new markup. Hundreds of cards are too many
 * for one frame: those out of sight follow some at a time, and at once when they come into sight.
 */

interface Update {
  readonly id: string;
  /** Texts by `NAME`, attributes by `NAME@ATTRIBUTE`; an empty one is not there. */
  readonly values: Readonly<Record<string, string>>;
}

/** As it came: an object is made of it only where it is shown. */
interface Line {
  readonly id: string;
  readonly json: string;
}

const SLICE_MS = 2_000;
const SLICE = 50;
/** However many there are, each is renewed before it is as old as what the page calls old. */
const SLICES = 4;

/** Of many, only these are watched: the browser lays the others out always. */
const CARDS = '.shares > .cards > .card, main > .cards > .card';
/** So much further than one sees, of the window's height. The browser draws ahead much more than that. */
const AHEAD = '50%';
const ID = /^\{"id":"([\w-]+)"/;

/** Cards further away than that. */
const unseen = new WeakSet<Element>();
/** The newest figures of cards out of sight. */
const waiting = new Map<string, string>();
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

interface Place {
  readonly name: string;
  /** Undefined: its text. */
  readonly attribute: string | undefined;
}

const named = new Map<string, Place>();

/** What the key of a value says: there are few, and each comes hundreds of times. */
function placeNamed(key: string): Place {
  const known = named.get(key);
  if (known) return known;
  const [name = '', attribute] = key.split('@');
  const found = { name, attribute };
  named.set(key, found);
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
  for (const key of Object.keys(values)) {
    const value = values[key] ?? '';
    if (shown.get(key) === value) continue;
    const { name, attribute } = placeNamed(key);
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

function lineOf(json: string): Line {
  return { id: ID.exec(json)?.[1] ?? (JSON.parse(json) as Update).id, json };
}

/** Says of each card whether it is in sight, or nearly so. */
function watchSight(onSight: (card: Element) => void): () => void {
  const watch = new IntersectionObserver(
    (changes) => {
      for (const { target, isIntersecting } of changes) {
        if (isIntersecting) unseen.delete(target);
        else unseen.add(target);
        if (isIntersecting) onSight(target);
      }
    },
    { rootMargin: `${AHEAD} 0px` },
  );
  return () => {
    for (const card of document.querySelectorAll(CARDS)) watch.observe(card);
  };
}

/** `onTime` is told of each `<time>` that has another moment. */
export function watchValues(onTime: OnTime): (event: MessageEvent<string>) => void {
  const show = ({ id, json }: Line, isSeen: boolean): void => {
    unread.delete(id);
    if (isSeen) waiting.delete(id);
    const part = document.getElementById(id);
    if (part) put(part, JSON.parse(json) as Update, isSeen, onTime);
  };
  setInterval(() => {
    for (const id of [...unread].slice(0, Math.max(SLICE, unread.size / SLICES)))
      show({ id, json: waiting.get(id) ?? '{"values":{}}' }, false);
  }, SLICE_MS);
  const lookAtCards = watchSight((card) => {
    for (const [id, json] of waiting) if (card.querySelector(`#${id}`)) show({ id, json }, true);
  });
  lookAtCards();
  // New markup is newer than what waits for the former one.
  document.addEventListener('htmx:sseMessage', ({ target }) => {
    if (!(target instanceof Element)) return;
    const isPage = target.tagName === 'MAIN';
    if (isPage) places = new WeakMap();
    else places.delete(target);
    if (isPage) lookAtCards();
    for (const id of isPage ? waiting.keys() : [target.id]) forget(id);
  });
  const take = (line: Line): void => {
    const card = document.getElementById(line.id)?.closest('.card');
    if (!card || !unseen.has(card)) return show(line, true);
    waiting.set(line.id, line.json);
    unread.add(line.id);
  };
  return ({ data }) => {
    for (const json of data.split('\n')) take(lineOf(json));
  };
}
