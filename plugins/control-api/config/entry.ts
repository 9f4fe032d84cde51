/** What a document says of who may enter, and by what: people, tokens, secrets, and the lists of shares. */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from 'mountkeeper';

/** By section; other keys of `web` say where the page is. */
const KEYS: Readonly<Record<string, readonly string[]>> = {
  web: ['username', 'password', 'totp_secret', 'users', 'tokens'],
  smb: ['users', 'guest'],
  webdav: ['users', 'system_group'],
  nfs: ['allowed_clients'],
  plugins: ['auth'],
};
const LISTS = ['users', 'read_only_users', 'clients', 'read_only_clients'];

type Table = Readonly<Record<string, unknown>>;

function picked(table: object | undefined, isPicked: (key: string) => boolean): Table {
  return Object.fromEntries(Object.entries(table ?? {}).filter(([key]) => isPicked(key)));
}

function entryOf(config: Config): object {
  const sections = config as unknown as Readonly<Record<string, Table | undefined>>;
  const shares = config.shares.map((share) => [
    share.name,
    picked(share, (key) => LISTS.includes(key)),
  ]) satisfies [string, Table][];
  return {
    sections: Object.entries(KEYS).map(([name, keys]) => picked(sections[name], (key) => keys.includes(key))),
    groups: config.groups,
    // One that names nobody has nobody to lose.
    shares: Object.fromEntries(shares.filter(([, lists]) => Object.keys(lists).length > 0)),
  };
}

export function changesEntry(before: Config, after: Config): boolean {
  return !isDeepStrictEqual(entryOf(before), entryOf(after));
}

/** Whether the page may be elsewhere, or be reached in another way. */
export function movesPage(before: Config, after: Config): boolean {
  const placeOf = ({ web }: Config): Table => picked(web, (key) => KEYS['web']?.includes(key) !== true);
  return !isDeepStrictEqual(placeOf(before), placeOf(after));
}
