import { createHash } from 'node:crypto';

/** Uids of the server's own users: far from the system's, and from those that Samba assigns itself. */
const FIRST_UID = 1_000_000;
const UIDS = 900_000;
/** The account for clients without a password. */
export const GUEST = 'nobody';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The daemon's own user, who owns the mounts, by its name in the private user list. */
export function ownerName({ uid }: Owner): string {
  return uid === 0 ? 'root' : 'mountkeeper';
}

/**
 * A user list in the format of /etc/passwd, used only by this server. A name keeps its uid when users are
 * added or removed.
 */
export function renderPasswd(users: readonly string[], owner: Owner): string {
  const numbers = userNumbers(users);
  const own = owner.uid === 0 ? [] : [entry('mountkeeper', owner.uid, owner.gid)];
  return [
    entry('root', 0, owner.uid === 0 ? owner.gid : 0),
    entry(GUEST, 65_534, 65_534),
    ...own,
    ...users.map((name) => entry(name, numbers.get(name) as number, 65_534)),
  ].join('');
}

export function renderGroup(owner: Owner): string {
  return `root:x:0:\nnogroup:x:65534:\n${owner.gid === 0 ? '' : `mountkeeper:x:${owner.gid}:\n`}`;
}

function entry(name: string, uid: number, gid: number): string {
  return `${name}:x:${uid}:${gid}:${name}:/nonexistent:/bin/false\n`;
}

export function userNumbers(users: readonly string[]): ReadonlyMap<string, number> {
  const numbers = new Map<string, number>();
  const taken = new Set<number>();
  for (const name of [...users].sort()) {
    let number = createHash('sha256').update(name.toLowerCase()).digest().readUInt32BE() % UIDS;
    while (taken.has(number)) number = (number + 1) % UIDS;
    taken.add(number);
    numbers.set(name, FIRST_UID + number);
  }
  return numbers;
}
