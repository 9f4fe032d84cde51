/**
 * The servers that show the demo's shares: what they are told, whether they serve, and what to try on them.
 */
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort, MAY_WRITE } from './room.ts';

const USER = 'demo';
const SHARE = '照片 Photos';
const PICTURE = '2024 春节/全家福 family.png';
const UP_MS = 10_000;
const LOOK_MS = 100;

export interface DemoServers {
  readonly ports: { readonly smb: number; readonly nfs: number; readonly webdav: number };
  readonly password: string;
}

interface Status {
  readonly smbd_running: boolean;
  readonly nfs_exported: boolean;
  readonly webdav_running: boolean;
}

interface Notice {
  readonly level: string;
  readonly message: string;
}

interface Protocol {
  readonly label: string;
  readonly flag: keyof Status;
  readonly where: (servers: DemoServers) => string;
  readonly client: string;
  /** Package that brings the client. */
  readonly from: string;
  readonly toTry: (servers: DemoServers, copy: string) => readonly string[];
}

const dav = ({ ports }: DemoServers, path: string): string =>
  `http://127.0.0.1:${ports.webdav}/${path.split('/').map(encodeURIComponent).join('/')}`;
const nfs = ({ ports }: DemoServers, path: string): string =>
  `'nfs://127.0.0.1/${path}?version=4&nfsport=${ports.nfs}'`;

const PROTOCOLS: readonly Protocol[] = [
  {
    label: 'SMB',
    flag: 'smbd_running',
    client: 'smbclient',
    from: 'smbclient',
    where: ({ ports, password }) => `smb://127.0.0.1:${ports.smb}   user ${USER}, password ${password}`,
    toTry: ({ ports, password }, copy) =>
      ['ls', `get "${PICTURE.replaceAll('/', '\\')}" "${copy}"`].map(
        (order) => `smbclient '//127.0.0.1/${SHARE}' -p ${ports.smb} -U '${USER}%${password}' -c '${order}'`,
      ),
  },
  {
    label: 'NFS',
    flag: 'nfs_exported',
    client: 'nfs-ls',
    from: 'libnfs-utils',
    where: ({ ports }) =>
      `nfs://127.0.0.1:${ports.nfs}/   version 4; as root: mount -t nfs4 -o port=${ports.nfs} 127.0.0.1:/ /mnt`,
    toTry: (servers, copy) => [
      `nfs-ls ${nfs(servers, SHARE)}`,
      `nfs-cp ${nfs(servers, `${SHARE}/${PICTURE}`)} '${copy}'`,
    ],
  },
  {
    label: 'WebDAV',
    flag: 'webdav_running',
    client: 'curl',
    from: 'curl',
    where: (servers) => `${dav(servers, '')}   user ${USER}, password ${servers.password}`,
    toTry: (servers, copy) => [
      `curl -sS -u ${USER}:${servers.password} -X PROPFIND -H 'Depth: 1' ${dav(servers, `${SHARE}/`)}`,
      `curl -sS -u ${USER}:${servers.password} -o '${copy}' ${dav(servers, `${SHARE}/${PICTURE}`)}`,
      ...(MAY_WRITE
        ? [
            `curl -sS -u ${USER}:${servers.password} -T '${copy}' ${dav(servers, `${SHARE}/copied over WebDAV.png`)}`,
          ]
        : []),
    ],
  },
];

export async function planServers(): Promise<DemoServers> {
  return {
    ports: { smb: await freePort(), nfs: await freePort(), webdav: await freePort() },
    password: randomBytes(6).toString('hex'),
  };
}

/** Their sections of the configuration; all listen on loopback alone. */
export function serverSections({ ports, password }: DemoServers): string {
  const user = `users = [{ name = "${USER}", password = "${password}" }]`;
  return `[smb]
enabled = true
port = ${ports.smb}
${user}

[nfs]
enabled = true
port = ${ports.nfs}
allowed_clients = ["127.0.0.1"]

[webdav]
enabled = true
port = ${ports.webdav}
${user}
`;
}

async function ask<T>(url: string): Promise<T> {
  return (await (await fetch(url, { signal: AbortSignal.timeout(5_000) })).json()) as T;
}

/** What stands in the way of a server, in the daemon's own words. */
function complaint(notices: readonly Notice[], { label }: Protocol): string | undefined {
  return notices
    .find(({ level, message }) => level === 'error' && message.startsWith(`${label}: `))
    ?.message.slice(label.length + 2);
}

/** What it says of single shares, which may be over in a moment. */
function complaintOfShare(notices: readonly Notice[], { label }: Protocol): string | undefined {
  return notices.find(({ level, message }) => level === 'error' && message.includes(` over ${label}`))
    ?.message;
}

/**
 * Lines that say where the shares are shown, or why not, and lines to try; waits until each server is up or
 * says why it is not.
 */
export async function describeServers(
  url: string,
  servers: DemoServers,
  folder: string,
): Promise<{ readonly where: string[]; readonly toTry: string[] }> {
  const deadline = performance.now() + UP_MS;
  for (;;) {
    const [status, notices] = await Promise.all([
      ask<Status>(`${url}/api/status`),
      ask<readonly Notice[]>(`${url}/api/notices`),
    ]);
    const isSettled = PROTOCOLS.every((one) => status[one.flag] || complaint(notices, one) !== undefined);
    if (!isSettled && performance.now() < deadline) {
      await sleep(LOOK_MS);
      continue;
    }
    const shown = PROTOCOLS.filter(({ flag }) => status[flag]);
    return {
      where: PROTOCOLS.map(
        (one) =>
          one.label.padEnd(7) +
          (status[one.flag]
            ? one.where(servers)
            : absent(complaint(notices, one) ?? complaintOfShare(notices, one))),
      ),
      toTry: shown.flatMap((one) =>
        isInstalled(one.client)
          ? one.toTry(servers, join(folder, `copied-over-${one.label}.png`))
          : [`# over ${one.label}: install ${one.from} for ${one.client}`],
      ),
    };
  }
}

function absent(reason: string | undefined): string {
  return reason === undefined
    ? 'does not serve yet; `doctor`, below, may know why'
    : `is not shown: ${reason}`;
}

function isInstalled(command: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, command)));
}
