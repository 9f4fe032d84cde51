import { pause } from 'mountkeeper';
import { ENTER, inFolder } from './passage.ts';
import type { MountTools } from './tools.ts';

const REMOUNT_TIMEOUT_MS = 5_000;
/** Until the kernel is asked again, twice as long each time: a file may be open for writing for hours. */
const TRY_AGAIN_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;

/**
 * Moved to the path once it is read-only: before that nobody comes by it. Private until then, since below a shared
 * mount it would be a peer of what it is to cover, and cover itself once more with each move.
 */
const COVER = `${ENTER}
mount -i -n -c --bind --make-private . "$2" || exit 1
mount -i -n -c -o "remount,bind,ro,$3" none "$2" && mount -n -i -c --move "$2" . && exit 0
umount -i -l -- "$2"
exit 1`;

export interface MountToFreeze {
  readonly mountPoint: string;
  /** The mount's own, as `nosuid,nodev`, which it would lose otherwise. */
  readonly flags: string;
  /** A free folder in a private mount: from elsewhere nothing can be moved. */
  readonly staging: string;
}

/**
 * Freezes a mount: it refuses new writes, and its files can still be read. The kernel makes a file system read-only
 * only while no file of it is open for writing. Until then the share's own files lie over it, read-only: what is open
 * can be written to its end, and whoever comes by the path opens nothing for writing. Nothing else is ever shown in
 * their place: of an empty folder a backup that keeps in step would learn that all is deleted. It takes root.
 */
export async function freezeMount(
  mount: MountToFreeze,
  tools: MountTools,
  signal: AbortSignal,
): Promise<void> {
  const { mountPoint } = mount;
  const problem = await makeReadOnly(mount, tools);
  if (problem === undefined) return;
  if (process.getuid?.() !== 0)
    throw new Error(`the mount at ${mountPoint} cannot be made read-only: ${problem}`);
  // A former daemon may have covered it.
  if ((await tools.mountTable.find(mountPoint))?.readOnly !== true) await cover(mount, tools);
  tools.log.info({ mountPoint }, 'files are open for writing: new ones are refused until they are closed');
  void makeReadOnlyLater(mount, tools, signal);
}

async function makeReadOnly(
  { mountPoint, flags }: Omit<MountToFreeze, 'staging'>,
  { processes }: MountTools,
): Promise<string | undefined> {
  const command = ['mount', '-i', '-n', '-c', '-o', `remount,ro,${flags}`, 'none', '.'];
  const result = await processes
    .run({ ...inFolder(mountPoint, command), timeoutMs: REMOUNT_TIMEOUT_MS })
    .catch((error: unknown) => ({ code: -1, stderr: (error as Error).message }));
  return result.code === 0 ? undefined : (result.stderr.trim().split('\n')[0] ?? 'no reason given');
}

async function cover(
  { mountPoint, staging, flags }: MountToFreeze,
  { processes }: MountTools,
): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'sh',
    args: ['-c', COVER, 'sh', mountPoint, staging, flags],
    timeoutMs: REMOUNT_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`the mount at ${mountPoint} could not be covered: ${stderr.trim()}`);
}

/** Clients who came before the cover, and those who go by handles of files, do not come by the path any more. */
async function makeReadOnlyLater(
  mount: MountToFreeze,
  tools: MountTools,
  signal: AbortSignal,
): Promise<void> {
  for (let waitMs = TRY_AGAIN_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
    await pause(tools.clock, waitMs, signal);
    if (signal.aborted || (await makeReadOnly(mount, tools)) === undefined) return;
  }
}
