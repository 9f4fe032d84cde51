/** Files that were changed in two places, on the page: which version is to stay. */
import { html } from 'mountkeeper';
import type { Conflict, Content, LocalText, Outcome, View } from 'mountkeeper';
import type { Keep } from '../conflicts/resolve.ts';
import type { ManagedUploads } from '../transfer/managed.ts';
import { rowId } from './row-actions.ts';

const CHOICES: readonly Keep[] = ['mine', 'theirs', 'both'];

type Words = (key: string) => LocalText;

/** Without two files to choose from, the conflict can only be put away. */
function choicesOf({ path, copy, versions }: Conflict): readonly Keep[] {
  return versions === undefined || copy === path ? ['both'] : CHOICES;
}

function button(conflict: Conflict, keep: Keep, label: LocalText, view: View): Content {
  const { path, copy } = conflict;
  // What takes a version away asks, and names the file.
  const confirm = keep === 'both' ? {} : { confirm: view.plain(`keep-${keep}-confirm`, { path, copy }) };
  const values = { path, copy, keep };
  return view.button({ action: 'keep', label, about: path, values, ...confirm });
}

function row(conflict: Conflict, words: Words, view: View): Content {
  const { path, copy, at } = conflict;
  const choices = choicesOf(conflict);
  const labelOf = (keep: Keep): LocalText => words(choices.length === 1 ? 'keep-only' : `keep-${keep}`);
  return html`<li data-tone="warn" id=${rowId(`${path}\0${copy}`)}><div><p><bdi>${path}</bdi> <small>${view.time(
    at,
  )}</small></p><p class="help">${view.t('copy-at', { copy: html`<bdi>${copy}</bdi>` })}</p>
    <div class="row-actions">${choices.map((keep) => button(conflict, keep, labelOf(keep), view))}</div>
    </div></li>`;
}

export function conflictList(conflicts: readonly Conflict[], words: Words, view: View): Content {
  if (conflicts.length === 0) return null;
  return html`<h3>${view.t('conflicts')}</h3>
    <ul class="notices">
      ${conflicts.map((one) => row(one, words, view))}
    </ul>`;
}

/** Rejects with a plain sentence when it cannot be done in the present state. */
export async function keepVersion(uploads: ManagedUploads | undefined, view: View): Promise<Outcome> {
  const { path = '', copy = '', keep } = view.form;
  const choice = CHOICES.find((one) => one === keep);
  if (!uploads || !choice) return { ok: false, message: view.plain('no-layer') };
  await uploads.resolve({ path, copy }, choice);
  return { ok: true, message: view.plain(`kept-${choice}`, { path }) };
}
