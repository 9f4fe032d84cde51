/** What a process may do, as the kernel says. */
import { readFile } from 'node:fs/promises';
import { serviceUser } from 'mountkeeper';

export interface Rights {
  /** The same number four times: real, effective, saved, of files. */
  readonly users: string;
  readonly groups: string;
  /** Inheritable, permitted, effective, bounding, ambient; 16 digits each. */
  readonly capabilities: readonly string[];
  /** No program that it starts has more than itself. */
  readonly hasNoNewPrivileges: boolean;
}

export async function rightsOf(pid: number): Promise<Rights> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  const field = (name: string): string =>
    new RegExp(`^${name}:(.*)$`, 'm').exec(status)?.[1]?.trim().replaceAll('\t', ' ') ?? 'nothing';
  return {
    users: field('Uid'),
    groups: `${field('Gid')} and ${field('Groups')}`,
    capabilities: ['Inh', 'Prm', 'Eff', 'Bnd', 'Amb'].map((name) => field(`Cap${name}`)),
    hasNoNewPrivileges: field('NoNewPrivs') === '1',
  };
}

const { uid, gid } = (await serviceUser()) ?? { uid: Number.NaN, gid: Number.NaN };

/** Of a process that faces the network, where the daemon is root. The set-up makes its user. */
export const SERVICE_RIGHTS: Rights = {
  users: [uid, uid, uid, uid].join(' '),
  groups: `${[gid, gid, gid, gid].join(' ')} and `,
  capabilities: Array.from({ length: 5 }, () => '0'.repeat(16)),
  hasNoNewPrivileges: true,
};

/** Bits of linux/capability.h. */
const BITS = {
  chown: 0,
  dac_override: 1,
  dac_read_search: 2,
  fowner: 3,
  setgid: 6,
  setuid: 7,
  net_bind_service: 10,
  sys_ptrace: 19,
  sys_admin: 21,
  sys_resource: 24,
} as const;

/** Of root's process that has these capabilities and can get no others. */
export function rootsRights(...capabilities: readonly (keyof typeof BITS)[]): Pick<Rights, RootsField> {
  const mask = capabilities.reduce((sum, name) => sum | (1n << BigInt(BITS[name])), 0n);
  const kept = mask.toString(16).padStart(16, '0');
  const none = '0'.repeat(16);
  return { users: '0 0 0 0', capabilities: [none, kept, kept, kept, none], hasNoNewPrivileges: true };
}

type RootsField = 'users' | 'capabilities' | 'hasNoNewPrivileges';

/** The same fields of a process. */
export async function rightsOfRoots(pid: number): Promise<Pick<Rights, RootsField>> {
  const { users, capabilities, hasNoNewPrivileges } = await rightsOf(pid);
  return { users, capabilities, hasNoNewPrivileges };
}
