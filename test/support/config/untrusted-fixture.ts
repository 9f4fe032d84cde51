/** Where hostile documents are tried: the traps, the document of the file, and rclone's words. */
import { execFileSync } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Traps } from './untrusted-values.ts';

/** Makes the files and folders that a hostile document tries to run, read or change. */
export async function layTraps(folder: string): Promise<Traps> {
  const traps = {
    program: join(folder, 'trap.sh'),
    bait: join(folder, 'bait'),
    secret: join(folder, 'secret'),
    awsFile: join(folder, 'aws'),
  };
  for (const one of ['bait', 'marks', 'mnt']) await mkdir(join(folder, one));
  await writeFile(traps.program, `#!/bin/sh\n: > ${join(folder, 'marks')}/$$\n`);
  await chmod(traps.program, 0o755);
  await writeFile(traps.secret, 'known to nobody', { mode: 0o600 });
  await writeFile(join(folder, 'kept'), 'pass of the file', { mode: 0o600 });
  await writeFile(traps.awsFile, `[default]\ncredential_process = ${traps.program}\n`);
  const there = join(traps.bait, 'there');
  await writeFile(there, 'bait');
  execFileSync('touch', ['-d', '@1', there]);
  return traps;
}

/**
 * One connection of each sort: open to changes, with a reference, with a key, on this disk, over another
 * remote.
 */
export function documentOf(folder: string, rclone: string): Record<string, unknown> {
  return {
    mount: { root: join(folder, 'mnt'), rclone },
    cache: { dir: join(folder, 'cache') },
    supervisor: { state_dir: join(folder, 'state') },
    log: { file: join(folder, 'log') },
    connections: [
      { name: 'nas', type: 'sftp', options: { host: '127.0.0.1', port: 1, user: 'u', pass: 'p' } },
      {
        name: 'kept',
        type: 'webdav',
        options: { url: 'http://127.0.0.1:1/', user: 'u', pass: { file: join(folder, 'kept') } },
      },
      {
        name: 'keyed',
        type: 'sftp',
        options: {
          host: '127.0.0.1',
          port: 1,
          key_file: join(folder, 'kept'),
          known_hosts_file: join(folder, 'kept'),
        },
      },
      { name: 'disk', type: 'local', options: {} },
      { name: 'wrap', type: 'alias', options: { remote: join(folder, 'mnt') } },
    ],
    shares: [
      ...['nas', 'kept', 'keyed', 'wrap'].map((name) => ({ name, connection: name, remote_path: 'p' })),
      {
        name: 'disk',
        connection: 'disk',
        remote_path: join(folder, 'mnt'),
        read_only: true,
        mount_point: join(folder, 'elsewhere'),
      },
    ],
    notifications: { webhook_url: 'http://127.0.0.1:1/hook', webhook_secret: { env: 'WORD' } },
    plugins: { absent: { enabled: true, command: 'x' } },
  };
}

/** All types of remotes and all options that this rclone knows. Throws when it cannot be run. */
export function rcloneWords(command: string): {
  readonly options: readonly string[];
  readonly types: readonly string[];
} {
  const told = execFileSync(command, ['config', 'providers', '--config', ''], {
    encoding: 'utf8',
    maxBuffer: 64 * 1_048_576,
  });
  const providers = JSON.parse(told) as { Name: string; Options: { Name: string }[] | null }[];
  return {
    types: providers.map(({ Name }) => Name),
    options: [...new Set(providers.flatMap(({ Options }) => (Options ?? []).map(({ Name }) => Name)))],
  };
}
