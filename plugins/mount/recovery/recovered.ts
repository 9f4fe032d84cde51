import { mkdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Clock } from 'mountkeeper';

/** Folder with content that a person has to look at, by the time at which it was kept. */
export const RECOVERED = 'recovered';

let lastMs = 0;

/** A free path; its folders are created. */
export async function recoveredPath(
  path: string,
  { cacheDir, clock }: { readonly cacheDir: string; readonly clock: Clock },
): Promise<string> {
  lastMs = Math.max(clock.now(), lastMs + 1);
  const kept = join(cacheDir, RECOVERED, new Date(lastMs).toISOString().replaceAll(/[:.]/g, '-'), path);
  await mkdir(dirname(kept), { recursive: true, mode: 0o700 });
  return kept;
}
