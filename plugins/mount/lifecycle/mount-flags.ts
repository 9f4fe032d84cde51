import type { ShareConfig } from 'mountkeeper';
import type { MountTools } from './tools.ts';

const REMOUNT_TIMEOUT_MS = 5_000;
/** Flags that fusermount3 gives every mount. */
const ALWAYS = ['nosuid', 'nodev'];

/**
 * A share's files come from a NAS: set-user-ID bits and device files must have no effect, and programs must
 * not be executed unless the share allows it. rclone cannot be told so; root remounts the living mount with
 * these flags, which no reader or writer notices. Without root the flags of fusermount3 apply. The mount is
 * used in any case; a failure is logged.
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
