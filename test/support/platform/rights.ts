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
