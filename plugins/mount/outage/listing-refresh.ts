import { join } from 'node:path';
import type { Awaitable, Clock, Logger } from 'mountkeeper';
import { readMeta } from '../cache/metadata.ts';
import type { CacheTrees } from '../cache/metadata.ts';
import type { RcClient } from '../rclone/remote-control.ts';

const LOOK_EVERY_MS = 200;
/** With few to look at, a reader should not meet a stale size at all. */
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
 * Files that were dirty when rclone started go up without its folder listings learning of it: until these
 * expire they show the remote's file as it was before, its size too, and readers get its bytes cut to that
 * size. So each listing is forgotten as soon as such a file is up. Both versions do this.
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
      // To the end of the line: with many, all get their turn.
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
