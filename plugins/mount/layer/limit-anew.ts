/** A new rclone below a share has no bandwidth limit: it gets that of the former one, however often it is told. */
import { pause } from 'mountkeeper';
import type { Bandwidth, Mount } from 'mountkeeper';
import type { MountTools } from '../lifecycle/tools.ts';

const DEADLINE_MS = 5_000;
const AGAIN_MS = 1_000;

export interface LimitedRclone {
  readonly shareName: string;
  readonly lower: Pick<Mount, 'setBandwidth'>;
  readonly tools: Pick<MountTools, 'clock' | 'log'>;
  readonly end: AbortSignal;
}

/**
 * Whoever divides the bandwidth takes the share for limited, and tells it nothing before the limit changes. `limit`
 * is undefined as soon as nothing is to be told any more. Never rejects.
 */
export async function limitAnew(
  limit: () => Bandwidth | undefined,
  { shareName, lower, tools: { clock, log }, end }: LimitedRclone,
): Promise<void> {
  for (let wanted = limit(); wanted !== undefined && !end.aborted; wanted = limit()) {
    try {
      await lower.setBandwidth(wanted, clock.deadline(DEADLINE_MS, end));
      return;
    } catch (error) {
      log.warn({ share: shareName, err: error }, 'limit of bandwidth not told to the new rclone yet');
      await pause(clock, AGAIN_MS, end);
    }
  }
}
