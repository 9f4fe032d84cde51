/** A pause of another length than the button's hour, or another end of one that is under way. */
import { actionForm, html } from 'mountkeeper';
import type { Content, View } from 'mountkeeper';

const [HOUR_S, DAY_S] = [3_600, 86_400];
/** In seconds; the last is the longest that the API takes. */
const LENGTHS: readonly number[] = [
  ...[2, 4, 8, 12].map((hours) => hours * HOUR_S),
  ...[1, 2, 7].map((days) => days * DAY_S),
];

/** What the form has sent; undefined for what it does not offer. The button without a length means an hour. */
export function pauseSeconds({ form: { seconds = String(HOUR_S) } }: View): number | undefined {
  return [HOUR_S, ...LENGTHS].find((one) => String(one) === seconds);
}

function lengthOf(seconds: number, view: View): string {
  return seconds < DAY_S
    ? view.plain('hours', { count: seconds / HOUR_S })
    : view.plain('days', { count: seconds / DAY_S });
}

export function pauseForm(view: View): Content {
  if (!view.may('pause')) return null;
  const fields = html`<label>${view.t('pause-length')} <select name="seconds">
      ${LENGTHS.map((one) => html`<option value=${String(one)}>${lengthOf(one, view)}</option>`)}
    </select></label>
    <button type="submit">${view.t('pause-begin')}</button>`;
  return html`<details>
    <summary>${view.t('pause-for')}</summary>
    ${actionForm(view, { action: 'pause', fields, confirm: view.plain('pause-for-confirm') })}
  </details>`;
}
