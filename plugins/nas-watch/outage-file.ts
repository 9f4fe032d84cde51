import { readFile } from 'node:fs/promises';
import { writeWhole } from 'mountkeeper';
import type { Outage } from './outage.ts';

/** By connection. */
export type Outages = Readonly<Record<string, Outage>>;

/** Outages that a former daemon knew; none when the file cannot be read. */
export async function readOutages(file: string): Promise<Outages> {
  try {
    const read = JSON.parse(await readFile(file, 'utf8')) as Record<string, Partial<Outage>>;
    const whole = Object.entries(read).filter(([, outage]) => Number.isFinite(outage.since));
    return Object.fromEntries(
      whole.map(([connection, { since = 0, isTold }]) => [connection, { since, isTold: isTold === true }]),
    );
  } catch {
    // No file, or a damaged one: outages are detected again, and reported once more.
    return {};
  }
}

/** Written atomically. */
export function writeOutages(file: string, outages: Outages): Promise<void> {
  return writeWhole(file, JSON.stringify(outages));
}
