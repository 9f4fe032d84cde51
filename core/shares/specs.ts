/** Shares together with their connections, from the configuration. */
import type { Config } from '../contract/config.ts';
import type { Mount, ShareSpec } from '../contract/mount.ts';

/** Every share with its connection; validation refuses a share without one. */
export function specsOf(config: Config): readonly ShareSpec[] {
  const connections = new Map(config.connections.map((connection) => [connection.name, connection]));
  return config.shares.flatMap((share) => {
    const connection = connections.get(share.connection);
    return connection ? [{ share, connection }] : [];
  });
}

/** A spec that is sufficient for a runner that only drains and unmounts. */
export function unconfiguredSpec(mount: Mount): ShareSpec {
  return {
    share: {
      name: mount.shareName,
      connection: '',
      remote_path: '',
      mount_point: mount.plan.mountPoint,
      read_only: false,
      protocols: [],
    },
    connection: { name: '', type: '', options: {} },
  };
}
