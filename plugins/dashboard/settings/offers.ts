/** Values that a field of the form can offer: words of the schema, and names of what there is. */
import { networkInterfaces } from 'node:os';
import type { ConfigKey, NamesOf, PluginContext } from 'mountkeeper';
import { namesIn } from './additions.ts';

type Table = Readonly<Record<string, unknown>>;
/** What stands in the text, by what is named. */
export type Names = (of: NamesOf, document: Table) => readonly string[];

export interface Offers {
  readonly values: readonly string[];
  /** These are all there are: a list to choose from. Otherwise they are proposals, and anything can be typed. */
  readonly isWhole: boolean;
}

const WHOLE: ReadonlySet<NamesOf> = new Set(['connection', 'share', 'webhook format']);
const EVERYWHERE = ['127.0.0.1', '0.0.0.0', '::'];

/** Of the machine and its plugins. */
export function namesOf(ctx: PluginContext): Names {
  const found: Readonly<Record<NamesOf, (document: Table) => readonly string[]>> = {
    address: () => [...new Set([...EVERYWHERE, ...ownAddresses()])],
    connection: ({ connections }) => namesIn(connections),
    login: ({ smb, webdav, groups }) => [
      ...new Set([
        ...namesIn((smb as Table | undefined)?.['users']),
        ...namesIn((webdav as Table | undefined)?.['users']),
      ]),
      ...Object.keys((groups as Table | undefined) ?? {}).map((name) => `@${name}`),
    ],
    protocol: () =>
      ctx
        .find('exporters')
        ?.list()
        .map(({ protocol }) => protocol) ?? [],
    share: ({ shares }) => namesIn(shares),
    'time zone': () => Intl.supportedValuesOf('timeZone'),
    'webhook format': () => ctx.find('webhookFormats')?.names() ?? [],
  };
  return (of, document) => found[of](document);
}

function ownAddresses(): readonly string[] {
  return Object.values(networkInterfaces()).flatMap((all = []) =>
    all.filter(({ scopeid }) => !scopeid).map(({ address }) => address),
  );
}

/** Undefined: nothing is known of what it takes. */
export function offersOf(
  { words = [], names }: Pick<ConfigKey, 'words' | 'names'>,
  document: Table,
  known: Names,
): Offers | undefined {
  const values = [...words, ...(names === undefined ? [] : known(names, document))];
  return values.length === 0 ? undefined : { values, isWhole: names !== undefined && WHOLE.has(names) };
}
