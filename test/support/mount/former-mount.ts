/** What a former version left: an rclone that takes the writes of a share into its own cache. */
import { mkdir, writeFile } from 'node:fs/promises';
import { createClock } from '../../../core/platform/clock.ts';
import { createProcesses } from '../../../core/platform/processes/processes.ts';
import { remoteConfigText } from '../../../plugins/mount/options/remote-config.ts';
import type { Daemon } from '../daemon/daemon.ts';
import { currentRclone } from '../nas/rclone-binaries.ts';
import type { Nas } from '../nas/nas.ts';
import { collectLog } from '../platform/collected-log.ts';
import { freePort } from '../platform/free-port.ts';
import { isMounted } from '../platform/mounted-file-systems.ts';
import { until } from '../platform/wait.ts';

export interface FormerTraits {
  readonly share: string;
  readonly remotePath: string;
  /** How long a closed file waits. */
  readonly writeBack: string;
}

/** Started and recorded as a former daemon did; resolves with its process id once it is mounted. */
export async function startFormerMount(
  daemon: Daemon,
  nas: Nas,
  { share, remotePath, writeBack }: FormerTraits,
): Promise<number> {
  const [cacheDir, mountPoint] = [`${daemon.cacheDir}/${share}`, daemon.mountPoint(share)];
  const configFile = `${daemon.stateDir}/former.conf`;
  for (const folder of [daemon.stateDir, cacheDir]) await mkdir(folder, { recursive: true, mode: 0o700 });
  await mkdir(mountPoint, { recursive: true });
  const secrets = { resolve: (secret: unknown) => String(secret) };
  const connection = nas.connection('nas') as Parameters<typeof remoteConfigText>[0];
  await writeFile(configFile, remoteConfigText(connection, { secrets, providers: undefined }));
  const port = await freePort();
  const processes = createProcesses({
    stateDir: daemon.stateDir,
    clock: createClock(),
    log: collectLog().log,
  });
  const { pid } = await processes.start({
    key: `mount/${share}`,
    command: currentRclone(),
    args: [
      'mount',
      `nas:${remotePath}`,
      mountPoint,
      `--config=${configFile}`,
      `--cache-dir=${cacheDir}`,
      `--devname=mountkeeper:${share}`,
      '--vfs-cache-mode=full',
      `--vfs-write-back=${writeBack}`,
      '--vfs-fast-fingerprint',
      '--rc',
      `--rc-addr=127.0.0.1:${port}`,
      '--allow-other',
    ],
    env: { RCLONE_RC_USER: 'mountkeeper', RCLONE_RC_PASS: 'former' },
    fingerprint: 'of a former version',
    notes: {
      share,
      mountPoint,
      identity: 'of a former version',
      rcPort: port,
      rcUser: 'mountkeeper',
      rcPassword: 'former',
      cacheDir,
      fs: `nas:${remotePath}`,
    },
  });
  await until('the former mount', () => isMounted(mountPoint), {
    timeoutMs: 30_000,
  });
  processes.releaseAll();
  return pid;
}
