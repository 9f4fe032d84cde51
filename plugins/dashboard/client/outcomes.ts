/**
 * What came of a click stays where it was clicked while updates redraw the page around it. Where an update takes
 * the button itself away, the outcome moves to the end of its panel.
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

/** What a part that is redrawn by itself says of a click, it says at least so long. */
const TOLD_MS = 30_000;

const RUNNING = 'form.htmx-request';

/** Outputs in a form that the update under way leaves alone. */
const kept = new WeakSet<Node>();

/** Beside a part that is redrawn an outcome stays until the next click; inside, where rows come and go, a while. */
function isTold(output: HTMLElement): boolean {
  if (output.childElementCount === 0) return false;
  return !output.closest('.slot') || Date.now() - Number(output.dataset['toldAt'] ?? 0) < TOLD_MS;
}

/** Shows it at the end of its panel. */
function tell(output: HTMLElement): void {
  const place = output.closest('.slot')?.nextElementSibling;
  if (!place || !isPlaceOfPanel(place)) return;
  const told = [...output.childNodes].map((node) => node.cloneNode(true));
  place.replaceChildren(...told);
  setTimeout(() => {
    if (place.firstChild === told[0]) place.replaceChildren();
  }, TOLD_MS);
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

function isPlaceOfPanel(node: Node): boolean {
  return node instanceof HTMLElement && node.classList.contains('told');
}

function beforeForm(old: HTMLFormElement, fresh: HTMLFormElement): boolean {
  if (old.matches(RUNNING)) return false;
  const isSame = formKey(old) === formKey(fresh);
  // What somebody types beside the parts that are redrawn is not written over.
  if (isSame && old.dataset['typed'] !== undefined && !old.closest('.slot')) return false;
  for (const output of old.querySelectorAll('output')) {
    kept.delete(output);
    if (!isTold(output)) continue;
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
  for (const output of old.querySelectorAll('output')) if (isTold(output)) tell(output);
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

document.addEventListener('htmx:afterRequest', (event) => {
  const { elt } = (event as RequestEvent).detail;
  if (!(elt instanceof HTMLFormElement)) return;
  if (elt.querySelector('.outcome[data-tone=good]')) delete elt.dataset['typed'];
  const gone = elt.closest('[data-gone]');
  for (const output of elt.querySelectorAll('output')) {
    output.dataset['toldAt'] = String(Date.now());
    if (gone) tell(output);
  }
  gone?.remove();
});

document.addEventListener('input', ({ target }) => {
  if (target instanceof Element) target.closest('form, .settings')?.setAttribute('data-typed', '');
});
