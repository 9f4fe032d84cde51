import { mkdir, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Outage } from './outage.ts';

/** By connection. */
export type Outages = Readonly<Record<string, Outage>>;

/** What a former daemon knew; a file that cannot be read tells nothing. */
export async function readOutages(file: string): Promise<Outages> {
  try {
    const read = JSON.parse(await readFile(file, 'utf8')) as Record<string, Partial<Outage>>;
    const whole = Object.entries(read).filter(([, outage]) => Number.isFinite(outage.since));
    return Object.fromEntries(whole.map(([connection, { since = 0, isTold }]) => [connection, { since, isTold: isTold === true }]));
  } catch {
    return {};
  }
}

/** Atomic. */
export async function writeOutages(file: string, outages: Outages): Promise<void> {
  await mkdir(dirname(file), { recursive: true, mode: 0o700 });
  const handle = await open(`${file}.tmp`, 'w', 0o600);
  try {
    await handle.writeFile(JSON.stringify(outages));
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(`${file}.tmp`, file);
}
