/** How a command is told that it is to end. */
import type { Clock } from '../contract/platform.ts';

/** Time to end what it has started and to leave nothing behind. */
const ENDING_MS = 10_000;

/**
 * Aborted by ctrl-C, SIGTERM or SIGHUP. By the latter two the process ends of that signal, as whoever sent it expects:
 * when the command is over, or when its time is. The same signal a second time ends it at once.
 */
export function interruption(clock: Clock): AbortSignal {
  const interrupt = new AbortController();
  const abort = (): void => interrupt.abort(new Error('interrupted'));
  process.once('SIGINT', abort);
  for (const signal of ['SIGTERM', 'SIGHUP'] as const)
    process.once(signal, () => {
      abort();
      const end = (): void => void process.kill(process.pid, signal);
      process.once('exit', end);
      clock.after(ENDING_MS, end);
    });
  return interrupt.signal;
}
