import { createHash } from 'node:crypto';

/** Numbers of the server's own users: far from the system's, and from those that Samba gives out itself. */
const FIRST_UID = 1_000_000;
const UIDS = 900_000;
/** Who comes without a password. */
export const GUEST = 'nobody';

export interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** The daemon's own user, to whom the mounts belong, by the name it has in the private user list. */
export function ownerName({ uid }: Owner): string {
  return uid === 0 ? 'root' : 'mountkeeper';
}

/**
 * A user list in the form of /etc/passwd for the server alone. A name keeps its number, whoever comes and
 * goes.
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
