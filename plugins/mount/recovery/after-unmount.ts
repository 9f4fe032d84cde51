/**
 * What an unmount leaves in the cache for others to read. The share's lock has gone with its bindfs by then, and
 * another daemon may have the cache: all is looked at and noted by who has it alone.
 */
import type { Uploader } from 'mountkeeper';
import { asSoleUser } from '../lifecycle/sole-use.ts';
import type { MountingTools } from '../lifecycle/tools.ts';
import { forgetWhenStill } from './forget-when-still.ts';
import { layerPaths } from '../layer/paths.ts';
import { markAllSent } from '../layer/sent-mark.ts';

/**
 * Call it when the overlay is off its path, and the uploader and rclone have ended. Never rejects: a mark that is
 * missing, and a note that stays, make others look at more than they must. `untilMs`: by the monotonic clock; nothing
 * is noted later.
 */
export async function noteUnmounted(
  { shareName, cacheDir }: { readonly shareName: string; readonly cacheDir: string },
  { uploader, untilMs }: { readonly uploader: Uploader; readonly untilMs: number },
  tools: Pick<MountingTools, 'clock' | 'log' | 'processes' | 'writeOut'>,
): Promise<void> {
  const { clock, log, processes } = tools;
  // The share may be mounted again, and must not find its cache taken.
  if (clock.monotonic() >= untilMs) return;
  const note = async (): Promise<void> => {
    // Without it a purge of the package names what lies there, which is safe.
    await markAllSent(layerPaths(cacheDir), { uploader, untilMs }, tools).catch((err: unknown) =>
      log.warn({ share: shareName, err }, 'that all is on the remote could not be noted'),
    );
    // After that: what it brings back into the upper folder is on the disk then, too.
    await forgetWhenStill(cacheDir, { untilMs }, tools).catch((err: unknown) =>
      log.warn({ share: shareName, err }, 'the cache is looked through after the next boot'),
    );
  };
  await asSoleUser(cacheDir, processes, note).catch((err: unknown) =>
    log.warn({ share: shareName, err }, 'what is left in the cache after the unmount could not be noted'),
  );
}
