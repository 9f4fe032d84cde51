/**
 * Which options of connections hold a secret: those that the daemon would mask. A form hides them too, before
 * anything is typed and after it.
 */
import { editToml, MASK, readToml } from 'mountkeeper';
import type { ConfigService } from 'mountkeeper';
import { at } from './typed.ts';
import type { Path } from './typed.ts';

type Table = Readonly<Record<string, unknown>>;

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** What may stand in place of an empty text. */
function filled(value: unknown): unknown {
  return value === '' ? 'x' : value;
}

export function secretOptions(
  document: Table,
  config: Pick<ConfigService, 'shown'>,
): (path: Path) => boolean {
  const { connections } = document;
  if (!Array.isArray(connections)) return () => false;
  const probe = connections.map((one: unknown) => {
    const { type, options } = isTable(one) ? one : {};
    const given = isTable(options)
      ? Object.entries(options).map(([name, value]) => [name, filled(value)])
      : [];
    return { type: typeof type === 'string' ? type : '', options: Object.fromEntries(given) as Table };
  });
  try {
    const shown = readToml(config.shown(editToml('', [{ path: ['connections'], value: probe }])));
    return (path) => at(shown, path) === MASK;
  } catch {
    // Nobody can say: none is shown.
    return () => true;
  }
}
