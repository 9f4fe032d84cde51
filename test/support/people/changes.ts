/** Twenty kinds of change to who may enter what, with people and shares drawn by a seed. */
import type { Random } from '../config/random-documents.ts';
import type { Protocol } from '../clients/protocols.ts';
import type { Office, ShareKeys } from './model.ts';

/** What it is, for the report; undefined when there is nothing to change in this way. */
type Change = (office: Office, draw: Draw) => string | undefined;

/** Somebody, or something, out of the office. */
interface Draw {
  person(): string;
  people(most: number): string[];
  share(where?: (keys: ShareKeys) => boolean): string | undefined;
  address(): string;
  group(): string;
}

const isFree = ({ users, read_only_users: readers }: ShareKeys): boolean => !users && !readers;
const isAnywhere = ({ clients, read_only_clients: lookers }: ShareKeys): boolean => !clients && !lookers;
const PROTOCOLS: readonly Protocol[] = ['smb', 'nfs', 'webdav'];

const keysOf = (office: Office, share: string | undefined): ShareKeys => office.shares[share ?? ''] ?? {};

function without(protocol: Protocol): Change {
  return (office, draw) => {
    const share = draw.share(({ protocols }) => !protocols);
    keysOf(office, share).protocols = PROTOCOLS.filter((one) => one !== protocol);
    return share && `${share} is not shown over ${protocol} any more`;
  };
}

function unaccounted(protocol: 'smb' | 'webdav'): Change {
  return (office, draw) => {
    const person = draw.person();
    const has = (one: 'smb' | 'webdav'): boolean => office[one].some(({ name }) => name === person);
    // A name that no server has is refused.
    if (!has('smb') || !has('webdav')) return undefined;
    office[protocol] = office[protocol].filter(({ name }) => name !== person);
    return `${person} has no account over ${protocol} any more`;
  };
}

