/**
 * All plugins' buttons for a share. Drawn anew only when there are other ones, so that what came of a click stays:
 * which there are may depend on whether the share is mounted, for example.
 */
import { html } from 'mountkeeper';
import type { Content, OwnedTab } from 'mountkeeper';
import type { Part } from '../live/feed.ts';
import { createView } from '../view.ts';
import { toHtml } from './shell.ts';
import type { Drawn } from './slots.ts';
import { slot } from './slots.ts';
import { isolated, shareId } from './sources.ts';
import type { Reader, Sources } from './sources.ts';

/** The tabs are asked for once for all shares. Whatever is asked for a share that is no longer configured fails. */
export function shareButtons(sources: Sources, reader: Reader): (share: string) => Part {
  const owners = sources.tabs('share', reader).filter(({ tab }) => tab.buttons);
  const configured = new Set(sources.config.shares.map(({ name }) => name));
  return (share) => {
    const drawn = configured.has(share)
      ? owners.map((owned) => buttonsOf(sources, owned, { reader, share })).join('')
      : '';
    return { id: idOf(share), signature: () => drawn, draw: () => drawn };
  };
}

export function shareButtonsSlot(share: string, drawn: Drawn): Content {
  const id = idOf(share);
  return html`${slot(id, drawn, { class: 'slot actions' })}
    <div id=${`told-${id}`} class="told" aria-live="polite"></div>`;
}

/** Empty where what the plugin gives is no list of buttons: the page stands without them. */
function buttonsOf(
  sources: Sources,
  owned: OwnedTab,
  { reader, share }: { readonly reader: Reader; readonly share: string },
): string {
  const { tab } = owned;
  const draw = (): string => {
    const view = createView({ ...reader, share, tab });
    return toHtml((tab.buttons?.(view) ?? []).map((button) => view.button(button)));
  };
  return isolated(sources, owned, `buttons ${share}`, draw) ?? '';
}

function idOf(share: string): string {
  return `buttons-${shareId(share)}`;
}
