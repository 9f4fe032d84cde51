/** What a third party's plugin asks for, in the reader's language. */
import type { Content, PluginInfo, View } from 'mountkeeper';

/** Also before it is switched on. */
export function may(
  { isolation }: Pick<PluginInfo, 'isolation'>,
  permissions: readonly string[],
  view: View,
): Content {
  if (isolation === 'none') return view.t('may-everything');
  if (permissions.length === 0) return view.t('may-nothing');
  return view.t('may', {
    what: permissions.map((one) => view.plain(`may-${one}`)).join(view.plain('may-and')),
  });
}
