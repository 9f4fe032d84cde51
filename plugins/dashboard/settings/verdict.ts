/** What a text would change, and whom it interrupts; updated while the user types. */
import { createHash } from 'node:crypto';
import { html } from 'mountkeeper';
import type { ConfigChange, ConfigProblem, ConfigVerdict, Content, Interruption, View } from 'mountkeeper';
import { icon } from '../pages/nodes.ts';
import { settingIn } from '../said.ts';
import { listeningAfter, opensUp, pageAt } from './page-place.ts';
import type { Listening } from './page-place.ts';

/** Hash of the checked text, so that only what was shown can be applied. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 16);
}

export interface Checked {
  readonly text: string;
  /** Shares whose uploads are paused. */
  readonly paused: readonly string[];
  readonly web: Listening;
  /** What runs was written anew to be shown: its notes are not in the text that the page began with. */
  readonly isAnew?: boolean;
}

export function verdictPanel(checked: Checked, verdict: ConfigVerdict, view: View): Content {
  const { text, paused } = checked;
  if (!verdict.ok) return problemsPanel(verdict.problems, verdict.message, view);
  const { changes, summary, interrupts, warnings } = verdict;
  if (changes.length === 0) return html`<p class="help" data-verdict="same">${view.t('settings-same')}</p>`;
  const lines = summary.split('\n');
  const ending = interrupts.shares.filter((share) => paused.includes(share));
  const dangers = dangersOf(changes, checked, view);
  return html`<div class="drawn" data-verdict="good">
    <h3>${view.t('settings-difference', { count: lines.length })}</h3>
    <ul class="difference">
      ${lines.map((line) => html`<li><bdi>${settingIn(view.language, line)}</bdi></li>`)}
    </ul>
    ${interruption(interrupts, ending, view)}
    ${
      dangers.length === 0
        ? null
        : html`<ul class="notices">
            ${dangers.map((danger) => html`<li data-tone="warn">${icon('warn')}<p>${danger}</p></li>`)}
          </ul>`
    }
    ${
      warnings.length === 0
        ? null
        : html`<ul class="notices">
            ${warnings.map(
              (warning) =>
                html`<li data-tone="warn">
                  ${icon('warn')}
                  <p><bdi>${settingIn(view.language, warning)}</bdi></p>
                </li>`,
            )}
          </ul>`
    }
    <form
      class="act"
      hx-post=${view.action('apply')}
      hx-include="#settings-text, #settings-version"
      hx-target="#settings-outcome"
      hx-swap="innerHTML"
      hx-disabled-elt="find button"
      hx-confirm=${question(interrupts, { ending, dangers }, view)}
    >
      <input type="hidden" name="seen" value=${digest(text)} /><button type="submit" class="primary">
        ${view.t('settings-apply')}
      </button>
    </form>
  </div>`;
}

/** `ending`: interrupted shares whose pause of uploads ends by it. */
function interruption(
  { shares, servers, restart }: Interruption,
  ending: readonly string[],
  view: View,
): Content {
  const lines = [
    ...(shares.length > 0
      ? [view.t('interrupts-shares', { count: shares.length, names: html`<bdi>${shares.join(', ')}</bdi>` })]
      : []),
    ...(ending.length > 0
      ? [view.t('interrupts-pause', { names: html`<bdi>${ending.join(', ')}</bdi>` })]
      : []),
    ...(servers ? [view.t('interrupts-servers')] : []),
    ...(restart ? [view.t('interrupts-restart')] : []),
  ];
  const tone = shares.length > 0 ? 'warn' : 'good';
  return html`<ul class="notices">
    ${(lines.length === 0 ? [view.t('interrupts-nobody')] : lines).map(
      (line) =>
        html`<li data-tone=${tone}>
          ${icon(tone)}
          <p>${line}</p>
        </li>`,
    )}
  </ul>`;
}

/** What happens to the page itself, and to what somebody wrote. */
function dangersOf(
  changes: readonly ConfigChange[],
  { web, isAnew = false }: Checked,
  view: View,
): readonly string[] {
  const [now, then] = [pageAt(web, view.host), pageAt(listeningAfter(web, changes), view.host)];
  return [
    ...(isAnew ? [view.plain('apply-anew')] : []),
    ...(opensUp(changes) ? [view.plain('apply-opens')] : []),
    ...(now === then ? [] : [view.plain('apply-moves', { address: then })]),
  ];
}

/** Asked only when somebody is interrupted, or it concerns the page itself. */
function question(
  { shares, servers }: Interruption,
  { ending, dangers }: { readonly ending: readonly string[]; readonly dangers: readonly string[] },
  view: View,
): string | undefined {
  if (shares.length > 0) {
    const pause = ending.length > 0 ? [view.plain('interrupts-pause', { names: ending.join(', ') })] : [];
    const ask = view.plain('apply-interrupts', { count: shares.length, names: shares.join(', ') });
    return [...dangers, ...pause, ask].join(' ');
  }
  if (servers) return [...dangers, view.plain('apply-servers')].join(' ');
  return dangers.length > 0 ? [...dangers, view.plain('apply-ask')].join(' ') : undefined;
}

/** The page's script also shows each one at its field. */
export function problemsPanel(problems: readonly ConfigProblem[], message: string, view: View): Content {
  const shown: readonly ConfigProblem[] = (problems.length > 0 ? problems : [{ message }]).map((problem) => ({
    ...problem,
    message: settingIn(view.language, problem.message),
  }));
  return html`<div class="drawn" data-verdict="bad">
    <h3>${view.t('settings-problems', { count: shown.length })}</h3>
    <ul class="notices">
      ${shown.map(
        (problem) =>
          html`<li data-tone="bad" data-problem=${problem.path} data-message=${problem.message}>
            ${icon('bad')}
            <div>
              <p><bdi>${problem.message}</bdi></p>
              ${
                problem.line === undefined
                  ? null
                  : html`<p><button type="button" class="quiet" data-line=${String(
                      problem.line,
                    )}>${view.t('to-line', { line: problem.line })}</button></p>`
              }
            </div>
          </li>`,
      )}
    </ul>
  </div>`;
}
