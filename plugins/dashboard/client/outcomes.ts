/**
 * What came of a click stays where it was clicked while updates redraw the page around it. Where an update takes
 * the button itself away, the outcome moves to the end of its panel, or goes with it (`endsWithButton`). What was true
 * of one moment goes again: what was done after a while, and each with the next click on its card, which may make it
 * untrue. A failure waits for that click.
 */

import { formKey } from './forms.js';

interface Callbacks {
  beforeNodeMorphed: (old: Node, fresh: Node) => boolean;
  beforeNodeRemoved: (old: Node) => boolean;
  beforeAttributeUpdated: (name: string, old: Element, how: 'update' | 'remove') => boolean;
}

interface Morpher {
  readonly defaults: { readonly callbacks: Callbacks };
}

interface RequestEvent extends Event {
  readonly detail: { readonly elt: Element };
}

declare const Idiomorph: Morpher;

/** Long enough to read two sentences twice. */
const TOLD_MS = 15_000;

const PLACES = 'output:not([data-kept]), .told';
const RUNNING = 'form.htmx-request';

/** Outputs in a form that the update under way leaves alone. */
const kept = new WeakSet<Node>();

/** No more than the sentence: what an action has made, such as a token, is shown once, and is not taken away. */
function isSentence(place: Element): boolean {
  return place.childElementCount === 1 && place.firstElementChild?.matches('.outcome') === true;
}

/** What was done needs no reading later; behind another window nobody has read it yet. */
function endLater(place: HTMLElement): void {
  const said = place.firstElementChild;
  if (!isSentence(place) || !said?.matches('[data-tone=good]')) return;
  setTimeout(() => {
    if (place.firstElementChild !== said) return;
    if (document.hidden) endLater(place);
    else place.replaceChildren();
  }, TOLD_MS);
}

/** Of the card on which somebody has clicked; beside the cards, of all that stands there. */
function endOthers(form: HTMLFormElement): void {
  const card = form.closest('.card');
  for (const place of (card ?? document).querySelectorAll(PLACES))
    if (place.closest('.card') === card && isSentence(place)) place.replaceChildren();
}

/** Shows it at the end of its panel. */
function tell(output: HTMLElement): void {
  const place = output.closest('.slot')?.nextElementSibling;
  if (!place || !isPlaceOfPanel(place) || output.querySelector('.outcome[data-ends]')) return;
  const told = [...output.childNodes].map((node) => node.cloneNode(true));
  place.replaceChildren(...told);
  endLater(place);
}

/**
 * What an update of the whole page leaves alone: the drafts of settings in which somebody has typed, with the version
 * of the text that they have typed in, and what the page has filled itself since it was opened.
 */
function isOwn(old: Node, fresh: Node): boolean {
  if (!(old instanceof HTMLElement && fresh instanceof HTMLElement)) return false;
  const { kept } = old.dataset;
  return kept === undefined
    ? old.matches('.settings[data-typed] [data-draft]') && fresh.matches('[data-draft]')
    : kept === fresh.dataset['kept'];
}

/** What was told below a share's buttons, with those that there were then. */
const toldWith = new WeakMap<Element, { readonly said: Element; readonly buttons: string }>();

/** A share has other buttons once what was done there is no more so, as when its uploads go on. */
function endUntrue(): void {
  for (const place of document.querySelectorAll('.slot.actions + .told')) {
    const said = place.firstElementChild;
    if (!said || !isSentence(place)) continue;
    const forms = place.previousElementSibling?.querySelectorAll('form') ?? [];
    const buttons = [...forms].map(formKey).join('\n');
    const former = toldWith.get(place);
    if (former?.said !== said) toldWith.set(place, { said, buttons });
    else if (former.buttons !== buttons) place.replaceChildren();
  }
}

function isPlaceOfPanel(node: Node): node is HTMLElement {
  return node instanceof HTMLElement && node.classList.contains('told');
}

function beforeForm(old: HTMLFormElement, fresh: HTMLFormElement): boolean {
  if (old.matches(RUNNING)) return false;
  const isSame = formKey(old) === formKey(fresh);
  // What somebody types beside the parts that are redrawn is not written over.
  if (isSame && old.dataset['typed'] !== undefined && !old.closest('.slot')) return false;
  for (const output of old.querySelectorAll('output')) {
    kept.delete(output);
    if (output.childElementCount === 0) continue;
    if (isSame) kept.add(output);
    else tell(output);
  }
  return true;
}

/** A form whose answer is on its way stays until that is here. */
function beforeRemoval(old: HTMLElement): boolean {
  if (old.matches(RUNNING) || old.querySelector(RUNNING)) {
    old.dataset['gone'] = '';
    return false;
  }
  for (const output of old.querySelectorAll('output')) if (output.childElementCount > 0) tell(output);
  return true;
}

/**
 * What the daemon's markup does not say, and stands all the same: what somebody has opened, begun to type in, or
 * dragged to another size.
 */
function isAttributeOwn(name: string, old: Element): boolean {
  if (name === 'open') return old instanceof HTMLDetailsElement;
  if (name === 'style') return true;
  return name === 'data-typed' && old.matches('.settings');
}

Object.assign(Idiomorph.defaults.callbacks, {
  beforeNodeMorphed: (old, fresh) =>
    old instanceof HTMLFormElement && fresh instanceof HTMLFormElement
      ? beforeForm(old, fresh)
      : !kept.has(old) && !isPlaceOfPanel(old) && !isOwn(old, fresh),
  beforeNodeRemoved: (old) => !(old instanceof HTMLElement) || beforeRemoval(old),
  // A panel to which the focus was given (focus.ts) loses it with this.
  beforeAttributeUpdated: (name, old, how) =>
    !isAttributeOwn(name, old) && (name !== 'tabindex' || how !== 'remove' || old !== document.activeElement),
} satisfies Callbacks);

document.addEventListener('htmx:beforeRequest', (event) => {
  const { elt } = (event as RequestEvent).detail;
  if (elt instanceof HTMLFormElement) endOthers(elt);
});

document.addEventListener('htmx:afterRequest', (event) => {
  const { elt } = (event as RequestEvent).detail;
  if (!(elt instanceof HTMLFormElement)) return;
  if (elt.querySelector('.outcome[data-tone=good]')) delete elt.dataset['typed'];
  const gone = elt.closest('[data-gone]');
  for (const output of elt.querySelectorAll('output')) {
    endLater(output);
    if (gone) tell(output);
  }
  gone?.remove();
});

document.addEventListener('htmx:sseMessage', endUntrue);

document.addEventListener('input', ({ target }) => {
  if (target instanceof Element) target.closest('form, .settings')?.setAttribute('data-typed', '');
});
