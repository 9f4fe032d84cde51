import { endsWithin } from 'mountkeeper';
import type { MountingTools } from '../lifecycle/tools.ts';
import { asideFolders } from '../cache/identity.ts';
import { layerPaths } from '../layer/paths.ts';
import { isWrittenTo } from '../layer/upper/still-open.ts';
import { forgetBoot } from './boot-note.ts';

/** How long an unmount waits for the disk of the cache. */
export const WRITE_OUT_MS = 1_000;

/**
 * Call it when the overlay is off its path and rclone below it has ended. The note of the boot stays where a program
 * still writes through a mount that it holds: after a power cut the next start must look for what did not reach the
 * disk. A note that stays for nothing makes it look at more than it must. `untilMs`: by the monotonic clock; later it
 * stays, too, since the share may be mounted again. Rejects when who writes cannot be found out.
 */
export async function forgetWhenStill(
  cacheDir: string,
  { untilMs }: { readonly untilMs: number },
  { clock, processes, writeOut }: Pick<MountingTools, 'clock' | 'processes' | 'writeOut'>,
): Promise<void> {
  const layers = [cacheDir, ...(await asideFolders(cacheDir))].map(layerPaths);
  const isStill = !(await isWrittenTo(
    layers.flatMap(({ upper, aside }) => [upper, aside]),
    processes,
  ));
  let isOnDisk = false;
  // Begun after the look: whatever the last writer left is on the disk then.
  await endsWithin(
    clock,
    WRITE_OUT_MS,
    writeOut.settle(cacheDir).then((isDone) => (isOnDisk = isDone)),
  );
  if (isStill && isOnDisk && clock.monotonic() < untilMs) await forgetBoot(cacheDir);
}
