import { endsWithin } from 'mountkeeper';
import type { ManagedProcess, MountEntry } from 'mountkeeper';
import { deviceName } from '../rclone/arguments.ts';
import { clearMountPoint } from './mount-point.ts';
import type { MountPlace } from './mount-record.ts';
import type { MountTools } from './tools.ts';

const OWN_END_MS = 1_500;
const TERM_GRACE_MS = 3_000;
const KILLED_WITHIN_MS = 2_000;

/**
 * Unmounts a working mount: first removes it from its path, so that nothing new is opened, then rclone ends
 * by itself as soon as no file of it is open. If a file stays open (also in a copy of the mount in another
 * namespace), rclone is ended.
 */
export async function takeDown(
  process: ManagedProcess,
  { share, mountPoint }: MountPlace,
  tools: MountTools,
): Promise<void> {
  await clearMountPoint(mountPoint, tools, { share, active: 'detach' });
  if (!(await endsWithin(tools.clock, OWN_END_MS, process.exited)))
    await process.stop({ graceMs: TERM_GRACE_MS });
  await clearMountPoint(mountPoint, tools, { share, active: 'detach' });
}

/**
 * Ends a mount that hangs or has died. Calls that wait in it end with its process, or by aborting the FUSE
 * connection in the kernel where that does not help.
 */
export async function killMount(
  process: ManagedProcess,
  { share, mountPoint }: MountPlace,
  tools: MountTools,
): Promise<void> {
  const entry = await ownEntry({ share, mountPoint }, tools);
  if (process.isAlive()) {
    process.signal('SIGKILL');
    if (!(await endsWithin(tools.clock, KILLED_WITHIN_MS, process.exited)) && entry) {
      tools.log.warn(
        { mountPoint },
        'the mount process does not end; its connection is aborted in the kernel',
      );
      await tools.mountReader.abort(entry.deviceMinor);
    }
  }
  await clearMountPoint(mountPoint, tools, { share, active: 'detach' });
}

async function ownEntry(
  { share, mountPoint }: MountPlace,
  tools: MountTools,
): Promise<MountEntry | undefined> {
  const entries = await tools.mountTable.list();
  return entries.findLast((entry) => entry.mountPoint === mountPoint && entry.source === deviceName(share));
}
