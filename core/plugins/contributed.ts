/** The contents of a plugin's ledger for people: names by kind. */
import type { Ledger } from './instance/ledger.ts';

function below(native: object, { routePrefix }: Ledger): string {
  return `${'name' in native ? String(native.name) : 'a hapi plugin'}, below ${routePrefix}/`;
}

/** What a plugin declares, by kind; kinds of which it has none are left out. */
export function contributedBy(
  ledger: Ledger,
): readonly (readonly [kind: string, names: readonly string[]])[] {
  const kinds: readonly (readonly [string, readonly string[]])[] = [
    ['hooks', ledger.taps.map((tap) => tap.hook)],
    ['routes', ledger.routes.map((route) => `${[route.method].flat().join('|')} ${route.path}`)],
    // What it serves is known when it is built into the web server.
    [
      'native routes',
      ledger.routePrefix === '' ? [] : ledger.hapi.map(({ plugin }) => below(plugin, ledger)),
    ],
    ['subcommands', ledger.cli.map((command) => command.name)],
    ['commands', ledger.handlers.map((handler) => handler.command)],
    ['status fields', ledger.statusFields.map((entry) => entry.field)],
    ['fields of each share', ledger.shareStatus.flatMap(({ defaults = {} }) => Object.keys(defaults))],
    ['events given', ledger.events.map(({ name }) => name)],
    ['events heard', ledger.listeners.map(({ event }) => event)],
    ['services', ledger.services.map((entry) => entry.name)],
    ['jobs', [...ledger.jobs, ...ledger.intervals].map((entry) => entry.name)],
    ['metrics', ledger.metrics.map((metric) => metric.name)],
    [
      'dashboard',
      ledger.tabs.map(({ id, place = 'tab' }) =>
        place === 'share' ? `${id} (on each share)` : `${id} (${place})`,
      ),
    ],
    ['webhook formats', ledger.webhookFormats.map(({ name }) => `${ledger.plugin}/${name}`)],
    ['effects', ledger.effects.map((effect) => effect.label)],
  ];
  return kinds
    .filter(([, names]) => names.length > 0)
    .map(([kind, names]) => [kind, [...new Set(names)]] as const);
}
