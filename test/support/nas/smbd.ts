/** smbd as a NAS: a private instance with one login, which tells no case apart. */
import { execFileSync, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';

export interface SmbdPlace {
  /** Name → folder. */
  readonly shares: ReadonlyMap<string, string>;
  /** Where smbd keeps its own files. */
  readonly room: string;
  readonly port: number;
  readonly login: { readonly user: string; readonly password: string };
  /** File descriptor; without one nothing is noted. */
  readonly log?: number;
}

/** Resolves when it was started, which is before it listens. */
export async function startSmbd(place: SmbdPlace): Promise<ChildProcess> {
  const { room, login, log = 'ignore' } = place;
  const conf = join(room, 'smb.conf');
  await configure(conf, place);
  if (!existsSync(join(room, 'private/passdb.tdb')))
    execFileSync('smbpasswd', ['-c', conf, '-s', '-a', userInfo().username], {
      input: `${login.password}\n${login.password}\n`,
      stdio: ['pipe', 'ignore', 'inherit'],
    });
  // A group of its own: each client is served by a child.
  return spawn('/usr/sbin/smbd', ['--foreground', '--no-process-group', `--configfile=${conf}`], {
    stdio: ['ignore', log, log],
    detached: true,
  });
}

/** Kills it with all its children; resolves when it has ended. */
export async function endSmbd(child: ChildProcess): Promise<void> {
  const ended = once(child, 'exit');
  process.kill(-(child.pid ?? 0), 'SIGKILL');
  await ended;
}

async function configure(conf: string, { shares, room, port, login }: SmbdPlace): Promise<void> {
  const folders = ['private', 'lock', 'state', 'cache', 'pid', 'ncalrpc', 'log'];
  for (const folder of folders) await mkdir(join(room, folder), { recursive: true });
  const users = join(room, 'users.map');
  await writeFile(users, `${userInfo().username} = ${login.user}\n`);
  await writeFile(
    conf,
    [
      '[global]',
      'server role = standalone server',
      `smb ports = ${port}`,
      'interfaces = 127.0.0.1',
      'bind interfaces only = yes',
      'disable netbios = yes',
      'load printers = no',
      `username map = ${users}`,
      `private dir = ${room}/private`,
      `lock directory = ${room}/lock`,
      `state directory = ${room}/state`,
      `cache directory = ${room}/cache`,
      `pid directory = ${room}/pid`,
      `ncalrpc dir = ${room}/ncalrpc`,
      `passdb backend = tdbsam:${room}/private/passdb.tdb`,
      `log file = ${room}/log/log.smbd`,
      ...[...shares].flatMap(([name, path]) => [`[${name}]`, `path = ${path}`, 'read only = no']),
      '',
    ].join('\n'),
  );
}
