/**
 * Who may enter which share, read from the configuration alone: no plugin that is off, failed or just being
 * replaced can open a share.
 */
import type { Config } from '../contract/config.ts';

/** `write` may read, too; nobody is in both. Names are in Unicode's composed form (NFC), as logins are. */
export interface ShareAccess {
  readonly write: readonly string[];
  readonly read: readonly string[];
}

/** `write` includes reading. */
export type Entrance = 'none' | 'read' | 'write';

const NOBODY: ShareAccess = { write: [], read: [] };

/** The name of the group that `name` stands for; undefined for a user. */
export function groupOf(name: string): string | undefined {
  return name.startsWith('@') ? name.slice(1) : undefined;
}

/**
 * The users that a share names, groups replaced by their members. Undefined when it names none: then every
 * user of the server may enter, and whoever the server lets in without a name. A share that the document
 * does not have admits nobody.
 */
export function shareAccess(config: Config, shareName: string): ShareAccess | undefined {
  const share = config.shares.find(({ name }) => name === shareName);
  if (!share) return NOBODY;
  const { users = [], read_only_users: readers = [] } = share;
  if (users.length === 0 && readers.length === 0) return undefined;
  const read = members(config, readers);
  // Whoever may only look does not get to write by another spelling of the name.
  const looking = new Set(read.map((name) => name.toLowerCase()));
  const isReader = (name: string): boolean => looking.has(name.toLowerCase());
  const all = members(config, users);
  return {
    write: all.filter((name) => !isReader(name)),
    read: [...new Set([...read, ...all.filter(isReader)])].sort(),
  };
}

/** Whether the document has the share, and shows it by this protocol. */
export function isShownOver({ shares }: Config, share: string, protocol: string): boolean {
  return shares.some(({ name, protocols }) => name === share && protocols.includes(protocol));
}

function members({ groups = {} }: Config, names: readonly string[]): string[] {
  const known = new Map(Object.entries(groups));
  const users = names.flatMap((name) => {
    const group = groupOf(name);
    return group === undefined ? [name] : (known.get(group) ?? []);
  });
  return [...new Set(users.map((name) => name.normalize('NFC')))].sort();
}

/**
 * What a user of a server may do in a share. `user` is undefined for one whom the server has let in without a
 * name; such a one enters no share that names users.
 */
export function entranceOf(
  access: ShareAccess | undefined,
  user: string | undefined,
  { ignoresCase = false }: { readonly ignoresCase?: boolean } = {},
): Entrance {
  if (access === undefined) return 'write';
  if (user === undefined) return 'none';
  const own = user.normalize('NFC');
  const isIn = (names: readonly string[]): boolean =>
    ignoresCase ? names.some((name) => name.toLowerCase() === own.toLowerCase()) : names.includes(own);
  if (isIn(access.read)) return 'read';
  return isIn(access.write) ? 'write' : 'none';
}
