/**
 * A button on each share of the dashboard that refreshes its folders. The card shows when that was last
 * done.
 */
import { inEveryLanguage, readTexts, timeBoxOr } from 'mountkeeper';
import type { PluginContext, RefreshResult, Outcome, Tab, View } from 'mountkeeper';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);
/** How long the click waits for the result. */
const ANSWER_WITHIN_MS = 15_000;

function outcomeOf({ ok, failed }: RefreshResult, view: View): Outcome {
  const [first] = failed;
  if (!first) return { ok: true, message: view.plain('done', { count: ok }) };
  return {
    ok: false,
    message: view.plain('failed', {
      good: ok,
      failed: failed.length,
      folder: first.path === '' ? view.plain('all') : first.path,
      reason: view.said(first.reason),
    }),
  };
}

async function refresh(ctx: PluginContext, view: View): Promise<Outcome> {
  const done = ctx
    .use('directoryRefresher')
    .refresh(view.share ?? '', '')
    .then((result) => outcomeOf(result, view));
  return timeBoxOr(ctx.use('clock'), ANSWER_WITHIN_MS, done, () => ({ ok: true, message: text('still') }));
}

export function refreshTab(ctx: PluginContext): Tab {
  return {
    id: 'dir-refresh',
    access: { see: 'viewer', act: { refresh: 'operator' } },
    place: 'share',
    order: 20,
    title: text('title'),
    texts: TEXTS,
    render: () => null,
    actions: { refresh: (view) => refresh(ctx, view) },
    buttons: () => [{ action: 'refresh', label: text('refresh') }],
  };
}
