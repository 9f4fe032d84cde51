/** A form of a tab: what a button's fixed values do not say. Its outcome shows below the fields. */
import type { Content, LocalText, View } from '../contract/dashboard.ts';
import { html } from './html.ts';

/**
 * The field of a form with the question that is asked before its action: by the page's script, and without one by the
 * dashboard. No other field has such a name.
 */
export const QUESTION = ':question';

export interface ActionForm {
  /** A key of the tab's `actions`, which reads the fields in `view.form`. */
  readonly action: string;
  /** The fields, and the buttons of the type `submit`; all are shut while the action runs. */
  readonly fields: Content;
  /** Asked before it runs: what will be interrupted, and for whom. */
  readonly confirm?: LocalText;
  /** Below the outcome, such as help. */
  readonly help?: Content;
}

/** Nothing for readers who may not run the action. */
export function actionForm(view: View, { action, fields, confirm, help }: ActionForm): Content {
  if (!view.may(action)) return null;
  const [address, question] = [view.action(action), confirm === undefined ? undefined : view.text(confirm)];
  return html`<form
    class="act"
    method="post"
    action=${address}
    hx-post=${address}
    hx-target="find output"
    hx-swap="innerHTML"
    hx-disabled-elt="find fieldset"
    hx-confirm=${question}
  >
    ${question === undefined ? null : html`<input type="hidden" name=${QUESTION} value=${question} />`}
    ${view.share === undefined ? null : html`<input type="hidden" name="share" value=${view.share} />`}
    <fieldset class="act">${fields}</fieldset>
    <output aria-live="polite"></output>
    ${help}
  </form>`;
}
