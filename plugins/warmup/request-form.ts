/** Any folder, also one that no rule names: fetched or counted once, from the warmup's tab. */
import { actionForm, html, inEveryLanguage, readTexts } from 'mountkeeper';
import type { Content, Outcome, View } from 'mountkeeper';
import { age, folder } from './config.ts';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);

/** A warning in place of the outcome, of a field that is wrong; undefined while both are right. */
export function wrongField({ form }: View): Outcome | undefined {
  const { path = '', newerThan = '' } = form;
  if (folder().validate(path).error) return { ok: false, message: text('bad-path') };
  if (newerThan !== '' && age().validate(newerThan).error) return { ok: false, message: text('bad-age') };
  return undefined;
}

/** Nothing without a share, or for who may only look. */
export function requestForm(shares: readonly string[], view: View): Content {
  if (shares.length === 0 || !view.may('run')) return null;
  const fields = html`<label>${view.t('share')} <select name="of">
      ${shares.map((name) => html`<option value=${name}>${name}</option>`)}
    </select></label>
    <label>${view.t('path')} <input name="path" autocomplete="off" aria-describedby="warmup-help" /></label>
    <label>${view.t('newer')} <input name="newerThan" autocomplete="off" size="6" placeholder="30d"
      aria-describedby="warmup-help" /></label>
    <button type="submit" name="isDryRun" value="false">${view.t('run')}</button>
    <button type="submit" name="isDryRun" value="true">${view.t('count')}</button>`;
  const help = html`<p id="warmup-help" class="help">${view.t('any-folder-help')}</p>`;
  return html`<details>
    <summary>${view.t('any-folder')}</summary>
    ${actionForm(view, { action: 'run', fields, help })}
  </details>`;
}
