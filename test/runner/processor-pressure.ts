/** What the kernel knows of processes that wait for a processor (Documentation/accounting/psi.rst). */
import { readFileSync } from 'node:fs';

/** At this share of the time a limit of a few seconds is missed now and then, seen on two cores. */
export const MOST_WAITING = 0.75;

/** Of the last ten seconds, the share in which some process waited. 0 where the kernel does not say. */
export function waitingForProcessor(file = '/proc/pressure/cpu'): number {
  try {
    return Number(/^some avg10=([\d.]+)/m.exec(readFileSync(file, 'utf8'))?.[1] ?? 0) / 100;
  } catch {
    // Built without it, or switched off.
    return 0;
  }
}
