/** A long queue in portions: links of the page itself lead to the others, so that each is kept up to date. */
import { html } from 'mountkeeper';
import type { Content, View } from 'mountkeeper';

const MOST_SHOWN = 200;
/** How many are left out before the portion; in the query of the page. */
const AFTER = 'uploads-after';

export interface Portion<T> {
  readonly entries: readonly T[];
  /** Null where all are shown. */
  readonly links: Content;
}

/** The last portion where fewer wait by now than are left out. */
function leftOut(count: number, view: View): number {
  const asked = Math.trunc(Number(view.query[AFTER] ?? 0));
  const last = Math.floor(Math.max(0, count - 1) / MOST_SHOWN) * MOST_SHOWN;
  return asked > 0 ? Math.min(asked, last) : 0;
}

function link(after: number, label: Content, view: View): Content {
  const query = new URLSearchParams({ ...view.query, [AFTER]: String(after) });
  return html`<a href=${`?${query.toString()}#frame-uploads`}>${label}</a>`;
}

export function portionOf<T>(all: readonly T[], view: View): Portion<T> {
  const count = all.length;
  if (count <= MOST_SHOWN) return { entries: all, links: null };
  const after = leftOut(count, view);
  const end = Math.min(count, after + MOST_SHOWN);
  const before = Math.min(MOST_SHOWN, after);
  const next = Math.min(MOST_SHOWN, count - end);
  const links = html`<nav class="actions" aria-label=${view.plain('portions')}>
    <span>${view.t('portion', { first: after + 1, last: end, count })}</span>
    ${before > 0 ? link(after - before, view.t('before', { count: before }), view) : null}
    ${next > 0 ? link(end, view.t('after', { count: next }), view) : null}
  </nav>`;
  return { entries: all.slice(after, end), links };
}
