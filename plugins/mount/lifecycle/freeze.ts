import { pause } from 'mountkeeper';
import { FREEZE_SOURCE } from './mount-point.ts';
import { inFolder } from './passage.ts';
import type { MountTools } from './tools.ts';

const REMOUNT_TIMEOUT_MS = 5_000;
const TRY_AGAIN_MS = 1_000;

/**
 * Freezes a mount: it refuses new writes. The kernel can make it read-only only when no file is open for
 * writing; until then an empty read-only file system covers it: open files can be finished, and nothing new
 * is opened. Both need root; without root only the end of the drain stops writers. `flags`: the mount's own, as
 * `nosuid,nodev`, which it would lose otherwise.
 */
export async function freezeMount(
  { mountPoint, flags }: { readonly mountPoint: string; readonly flags: string },
  tools: MountTools,
  signal: AbortSignal,
): Promise<void> {
  const problem = await makeReadOnly(mountPoint, flags, tools);
  if (problem === undefined) return;
  if (process.getuid?.() !== 0)
    throw new Error(`the mount at ${mountPoint} cannot be made read-only: ${problem}`);
  await cover(mountPoint, tools);
  void uncoverWhenReadOnly(mountPoint, tools, signal);
}

async function makeReadOnly(
  mountPoint: string,
  flags: string,
  { processes }: MountTools,
): Promise<string | undefined> {
  const command = ['mount', '-i', '-n', '-c', '-o', `remount,ro,${flags}`, 'none', '.'];
  const result = await processes
    .run({ ...inFolder(mountPoint, command), timeoutMs: REMOUNT_TIMEOUT_MS })
    .catch((error: unknown) => ({ code: -1, stderr: (error as Error).message }));
  return result.code === 0 ? undefined : (result.stderr.trim().split('\n')[0] ?? 'no reason given');
}

async function cover(mountPoint: string, { processes, mountTable }: MountTools): Promise<void> {
  if ((await mountTable.find(mountPoint))?.source === FREEZE_SOURCE) return;
  const command = ['mount', '-i', '-n', '-c', '-t', 'tmpfs', '-o', 'ro,size=4k,mode=555', FREEZE_SOURCE, '.'];
  const { code, stderr } = await processes.run({
    ...inFolder(mountPoint, command),
    timeoutMs: REMOUNT_TIMEOUT_MS,
  });
  if (code !== 0)
    throw new Error(`the mount at ${mountPoint} could not be taken off the air: ${stderr.trim()}`);
}

/**
 * The covered mount cannot be reached by its path, so it stays covered until it is read-only or unmounted.
 * A function of its own, so that it is logged once.
 */
async function uncoverWhenReadOnly(
  mountPoint: string,
  { clock, log, mountTable }: MountTools,
  signal: AbortSignal,
): Promise<void> {
  log.info(
    { mountPoint },
    'files are open for writing, the share is taken off the air until they are closed',
  );
  while (!signal.aborted && (await mountTable.find(mountPoint))?.source === FREEZE_SOURCE) {
    await pause(clock, TRY_AGAIN_MS, signal);
  }
}
