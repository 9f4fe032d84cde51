/** Whether all servers keep out whom the running document does not let in. */
import type { Exporter } from '../../contract/exporter.ts';
import type { Clock, Logger } from '../../contract/platform.ts';
import { timeBox } from '../../platform/deadline.ts';
import { reasonOf } from '../reason-of.ts';

/** A request over HTTP waits for it, so it is short. */
const LONGEST_MS = 5_000;
const AGAIN_MS = 50;

/** A protocol by which shares may be shown; without its exporter while its plugin is just being replaced. */
export interface Guarding {
  readonly protocol: string;
  readonly exporter: Pick<Exporter, 'enforce'> | undefined;
}

export interface EnforcementOptions {
  readonly clock: Clock;
  readonly log: Pick<Logger, 'warn'>;
  /** All that there are now. */
  readonly guarding: () => readonly Guarding[];
}

/**
 * Asks each until it says yes, whichever of its exporters is up at that moment: what one has told its server holds for
 * the next one, too. Resolves with the protocols that have not said it in time.
 */
export async function enforced({ clock, guarding, log }: EnforcementOptions): Promise<readonly string[]> {
  const end = clock.monotonic() + LONGEST_MS;
  const sure = new Set<string>();
  const reasons = new Map<string, string>();
  const ask = async ({ protocol, exporter }: Guarding): Promise<void> => {
    try {
      if (!exporter) throw new Error('its plugin is just being replaced');
      await timeBox(clock, Math.max(1, end - clock.monotonic()), Promise.resolve(exporter.enforce?.()));
      sure.add(protocol);
    } catch (error) {
      reasons.set(protocol, reasonOf(error));
    }
  };
  for (;;) {
    const open = guarding().filter(({ protocol }) => !sure.has(protocol));
    await Promise.all(open.map(ask));
    const left = open.map(({ protocol }) => protocol).filter((protocol) => !sure.has(protocol));
    if (left.length === 0) return [];
    if (clock.monotonic() >= end) {
      for (const protocol of left)
        log.warn(
          { protocol, reason: reasons.get(protocol) },
          'a server may still let in who may not come in any more',
        );
      return left;
    }
    await clock.sleep(AGAIN_MS);
  }
}
