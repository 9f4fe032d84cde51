import type { ShareConfig } from 'mountkeeper';
import type { MountTools } from './tools.ts';

const REMOUNT_TIMEOUT_MS = 5_000;
/** What fusermount3 gives every mount. */
const ALWAYS = ['nosuid', 'nodev'];

/**
 * What lies on a share comes from a NAS: no set-user-ID bit and no device file counts there, and unless the
 * share asks otherwise no program is run from it. Neither rclone can be told so; root sets it at the living
 * mount, which no reader or writer notices. Other users have what fusermount3 gives. The mount serves in
 * any case: that it could not be narrowed is in the log.
 */
export async function narrowMount(
  share: Pick<ShareConfig, 'name' | 'mount_point' | 'exec'>,
  tools: MountTools,
): Promise<void> {
  if (process.getuid?.() !== 0) return;
  const { name, mount_point: mountPoint, exec } = share;
  const readOnly = (await tools.mountTable.find(mountPoint))?.readOnly === true ? ['ro'] : [];
  const options = ['remount', 'bind', ...readOnly, ...ALWAYS, exec === true ? 'exec' : 'noexec'].join(',');
  const result = await tools.processes
    .run({ command: 'mount', args: ['-i', '-o', options, mountPoint], timeoutMs: REMOUNT_TIMEOUT_MS })
    .catch((error: unknown) => ({ code: -1, stderr: (error as Error).message }));
  if (result.code === 0) return;
  tools.log.warn(
    { share: name, mountPoint, reason: result.stderr.trim().split('\n')[0] },
    'programs on the share can be run: its mount could not be made noexec',
  );
}
