/** A change of one key of the configuration's file, as buttons of the page of plugins make it. */
import { readFile } from 'node:fs/promises';
import type { Outcome, PluginContext, View } from 'mountkeeper';
import { everywhere } from '../languages.ts';
import { changesOf } from '../settings/arrival.ts';

/** An invalid file is somebody's unfinished work, and must not be overwritten. */
export async function isUnfinished(ctx: PluginContext): Promise<boolean> {
  const { current, file } = ctx.use('config');
  return (await readFile(file, 'utf8')) !== current.text;
}

/**
 * The present text, changed, so that nothing that others have written is lost. Undefined: done. The history names who
 * has done it; where the control API is off there is none.
 */
export async function applyEdit(
  ctx: PluginContext,
  { isStillLetIn }: Pick<View, 'isStillLetIn'>,
  edited: (text: string) => string,
): Promise<Outcome['message'] | undefined> {
  const config = ctx.use('config');
  const changes = changesOf(ctx);
  if (!changes) {
    const answer = await config.apply({ text: ({ text }) => edited(text), origin: 'http' });
    return answer.ok ? undefined : answer.message;
  }
  const { version } = changes;
  const text = edited(config.current.text);
  const answer = await changes.submit({ text, by: 'page', version, isStillLetIn });
  if (answer.ok) return undefined;
  return answer.status === 412 ? everywhere('settings-meanwhile') : answer.message;
}
