import type { ShareConfig } from 'mountkeeper';
import { inFolder } from './passage.ts';
import type { MountTools } from './tools.ts';

const REMOUNT_TIMEOUT_MS = 5_000;

/** Those that a mount of rclone alone has; nosuid and nodev are fusermount3's. */
export function flagsOf(exec: boolean): string {
  return `nosuid,nodev,${exec ? 'exec' : 'noexec'}`;
}

/** Whether programs on the share may be executed. */
export function mayRun(shareName: string, { config }: Pick<MountTools, 'config'>): boolean {
  return config().shares.some(({ name, exec }) => name === shareName && exec === true);
}

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
  const options = ['remount', 'bind', ...readOnly, flagsOf(exec === true)].join(',');
  const result = await tools.processes
    .run({
      ...inFolder(mountPoint, ['mount', '-i', '-n', '-c', '-o', options, 'none', '.']),
      timeoutMs: REMOUNT_TIMEOUT_MS,
    })
    .catch((error: unknown) => ({ code: -1, stderr: (error as Error).message }));
  if (result.code === 0) return;
  tools.log.warn(
    { share: name, mountPoint, reason: result.stderr.trim().split('\n')[0] },
    'programs on the share can be run: its mount could not be made noexec',
  );
}
