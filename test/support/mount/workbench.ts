/** A mounter as the daemon wires it, without the daemon: for tests of mounts alone. */
import type { Config, Mount, ShareSpec, Uploader } from 'mountkeeper';
import { createClock } from '../../../core/platform/clock.ts';
import { createLogger } from '../../../core/platform/log/logger.ts';
import { createMountReader } from '../../../core/platform/mounts/mount-reader.ts';
import { createMountTable } from '../../../core/platform/mounts/mount-table.ts';
import { createProcesses } from '../../../core/platform/processes/processes.ts';
import { createConnectionMonitors } from '../../../plugins/probing/connection-monitor.ts';
import { createMounter } from '../../../plugins/mount/lifecycle/mounter.ts';
import type { RcloneMounter } from '../../../plugins/mount/lifecycle/mounter.ts';
import { schema } from '../../../plugins/mount/config.ts';
import type { MountConfig } from '../../../plugins/mount/config.ts';
import { createUploader } from '../../../plugins/uploads/uploader.ts';
import { createRcloneFinder } from '../../../plugins/mount/rclone/installed.ts';
import type { MountTools } from '../../../plugins/mount/lifecycle/tools.ts';
import { DEFAULT_PROOF } from '../../../plugins/uploads/proof/same-content.ts';
import { readFile } from 'node:fs/promises';
import { mkdirSync } from 'node:fs';
import type { Nas } from '../nas/nas.ts';
import type { Scratch } from '../platform/scratch-folder.ts';

export interface Workbench {
  readonly mounter: RcloneMounter;
  readonly tools: MountTools;
  spec(name: string, changes?: Partial<ShareSpec['share']>, port?: number): ShareSpec;
  mount(spec: ShareSpec): Promise<Mount>;
  log(): Promise<string>;
}

export interface WorkbenchTraits {
  readonly rclone: string;
  readonly nas: Nas;
  readonly mount?: Partial<MountConfig>;
  readonly cache?: Partial<Config['cache']>;
  readonly name?: string;
  /** Plays the plugin `uploads`; without it, that one brings files to the NAS. */
  readonly uploader?: Uploader;
}

/** Makes a mounter with its own folders and settings. Its mounts end with the scratch folder. */
export function createWorkbench(
  scratch: Scratch,
  { rclone, nas, mount = {}, cache = {}, name = 'bench', uploader }: WorkbenchTraits,
): Workbench {
  const room = scratch.path(name);
  mkdirSync(`${room}/state`, { recursive: true, mode: 0o700 });
  const clock = createClock();
  const connections = createConnectionMonitors(clock);
  const logFile = `${room}/log`;
  const logger = createLogger({ file: logFile, level: 'debug', json: false });
  const processes = createProcesses({
    stateDir: `${room}/state`,
    clock,
    log: logger.log,
  });
  const mountReader = createMountReader({ clock, log: logger.log });
  const section = schema.validate({
    root: `${room}/mnt`,
    rclone,
    write_back: '1s',
    ...mount,
  }).value as MountConfig;
  const config = {
    mount: section,
    cache: {
      dir: `${room}/cache`,
      max_size: '0',
      max_age: '30d',
      min_free_space: '100M',
      ...cache,
    },
    shares: [],
    connections: [],
  } as unknown as Config;
  const own = createUploader({
    clock,
    processes,
    log: logger.log,
    notify: () => Promise.resolve(),
    proofOf: () => DEFAULT_PROOF,
  });
  const tools: MountTools = {
    clock,
    log: logger.log,
    processes,
    mountTable: createMountTable(),
    mountReader,
    secrets: {
      resolve: (secret) => (typeof secret === 'string' ? secret : ''),
    },
    paths: { stateDir: `${room}/state`, packageDir: '/' },
    finder: createRcloneFinder(processes),
    config: () => config,
    connections: () => connections,
    onSent: () => undefined,
    uploader: () => uploader ?? own,
  };
  const mounter = createMounter(tools);
  scratch.defer(async () => {
    await mounter.unlock();
    mountReader.close();
    processes.releaseAll();
    logger.close();
  });
  return {
    mounter,
    tools,
    spec: (share, changes = {}, port) => ({
      share: {
        name: share,
        connection: 'nas',
        remote_path: '',
        mount_point: `${room}/mnt/${share}`,
        read_only: false,
        protocols: [],
        ...changes,
      },
      connection: nas.connection('nas', port) as ShareSpec['connection'],
    }),
    mount: (spec) => mounter.mount(spec, clock.deadline(30_000)),
    log: () => readFile(logFile, 'utf8').catch(() => ''),
  };
}
