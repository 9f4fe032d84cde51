/** The settings tab: the editor, the document on trial, and the history. */
import type { Outcome, PluginContext, Tab, View } from 'mountkeeper';
import { CATALOGUES, everywhere } from '../languages.ts';
import { changesOf, reached } from './arrival.ts';
import { Editor } from './editor.ts';
import { acknowledge, keep, pastPanel, takeBack } from './past.ts';

const ICON = 'M4 7h9M17 7h3M4 17h3M11 17h9M15 4.5v5M9 14.5v5';

export function settingsTab(ctx: PluginContext): Tab {
  const editor = new Editor(ctx);
  /** The sentence for an action that cannot be done. */
  const told =
    (act: (view: View) => Outcome | Promise<Outcome>) =>
    async (view: View): Promise<Outcome> =>
      changesOf(ctx) ? act(view) : { ok: false, message: everywhere('settings-no-api') };
  return {
    id: 'settings',
    order: 60,
    title: everywhere('settings'),
    texts: CATALOGUES,
    icon: ICON,
    controls: (view) => editor.controls(view),
    controlsVersion: () => editor.controlsVersion,
    render: (view) => {
      const changes = changesOf(ctx);
      return changes ? pastPanel(changes, view) : null;
    },
    questions: ['check', 'set', 'add', 'remove', 'preset', 'restore'],
    actions: {
      check: told((view) => editor.check(view)),
      set: told((view) => editor.set(view)),
      add: told((view) => editor.add(view)),
      remove: told((view) => editor.remove(view)),
      preset: told((view) => editor.preset(view)),
      restore: told((view) => editor.restore(view)),
      apply: told((view) => editor.apply(view)),
      reached: told((view) => reached(ctx, view)),
      keep: told((view) => keep(ctx.use('configChanges'), view)),
      'take-back': told((view) => takeBack(ctx.use('configChanges'), view)),
      acknowledge: told(() => acknowledge(ctx.use('configChanges'))),
    },
  };
}
