/** The history of applied documents, and the one on trial. */
import { html } from 'mountkeeper';
import type {
  AppliedConfig,
  ConfigChanges,
  ConfigTrial,
  Content,
  DownShare,
  Outcome,
  View,
} from 'mountkeeper';
import { everywhere } from '../languages.ts';
import { icon, toTheSecond } from '../pages/nodes.ts';
import { settingIn } from '../said.ts';

export function pastPanel(changes: ConfigChanges, view: View): Content {
  const { trial } = changes;
  return html`<div class="drawn">
    ${trial ? trialPanel(trial, view) : null}
    <section class="card">
      <h2>${view.t('versions')}</h2>
      <p class="help">${view.t('versions-help')}</p>
      <ol class="versions">
        ${changes.history().map((one, index) => versionEntry(one, index === 0, view))}
      </ol>
    </section>
  </div>`;
}

function trialPanel({ version, until, isReached, down, waiting }: ConfigTrial, view: View): Content {
  const tone = down.some(({ hasFailed }) => hasFailed)
    ? 'bad'
    : isReached && down.length + waiting.length === 0
      ? 'good'
      : 'wait';
  const key = down.length > 0 ? 'trial-down' : isReached ? 'trial-reached' : 'trial-waits';
  return html`<section class="card trial" id="trial">
    <h2>${view.t('trial')}</h2>
    <ul class="notices">
      <li data-tone=${tone}>
        ${icon(tone)}
        <div>
          ${until === undefined ? null : html`<p role="status">${view.t(key, { time: toTheSecond(until) })}</p>`}
          ${down.length > 0 ? downShares(down, view) : null}
          ${waiting.length > 0 ? waitingShares(waiting, view) : null}
        </div>
      </li>
    </ul>
    <div class="actions">
      ${view.button({ action: 'keep', label: everywhere('trial-keep'), values: { version } })}
      ${view.button({ action: 'take-back', label: everywhere('trial-back'), values: { version } })}
    </div>
  </section>`;
}

function waitingShares(names: readonly string[], view: View): Content {
  const list = names.map((name, at) => [at === 0 ? '' : view.t('list-comma'), html`<bdi>${name}</bdi>`]);
  return html`<p>${view.t('trial-former', { names: list })}</p>`;
}

function downShares(down: readonly DownShare[], view: View): Content {
  return down.map(
    ({ share, reason }) => html`<p><strong><bdi>${share}</bdi></strong>: <bdi>${view.said(reason)}</bdi></p>`,
  );
}

function versionEntry({ version, at, by, summary }: AppliedConfig, isNewest: boolean, view: View): Content {
  const lines = summary === '' || summary === 'No changes' ? [] : summary.split('\n');
  return html`<li key=${version}>
    <p>
      <strong>${view.time(at)}</strong>${' '}
      <small>${view.t(`by-${by}`)}</small>${' '}
      ${isNewest ? html`<span class="badge" data-tone="good">${view.t('version-runs')}</span>` : null}
    </p>
    ${
      lines.length === 0
        ? html`<p class="help">${view.t(summary === '' ? 'version-first' : 'version-notes')}</p>`
        : html`<ul class="difference">
            ${lines.map((line) => html`<li><bdi>${settingIn(view.language, line)}</bdi></li>`)}
          </ul>`
    }
    ${
      isNewest
        ? null
        : html`<div class="actions">${view.button({
            action: 'restore',
            label: everywhere('version-restore'),
            values: { version },
          })}</div>`
    }
  </li>`;
}

/** Undefined where nothing was taken back lately. */
export function takenBackNotice({ takenBack }: ConfigChanges, view: View): Content {
  return (
    takenBack &&
    html`<ul class="notices" id="taken-back">
      <li data-tone="warn">
        ${icon('warn')}
        <div>
          <p><strong>${view.t('level-warning')}</strong> <bdi>${view.said(takenBack.message)}</bdi></p>
          ${view.button({ action: 'acknowledge', label: everywhere('taken-back-read') })}
        </div>
      </li>
    </ul>`
  );
}

/** Where what it tells of is over already, too, nothing is left to be said. */
export function acknowledge(changes: ConfigChanges): Outcome {
  changes.acknowledge();
  return { ok: true, message: everywhere('taken-back-known') };
}

export function keep(changes: ConfigChanges, { form }: View): Outcome {
  const isKept = changes.confirm(form['version'] ?? '');
  return { ok: isKept, message: everywhere(isKept ? 'trial-kept' : 'trial-over') };
}

export async function takeBack(changes: ConfigChanges, { form }: View): Promise<Outcome> {
  const { ok, status, message } = await changes.revert(form['version'] ?? '');
  return {
    ok,
    message: ok ? everywhere('trial-taken-back') : status === 409 ? everywhere('trial-over') : message,
  };
}
