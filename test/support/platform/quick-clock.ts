/** Time that goes faster, beside processes whose own does not. */
import type { Clock } from '../../../core/contract/platform.ts';
import { createClock } from '../../../core/platform/clock.ts';

/** A clock of which a second takes `1 / times` of one. */
export function quickClock(times: number): Clock {
  const real = createClock();
  return {
    ...real,
    monotonic: () => real.monotonic() * times,
    after: (ms, fn, options) => real.after(ms / times, fn, options),
    sleep: (ms, signal) => real.sleep(ms / times, signal),
  };
}
