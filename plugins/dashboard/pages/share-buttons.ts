/**
 * All plugins' buttons for a share. Drawn anew only when there are other ones, so that what came of a click stays:
 * which there are may depend on whether the share is mounted, for example.
 */
import type { ActionButton, Content, OwnedTab, View } from 'mountkeeper';
import type { Part } from '../live/feed.ts';
import { createView } from '../view.ts';
import { toHtml } from './shell.ts';
import type { Drawn } from './slots.ts';
import { slot } from './slots.ts';
import { isolated, shareId } from './sources.ts';
import type { Reader, Sources } from './sources.ts';

interface OwnedButtons {
  readonly view: View;
  readonly buttons: readonly ActionButton[];
}

/** The tabs are asked for once for all shares. */
export function shareButtons(sources: Sources, reader: Reader): (share: string) => Part {
  const owners = sources.tabs('share', reader).filter(({ tab }) => tab.buttons);
  return (share) => {
    const all = owners.map((owned) => buttonsOf(sources, owned, { reader, share }));
    return {
      id: idOf(share),
      signature: () => JSON.stringify(all.map(({ buttons }) => buttons)),
      draw: () => toHtml(all.map(({ view, buttons }) => buttons.map((button) => view.button(button)))),
    };
  };
}

export function shareButtonsSlot(share: string, drawn: Drawn): Content {
  return slot(idOf(share), drawn, { class: 'slot actions' });
}

function buttonsOf(
  sources: Sources,
  owned: OwnedTab,
  { reader, share }: { readonly reader: Reader; readonly share: string },
): OwnedButtons {
  const { tab } = owned;
  const view = createView({ ...reader, share, tab });
  return { view, buttons: isolated(sources, owned, `buttons ${share}`, () => tab.buttons?.(view)) ?? [] };
}

function idOf(share: string): string {
  return `buttons-${shareId(share)}`;
}
