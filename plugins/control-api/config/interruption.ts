/** Whom a change interrupts, by the tiers of the changed keys. */
import type { Config, ConfigChange, ConfigDiff, Interruption, PluginInfo } from 'mountkeeper';

export interface Compared {
  readonly diff: ConfigDiff;
  readonly before: Config;
  readonly after: Config;
  readonly plugins: readonly Pick<PluginInfo, 'name' | 'contributes'>[];
}

/** Whether it serves shares to clients, by any protocol. */
function isServer({ contributes = [] }: Pick<PluginInfo, 'contributes'>): boolean {
  return contributes.some(
    ([kind, names]) => kind === 'services' && names.some((name) => name.startsWith('exporter:')),
  );
}

export function interruptionOf({ diff: { changes }, before, after, plugins }: Compared): Interruption {
  const shares = new Set(changes.flatMap((change) => sharesOf(change, before, after)));
  const touches = (tier: ConfigChange['tier']): boolean => changes.some((change) => change.tier === tier);
  const switches = new Set(plugins.filter(isServer).map(({ name }) => `plugins.${name}.enabled`));
  return {
    // New shares interrupt nobody.
    shares: before.shares.map(({ name }) => name).filter((name) => shares.has(name)),
    servers: touches('protocol') || changes.some(({ path }) => switches.has(path)),
    restart: touches('restart'),
  };
}

function sharesOf({ path, tier }: ConfigChange, before: Config, after: Config): readonly string[] {
  if (tier === 'global') return before.shares.map(({ name }) => name);
  if (tier !== 'per-share') return [];
  const share = namedIn('shares', path, before.shares);
  if (share !== undefined) return [share];
  const connection = namedIn('connections', path, before.connections);
  return [...before.shares, ...after.shares]
    .filter((one) => one.connection === connection)
    .map(({ name }) => name);
}

/** The share's name in the path of a change: `shares.photos.read_only`, `shares."my photos"`. */
function namedIn(
  section: string,
  path: string,
  tables: readonly { readonly name: string }[],
): string | undefined {
  return tables.find(({ name }) =>
    [name, JSON.stringify(name)].some((key) => {
      const own = `${section}.${key}`;
      return path === own || path.startsWith(`${own}.`);
    }),
  )?.name;
}

/** As text, for the API. */
export function interruptionText({ shares, servers, restart }: Interruption): string {
  const sentences = [
    ...(shares.length > 0 ? [`Interrupts whoever works on: ${shares.join(', ')}.`] : []),
    ...(servers ? ['The servers of the LAN are told; clients may have to connect again.'] : []),
    ...(restart ? ['Some of it waits for the next start of the daemon.'] : []),
  ];
  return sentences.length === 0 ? 'Interrupts nobody.' : sentences.join(' ');
}
