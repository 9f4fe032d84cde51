import type { ManagedProcess, MountEntry } from 'mountkeeper';
import { clearMountPoint } from './mount-point.ts';
import type { MountTools } from './tools.ts';

const OWN_END_MS = 1_500;
const TERM_GRACE_MS = 3_000;
const KILLED_WITHIN_MS = 2_000;

/**
 * Takes a working mount down: off the path first, so that nothing new comes in, then rclone ends by itself as
 * soon as nobody holds a file of it; one that is held (by a copy of the mount in another namespace, too) is
 * ended.
 */
export async function takeDown(
  process: ManagedProcess,
  mountPoint: string,
  tools: MountTools,
): Promise<void> {
  await clearMountPoint(mountPoint, tools, { active: 'detach' });
  if (!(await endsWithin(process, OWN_END_MS, tools))) await process.stop({ graceMs: TERM_GRACE_MS });
  await clearMountPoint(mountPoint, tools, { active: 'detach' });
}

/**
 * Ends a mount that hangs or has died. Calls that wait in it end with its process, or with the kernel's abort
 * where that does not help.
 */
export async function killMount(
  process: ManagedProcess,
  mountPoint: string,
  tools: MountTools,
): Promise<void> {
  const entry = await ownEntry(mountPoint, tools);
  if (process.isAlive()) {
    process.signal('SIGKILL');
    if (!(await endsWithin(process, KILLED_WITHIN_MS, tools)) && entry) {
      tools.log.warn({ mountPoint }, 'mount process does not end, its connection is aborted in the kernel');
      await tools.mountReader.abort(entry.deviceMinor);
    }
  }
  await clearMountPoint(mountPoint, tools, { active: 'detach' });
}

async function ownEntry(mountPoint: string, tools: MountTools): Promise<MountEntry | undefined> {
  const entries = await tools.mountTable.list();
  return entries.findLast((entry) => entry.mountPoint === mountPoint && entry.fsType.startsWith('fuse'));
}

async function endsWithin(process: ManagedProcess, ms: number, { clock }: MountTools): Promise<boolean> {
  const waiting = new AbortController();
  try {
    return await Promise.race([
      process.exited.then(() => true),
      clock.sleep(ms, waiting.signal).then(() => false),
    ]);
  } finally {
    waiting.abort();
  }
}
