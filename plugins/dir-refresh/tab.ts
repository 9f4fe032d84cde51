/**
 * A button on each share of the dashboard: reads its folders anew. The card tells when that was done last.
 */
import { inEveryLanguage, readTexts } from 'mountkeeper';
import type { PluginContext, RefreshResult, Outcome, Tab, View } from 'mountkeeper';

const TEXTS = readTexts(import.meta.url);
const text = (key: string) => inEveryLanguage(TEXTS, key);
/** Whoever clicked is told how it went, as long as that does not take too long. */
const ANSWER_WITHIN_MS = 15_000;

function outcomeOf({ ok, failed }: RefreshResult, view: View): Outcome {
  const [first] = failed;
  if (!first) return { ok: true, message: view.plain('done', { count: ok }) };
  return {
    ok: false,
    message: view.plain('failed', {
      good: ok,
      failed: failed.length,
      reason: `${first.path}: ${first.reason}`,
    }),
  };
}

async function refresh(ctx: PluginContext, view: View): Promise<Outcome> {
  const isThrough = new AbortController();
  const late = ctx
    .use('clock')
    .sleep(ANSWER_WITHIN_MS, isThrough.signal)
    .then((): Outcome => ({ ok: true, message: text('still') }));
  // Also where nobody waits any more.
  late.catch(() => undefined);
  const done = ctx
    .use('directoryRefresher')
    .refresh(view.share ?? '', '')
    .then((result) => outcomeOf(result, view));
  try {
    return await Promise.race([done, late]);
  } finally {
    isThrough.abort();
  }
}

export function refreshTab(ctx: PluginContext): Tab {
  return {
    id: 'dir-refresh',
    place: 'share',
    order: 20,
    title: text('title'),
    texts: TEXTS,
    render: () => null,
    actions: { refresh: (view) => refresh(ctx, view) },
    buttons: () => [{ action: 'refresh', label: text('refresh') }],
  };
}
