/** What a plugin contributes, in the reader's language: of Mountkeeper's own plugins also what they call it. */
import { html } from 'mountkeeper';
import type { Content, PluginInfo, View } from 'mountkeeper';
import { describedIn } from '../said.ts';

/** Kinds whose names are words; those of the others are typed somewhere as they are. */
const IN_WORDS: ReadonlySet<string> = new Set(['jobs', 'dashboard', 'effects']);
/** As the core writes where a tab is shown. */
const PLACES = [
  [' (tab)', 'place-tab'],
  [' (card)', 'place-card'],
  [' (on each share)', 'place-share'],
] as const;
/** As the core writes what an active plugin holds because of a job. */
const HELD_FOR = /^(?:every|job) /;

function kindKey(kind: string): string {
  return `kind-${kind.replaceAll(' ', '-')}`;
}

/** As the core says where a stranger's plugin runs. */
const RUNS_IN: Readonly<Record<string, string>> = {
  'a process of its own': 'runs-alone',
  'a shared process': 'runs-shared',
};

/** The words of strangers stay as they are. */
function word(text: string, { thirdParty }: PluginInfo, view: View): string {
  if (!thirdParty) return describedIn(view.language, text);
  const key = Object.hasOwn(RUNS_IN, text) ? RUNS_IN[text] : undefined;
  return key === undefined ? text : view.plain(key);
}

function named(kind: string, text: string, info: PluginInfo, view: View): string {
  if (!IN_WORDS.has(kind)) return text;
  const place = kind === 'dashboard' ? PLACES.find(([end]) => text.endsWith(end)) : undefined;
  if (!place) return word(text, info, view);
  const [end, key] = place;
  return view.plain(key, { name: word(text.slice(0, -end.length), info, view) });
}

/** Nothing where it contributes nothing. */
export function contributions(info: PluginInfo, view: View): Content {
  const { contributes = [] } = info;
  if (contributes.length === 0) return null;
  return html`<details><summary>${view.t('contributes')}</summary><dl class="lists">
      ${contributes.map(([kind, names]) => {
        const written = names.map((name) => named(kind, name, info, view)).join(view.plain('list-comma'));
        return html`<div><dt>${view.t(kindKey(kind))}</dt><dd><code>${written}</code></dd></div>`;
      })}</dl></details>`;
}

/** What an active plugin holds now. */
export function held(info: PluginInfo, view: View): string {
  return info.effects
    .map((label) => word(info.thirdParty ? label : label.replace(HELD_FOR, ''), info, view))
    .join(view.plain('list-comma'));
}
