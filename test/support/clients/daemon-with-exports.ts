/** One daemon that shows its shares over every protocol, and what its clients must know to come in. */
import { Daemon } from '../daemon/daemon.ts';
import type { DaemonTraits } from '../daemon/daemon.ts';
import { freePort } from '../platform/free-port.ts';
import { allProcesses } from '../platform/processes.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';
import { CLIENTS } from './protocols.ts';
import type { Access, Client } from './protocols.ts';

const USER = { name: 'alice', password: 's3cret Wort' };

/** A running daemon, and what its clients need to connect. */
export interface DaemonWithExports {
  readonly daemon: Daemon;
  readonly access: Access;
}

/** Starts a daemon that exports over SMB, NFS and WebDAV on free ports. Rejects when it does not answer. */
export async function startWithExports(scratch: Scratch, traits: DaemonTraits): Promise<DaemonWithExports> {
  const ports = { smb: await freePort(), nfs: await freePort(), webdav: await freePort() };
  const access: Access = { scratch, ports, user: `${USER.name}%${USER.password}` };
  const sections = Object.fromEntries(
    CLIENTS.map(({ protocol }) => [
      protocol,
      {
        enabled: true,
        port: ports[protocol],
        ...(protocol === 'nfs' ? { allowed_clients: ['127.0.0.1'] } : { users: [USER] }),
      },
    ]),
  );
  const daemon = await Daemon.create(scratch, { ...traits, sections: { ...sections, ...traits.sections } });
  await daemon.start();
  return { daemon, access };
}

/** Until every client finds the share; the milliseconds that each took from now. */
export async function shownToAll(
  access: Access,
  share: string,
  timeoutMs = 30_000,
): Promise<ReadonlyMap<Client['label'], number>> {
  const start = performance.now();
  return new Map(
    await Promise.all(
      CLIENTS.map(async (client) => {
        await until(`${client.label} shows ${share}`, () => client.isShown(access, share), {
          timeoutMs,
          everyMs: 100,
        });
        return [client.label, Math.round(performance.now() - start)] as const;
      }),
    ),
  );
}

/** The servers' own processes, and with them their children and helpers. */
export async function serversOf(
  daemon: Daemon,
): Promise<
  ReadonlyMap<Client['label'], { readonly pids: readonly number[]; readonly family: readonly number[] }>
> {
  const own = (await allProcesses()).filter(({ command }) => command.includes(daemon.stateDir));
  return new Map(
    CLIENTS.flatMap(({ label, protocol, isServer }) => {
      // What serves WebDAV beside a mount belongs to the share, not to the server.
      const family = own.filter(
        ({ command, args }) => command.includes(`${daemon.stateDir}/${protocol}`) && !args.includes('serve'),
      );
      // Samba's own children have the same arguments as their parent.
      const pids = family.filter(({ args }) => isServer(args)).map(({ pid }) => pid);
      return pids.length === 0
        ? []
        : [[label, { pids: pids.slice(0, 1), family: family.map(({ pid }) => pid) }] as const];
    }),
  );
}
