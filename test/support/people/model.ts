/**
 * Who may do what, worked out from a plain picture of the configuration. It shares no code with the product: what
 * both get wrong in the same way is then a mistake in the documentation.
 */
import type { Protocol } from '../clients/protocols.ts';

export type Right = 'none' | 'read' | 'write';
/** How a server of users takes somebody. */
export type Identity = 'user' | 'guest' | 'stranger';

export interface Login {
  name: string;
  password: string;
}

export interface ShareKeys {
  users?: string[];
  read_only_users?: string[];
  clients?: string[];
  read_only_clients?: string[];
  protocols?: Protocol[];
}

/** All of the configuration that says who may enter, and what each person types as the password. */
export interface Office {
  typed: Record<string, string>;
  /** Of the person's machine, on loopback. */
  readonly addresses: Readonly<Record<string, string>>;
  smb: Login[];
  webdav: Login[];
  guest: boolean;
  groups: Record<string, string[]>;
  /** `nfs.allowed_clients`. */
  allowed: string[];
  shares: Record<string, ShareKeys>;
}

const ignoringCase = (one: string, other: string): boolean => one.toLowerCase() === other.toLowerCase();
const exactly = (one: string, other: string): boolean => one === other;

/** What the server of the protocol takes the person for who logs in now. */
export function identityOf(office: Office, protocol: 'smb' | 'webdav', person: string): Identity {
  const isSame = protocol === 'smb' ? ignoringCase : exactly;
  const login = office[protocol].find(({ name }) => isSame(name, person));
  if (login === undefined) return protocol === 'smb' && office.guest ? 'guest' : 'stranger';
  return login.password === office.typed[person] ? 'user' : 'stranger';
}

/** What the person may do in the share who comes now. */
export function rightOf(office: Office, protocol: Protocol, person: string, share: string): Right {
  if (protocol === 'nfs') return rightOfMachine(office, person, share);
  return rightAs(office, { protocol, person, identity: identityOf(office, protocol, person) }, share);
}

export interface Known {
  readonly protocol: 'smb' | 'webdav';
  readonly person: string;
  readonly identity: Identity;
}

/**
 * The same for one who has logged in before. Another password leaves such a one alone, and the end of the account
 * does not.
 */
export function rightAs(office: Office, known: Known, share: string): Right {
  const { users, read_only_users: readers, protocols } = office.shares[share] ?? {};
  if (protocols && !protocols.includes(known.protocol)) return 'none';
  if (users === undefined && readers === undefined && known.identity === 'guest')
    return office.guest ? 'write' : 'none';
  return rightOfUser(office, known, { users, readers });
}

type Lists = Pick<Named, 'users' | 'readers'>;

function rightOfUser(
  office: Office,
  { protocol, person, identity }: Known,
  { users, readers }: Lists,
): Right {
  if (identity === 'guest') return 'none';
  const isSame = protocol === 'smb' ? ignoringCase : exactly;
  if (identity === 'stranger' || !office[protocol].some(({ name }) => isSame(name, person))) return 'none';
  const isNamed = users !== undefined || readers !== undefined;
  return isNamed ? rightOfNamed(office, person, { users, readers, isSame }) : 'write';
}

interface Named {
  readonly users: readonly string[] | undefined;
  readonly readers: readonly string[] | undefined;
  readonly isSame: typeof exactly;
}

function rightOfNamed(
  { groups }: Office,
  person: string,
  { isSame, readers = [], users = [] }: Named,
): Right {
  const isIn = (list: readonly string[], same: typeof exactly): boolean =>
    list
      .flatMap((name) => (name.startsWith('@') ? (groups[name.slice(1)] ?? []) : [name]))
      .some((name) => same(name, person));
  if (isIn(readers, isSame)) return 'read';
  if (!isIn(users, isSame)) return 'none';
  return isIn(readers, ignoringCase) ? 'read' : 'write';
}

function rightOfMachine(office: Office, person: string, share: string): Right {
  const { clients, read_only_clients: lookers, protocols } = office.shares[share] ?? {};
  if (protocols && !protocols.includes('nfs')) return 'none';
  const address = office.addresses[person] ?? '';
  const isIn = (list: readonly string[] = []): boolean => list.some((range) => holds(range, address));
  if (isIn(lookers)) return 'read';
  return isIn(clients ?? (lookers ? [] : office.allowed)) ? 'write' : 'none';
}

/** Whether a range such as `127.0.0.8/30` holds the address; both are of IPv4. */
function holds(range: string, address: string): boolean {
  const [network = '', bits = '32'] = range.split('/');
  const size = 2 ** (32 - Number(bits));
  const place = (text: string): number =>
    Math.floor(text.split('.').reduce((sum, part) => sum * 256 + Number(part), 0) / size);
  return place(network) === place(address);
}
