/** The elements of a page that are redrawn by themselves. */
import { html } from 'mountkeeper';
import type { Content, OwnedTab } from 'mountkeeper';
import { drawnInto } from './shell.ts';

export type Drawn = (id: string) => string;

/** The element of a part: the event of its name replaces its content. */
export function slot(id: string, drawn: Drawn, attributes: Readonly<Record<string, string>> = {}): Content {
  return drawnInto(
    'div',
    { id, class: 'slot', 'sse-swap': id, 'hx-swap': 'morph:innerHTML', ...attributes },
    drawn(id),
  );
}

/** The part of a plugin; below it is said what came of a click whose button an update has taken away. */
export function pluginSlot(owned: OwnedTab, drawn: Drawn): Content {
  const id = partId(owned);
  return html`${slot(id, drawn)}<div id=${`told-${id}`} class="told" aria-live="polite"></div>`;
}

/** A share's own part is named by a hash, so that no panel can have the same name. */
export function partId({ tab }: OwnedTab): string {
  return `${tab.place === 'share' ? 'panel' : (tab.place ?? 'tab')}-${tab.id}`;
}