/** The name of the change, and what it does. */
export const CHANGES: Readonly<Record<string, Change>> = {
  users: (office, draw) => {
    const share = draw.share();
    const users = draw.people(3);
    keysOf(office, share).users = users;
    return `${share} names the users ${users.join(' ')}`;
  },
  'read-only users': (office, draw) => {
    const share = draw.share();
    const readers = draw.people(2);
    keysOf(office, share).read_only_users = readers;
    return `${share} names ${readers.join(' ')}, who may look`;
  },
  'in both lists': (office, draw) => {
    const share = draw.share(
      ({ users }) => users !== undefined && users.some((name) => !name.startsWith('@')),
    );
    const [name = ''] = (keysOf(office, share).users ?? []).filter((one) => !one.startsWith('@'));
    keysOf(office, share).read_only_users = [name];
    return share && `${name} of ${share} may only look`;
  },
  'in both lists, in capitals': (office, draw) => {
    const share = draw.share();
    const [first = '', ...rest] = draw.people(3);
    Object.assign(keysOf(office, share), { users: [first, ...rest], read_only_users: [first.toUpperCase()] });
    return share && `${share} lets ${[first, ...rest].join(' ')} in, and ${first.toUpperCase()} looks`;
  },
  'a group': (office, draw) => {
    const share = draw.share();
    const group = draw.group();
    const keys = keysOf(office, share);
    delete keys.read_only_users;
    keys.users = [`@${group}`];
    return `${share} is of the group ${group}`;
  },
  'a group that looks': (office, draw) => {
    const share = draw.share();
    const group = draw.group();
    keysOf(office, share).read_only_users = [`@${group}`];
    return `the group ${group} may look into ${share}`;
  },
  'a member more': (office, draw) => {
    const [group, person] = [draw.group(), draw.person()];
    const members = office.groups[group] ?? [];
    if (members.includes(person)) return undefined;
    office.groups[group] = [...members, person];
    return `${person} comes to the group ${group}`;
  },
  'a member less': (office, draw) => {
    const group = draw.group();
    const [first, ...rest] = office.groups[group] ?? [];
    office.groups[group] = rest;
    return first && `${first} leaves the group ${group}`;
  },
  'open to all users again': (office, draw) => {
    const share = draw.share((keys) => !isFree(keys));
    const keys = keysOf(office, share);
    delete keys.users;
    delete keys.read_only_users;
    return share && `${share} names no users any more`;
  },
  clients: (office, draw) => {
    const share = draw.share();
    const clients = [draw.address(), draw.address()];
    keysOf(office, share).clients = clients;
    return `${share} names the clients ${clients.join(' ')}`;
  },
  'a network of clients': (office, draw) => {
    const share = draw.share();
    keysOf(office, share).clients = ['127.0.0.12/30'];
    return `${share} is for 127.0.0.12/30`;
  },
  'read-only clients': (office, draw) => {
    const share = draw.share();
    const address = draw.address();
    keysOf(office, share).read_only_clients = [address];
    return `${share} is for looking from ${address}`;
  },
  'open to allowed clients again': (office, draw) => {
    const share = draw.share((keys) => !isAnywhere(keys));
    const keys = keysOf(office, share);
    delete keys.clients;
    delete keys.read_only_clients;
    return share && `${share} names no clients any more`;
  },
  'allowed clients': (office) => {
    office.allowed =
      office.allowed.length === 1 ? ['127.0.0.1', '127.0.0.11', '127.0.0.14/31'] : ['127.0.0.0/8'];
    return `allowed over NFS: ${office.allowed.join(' ')}`;
  },
  'no account over SMB': unaccounted('smb'),
  'no account over WebDAV': unaccounted('webdav'),
  'another password': (office, draw) => {
    const person = draw.person();
    const password = `another of ${person}`;
    for (const login of [...office.smb, ...office.webdav])
      if (login.name === person) login.password = password;
    return `${person} has another password and does not know it`;
  },
  'passwords told, accounts given back': (office) => {
    for (const name of Object.keys(office.typed)) {
      const password = `told to ${name}`;
      office.typed[name] = password;
    }
    const all = () => Object.entries(office.typed).map(([name, password]) => ({ name, password }));
    Object.assign(office, { smb: all(), webdav: all() });
    return 'all have accounts, and know their passwords';
  },
  'guests over SMB': (office) => {
    office.guest = !office.guest;
    return `guests ${office.guest ? 'are let in' : 'are kept out'} over SMB`;
  },
  'not over SMB': without('smb'),
  'not over NFS': without('nfs'),
  'not over WebDAV': without('webdav'),
  'over every protocol again': (office, draw) => {
    const share = draw.share(({ protocols }) => protocols !== undefined);
    delete keysOf(office, share).protocols;
    return share && `${share} is shown everywhere again`;
  },
};

function drawing(office: Office, random: Random): Draw {
  const of = <T>(all: readonly T[]): T | undefined => all[Math.floor(random() * all.length)];
  const names = Object.keys(office.addresses);
  return {
    person: () => of(names) ?? '',
    people: (most) => {
      const rest = [...names];
      const count = 1 + Math.floor(random() * most);
      return Array.from({ length: count }, () => rest.splice(Math.floor(random() * rest.length), 1)[0] ?? '');
    },
    share: (where = () => true) =>
      of(
        Object.entries(office.shares)
          .filter(([, keys]) => where(keys))
          .map(([name]) => name),
      ),
    address: () => of(Object.values(office.addresses)) ?? '',
    group: () => of(Object.keys(office.groups)) ?? '',
  };
}

/**
 * The office after a change, and what it was. Kinds that find nothing to change wait for a later turn; undefined
 * when none finds anything.
 */
export function changed(
  office: Office,
  kinds: string[],
  random: Random,
): { readonly office: Office; readonly said: string } | undefined {
  for (const kind of kinds) {
    const next = structuredClone(office);
    const said = CHANGES[kind]?.(next, drawing(next, random));
    if (said === undefined || JSON.stringify(next) === JSON.stringify(office)) continue;
    kinds.splice(kinds.indexOf(kind), 1);
    return { office: next, said };
  }
  return undefined;
}

/** The kinds in an order of their own. */
export function shuffled(kinds: readonly string[], random: Random): string[] {
  const rest = [...kinds];
  return kinds.map(() => rest.splice(Math.floor(random() * rest.length), 1)[0] ?? '');
}
