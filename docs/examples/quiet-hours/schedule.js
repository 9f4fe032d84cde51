/** Whether a moment lies between two times that are given as cron expressions. */
import { Cron } from 'croner';

/**
 * Quiet from each moment of `from` to the next one of `to`: it is quiet now when `to` comes before `from` does
 * again. Midnight and the change of the clocks need no thought of their own. Throws for a wrong expression or time
 * zone; an empty time zone is the machine's.
 */
export function quietTime({ from, to, timezone }) {
  const options = { mode: '5-part', ...(timezone !== '' && { timezone }) };
  const [begin, end] = [new Cron(from, options), new Cron(to, options)];
  const msAfter = (cron, at) => cron.nextRun(at)?.getTime() ?? Infinity;
  // An expression or a time zone that makes no sense is found out now.
  msAfter(begin, new Date());
  return (nowMs) => {
    const now = new Date(nowMs);
    return msAfter(end, now) < msAfter(begin, now);
  };
}
