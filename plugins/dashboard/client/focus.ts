/**
 * Who works by keyboard keeps their place. A browser takes the focus to the beginning of the page when the button
 * that has it is switched off, as while its answer is on the way, or is taken away by an update.
 */

import { formKey } from './forms.js';

/** Where the focus goes when what had it is there no more: never to another button, which Enter would press. */
const PLACES = '.browser, .slot, .card, main';
const FOCUSABLE = 'a[href], button, input, select, textarea, summary';

interface Held {
  readonly element: HTMLElement;
  readonly key: string;
  /** The nearest first. */
  readonly around: readonly Element[];
}

/** What had the focus last; undefined: somebody took it away themselves, as at the end of the page. */
let held: Held | undefined;

/** Equal: the same button or field, drawn again. */
function keyOf(element: HTMLElement): string {
  const form = element.closest('form');
  const { tagName, id, textContent } = element;
  return JSON.stringify([tagName, id, element.getAttribute('name'), textContent, form && formKey(form)]);
}

function* ancestors(element: Element): Generator<Element> {
  for (let at = element.parentElement; at; at = at.parentElement) yield at;
}

function* placesOf({ element, key, around }: Held): Generator<HTMLElement> {
  if (element.isConnected) yield element;
  const near = around.find((one) => one.isConnected);
  if (!near) return;
  for (const one of near.querySelectorAll<HTMLElement>(FOCUSABLE)) if (keyOf(one) === key) yield one;
  for (let at = near.closest(PLACES); at; at = at.parentElement?.closest(PLACES) ?? null)
    if (at instanceof HTMLElement) yield at;
}

function isUsable(element: HTMLElement): boolean {
  return element.isConnected && !element.matches(':disabled');
}

function giveBack(): void {
  if (!held || document.activeElement !== document.body) return;
  // Switched off until its answer is here.
  if (held.element.isConnected && !isUsable(held.element)) return;
  for (const place of placesOf(held)) {
    if (place.matches(PLACES)) place.tabIndex = -1;
    place.focus({ preventScroll: true });
    if (document.activeElement === place) return;
  }
}

document.addEventListener('focusin', ({ target }) => {
  if (target instanceof HTMLElement)
    held = { element: target, key: keyOf(target), around: [...ancestors(target)] };
});
// Only what is there and can be used was left by somebody; the rest has lost the focus.
document.addEventListener('focusout', ({ target }) =>
  setTimeout(() => {
    if (target === held?.element && isUsable(held.element) && document.activeElement !== target)
      held = undefined;
  }),
);
for (const event of ['htmx:afterRequest', 'htmx:afterSettle', 'htmx:sseMessage'])
  document.addEventListener(event, () => requestAnimationFrame(giveBack));
