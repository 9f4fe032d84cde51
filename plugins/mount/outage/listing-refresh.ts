import { join } from 'node:path';
import type { Awaitable, Clock, Logger } from 'mountkeeper';
import { readMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import type { RcClient } from '../rclone/control/remote-control.ts';

const LOOK_EVERY_MS = 200;
/** With only a few files, readers should not see an outdated size at all. */
const FEW = 32;
const LOOK_AT_FEW_EVERY_MS = 50;
const LOOKED_AT_ONCE = 200;
const CALL_TIMEOUT_MS = 5_000;

export interface Recovered {
  readonly rc: RcClient;
  readonly fs: string;
  readonly trees: CacheTrees;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Files that were dirty when rclone started are uploaded without updating its folder listings: until these
 * expire, they show the former remote file with its size, and readers get content that is cut to that size.
 * So the listing is forgotten as soon as such a file is uploaded. All versions of rclone have this fault.
 */
export async function freshenListings(
  dirty: Awaitable<readonly string[]>,
  recovered: Recovered,
  signal: AbortSignal,
): Promise<void> {
  const waiting = new Set(await dirty);
  while (waiting.size > 0) {
    await recovered.clock.sleep(waiting.size <= FEW ? LOOK_AT_FEW_EVERY_MS : LOOK_EVERY_MS, signal);
    const up: string[] = [];
    for (const path of [...waiting].slice(0, LOOKED_AT_ONCE)) {
      const meta = await readMeta(join(recovered.trees.meta, path));
      // To the end of the queue, so that all files get their turn.
      waiting.delete(path);
      if (meta === 'torn' || meta?.Dirty === true) waiting.add(path);
      else up.push(path);
    }
    if (up.length > 0) await forget(up, recovered, signal);
  }
}

async function forget(
  paths: readonly string[],
  { rc, fs, clock, log }: Recovered,
  signal: AbortSignal,
): Promise<void> {
  const root = fs.slice(fs.indexOf(':') + 1).replaceAll(/^\/+|(?<!\/)\/+$/g, '');
  const files = paths.map(
    (path, index) =>
      [
        `file${index}`,
        root !== '' && path.startsWith(`${root}/`) ? path.slice(root.length + 1) : path,
      ] as const,
  );
  await rc
    .call('vfs/forget', { fs, ...Object.fromEntries(files) }, clock.deadline(CALL_TIMEOUT_MS, signal))
    .catch((error: unknown) => log.debug({ err: error }, 'listings not forgotten'));
}
