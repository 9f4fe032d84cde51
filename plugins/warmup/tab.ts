/** The warmup on the dashboard: every rule and request with its progress, and a button on each share. */
import { html, inEveryLanguage, nextCronTime, readTexts } from 'mountkeeper';
import type { Content, Outcome, PluginContext, Tab, View } from 'mountkeeper';
import { checkedTarget } from './checked-target.ts';
import type { WarmupConfig } from './config.ts';
import { requestForm, wrongField } from './request-form.ts';
import { isShare } from './routes.ts';
import type { WarmupScheduler } from './scheduler/scheduler.ts';
import type { Task } from './scheduler/task.ts';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);
const TONES: Readonly<Record<string, string>> = {
  complete: 'good',
  failed: 'bad',
  listing: 'wait',
  caching: 'wait',
  pending: 'off',
};

export interface WarmupTabParts {
  readonly ctx: PluginContext<WarmupConfig>;
  /** Throws while the plugin is starting. */
  readonly scheduler: () => WarmupScheduler;
}

function shareNames({ ctx }: WarmupTabParts): readonly string[] {
  return ctx.use('config').current.config.shares.map(({ name }) => name);
}

function tasksOf(parts: WarmupTabParts): readonly Task[] {
  const now = parts.scheduler();
  return shareNames(parts).flatMap((name) => now.of(name));
}

/** In one piece. */
function size(bytes: number, view: View): string {
  return view.bytes(bytes).replace(' ', '\u00A0');
}

function row(task: Task, view: View): Content {
  const { target, state, counts, isFull } = task;
  const values = {
    path: target.path,
    newerThan: target.newerThan ?? '',
    isDryRun: String(target.isDryRun),
    of: target.share,
  };
  const isUnderWay = task.isWanted || task.isRunning;
  return html`<tr><th scope="row"><bdi>${target.share}</bdi></th><td>${
    target.path === '' ? view.t('all') : html`<bdi>${target.path}</bdi>`
  }</td>
    <td data-head=${view.plain('newer')}>${target.newerThan ?? view.t('any-age')}</td>
    <td><span class="badge" data-tone=${TONES[state]}>${view.t(`state-${state}`)}</span>${
      target.isDryRun ? html` <small>${view.t('counting')}</small>` : null
    }
      ${isFull ? html` <small>${view.t('full')}</small>` : null}</td>
    <td data-head=${view.plain('files')}>${view.t('counts', {
      done: counts.skipped + counts.cached,
      total: counts.total,
    })}
      ${counts.errors > 0 ? html` <small>${view.t('errors', { count: counts.errors })}</small>` : null}</td>
    <td data-head=${view.plain('size')}>${size(counts.skippedBytes + counts.cachedBytes, view)} / ${size(
      counts.totalBytes,
      view,
    )}</td>
    <td><div class="actions">${view.button({
      action: 'run',
      label: text('run'),
      values: { ...values, isDryRun: 'false' },
    })}
      ${view.button({ action: 'run', label: text('count'), values: { ...values, isDryRun: 'true' } })}
      ${isUnderWay ? view.button({ action: 'cancel', label: text('cancel'), values }) : null}</div></td></tr>`;
}

function scheduled({ ctx }: WarmupTabParts, view: View): Content {
  const { warmup_schedule: schedule, timezone } = ctx.config;
  if (schedule === '') return null;
  const next = nextCronTime(schedule, timezone, ctx.use('clock').now());
  return html`<p>${view.t('schedule', { schedule: html`<code>${schedule}</code>` })} ${
    next === undefined ? null : view.t('next-run', { time: view.time(next) })
  }</p>`;
}

function table(parts: WarmupTabParts, view: View): Content {
  const tasks = tasksOf(parts);
  if (tasks.length === 0) return html`<p class="empty">${view.t('none')}</p>`;
  const heads = ['share', 'path', 'newer', 'state', 'files', 'size', 'what'].map(
    (head) => html`<th scope="col">${view.t(head)}</th>`,
  );
  return html`<div class="drawn">${scheduled(parts, view)}
    <div class="scroll" tabindex="0" role="region" aria-label=${view.text(text('title'))}>
    <table class="stacked"><thead><tr>${heads}</tr></thead><tbody>${tasks.map((task) =>
      row(task, view),
    )}</tbody></table></div></div>`;
}

async function warmShare({ ctx, scheduler }: WarmupTabParts, view: View): Promise<Outcome> {
  const { share = '' } = view;
  const targets = scheduler()
    .rules.filter(({ target }) => target.share === share)
    .map(({ target }) => target);
  if (targets.length === 0) return { ok: false, message: view.plain('no-rule', { share }) };
  for (const target of targets) await ctx.send('warmup', target);
  return { ok: true, message: text('started') };
}

async function run({ ctx }: WarmupTabParts, view: View): Promise<Outcome> {
  const { of: share = '', path = '', newerThan = '', isDryRun } = view.form;
  const wrong = wrongField(view);
  if (wrong) return wrong;
  const wish = { share, path, newerThan: newerThan === '' ? null : newerThan, isDryRun: isDryRun === 'true' };
  // The command's handler refuses it, too, but that is heard of in the log alone. What is thrown is shown.
  await ctx.send(
    'warmup',
    checkedTarget(wish, (name) => isShare(ctx, name)),
  );
  return { ok: true, message: text(wish.isDryRun ? 'counting-begins' : 'started') };
}

export function warmupTabs(parts: WarmupTabParts): readonly Tab[] {
  return [
    {
      id: 'warmup',
      access: { see: 'viewer', act: { run: 'operator', cancel: 'operator' } },
      order: 30,
      title: text('title'),
      texts: TEXTS,
      icon: 'M12 4v10M8 10l4 4 4-4M5 19h14',
      render: (view) => table(parts, view),
      controls: (view) => requestForm(shareNames(parts), view),
      controlsVersion: () => JSON.stringify(shareNames(parts)),
      actions: {
        run: (view) => run(parts, view),
        cancel: (view) =>
          parts.scheduler().cancel(view.form['of'] ?? '') > 0
            ? { ok: true, message: text('cancelled') }
            : { ok: false, message: text('idle') },
      },
    },
    {
      id: 'warmup-share',
      access: { see: 'viewer', act: { start: 'operator' } },
      place: 'share',
      order: 30,
      title: text('title'),
      texts: TEXTS,
      render: () => null,
      actions: { start: (view) => warmShare(parts, view) },
      controlsVersion: () => JSON.stringify(parts.ctx.config.rules.map(({ share }) => share)),
      // Without a rule it could only fail; folders are fetched from the share's files.
      buttons: ({ share }) =>
        parts.ctx.config.rules.some((rule) => rule.share === share)
          ? [{ action: 'start', label: text('warm-up') }]
          : [],
    },
  ];
}
