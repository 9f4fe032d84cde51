/** Ends npm while it unpacks more than a plugin can be: what a package says of its size is its author's. */
import { lstat, opendir } from 'node:fs/promises';
import path from 'node:path';
import { undefinedWhenMissing } from '../../../platform/files/missing.ts';
import { pause } from '../../../platform/deadline.ts';
import { MOST_BYTES, MOST_FILES } from '../../../plugins/discovery/plugin-files.ts';
import type { Npm } from './npm.ts';

/** Beside the plugin's files there may be some that are no part of it, such as those of build tools. */
const SPARE = 2;
const LOOK_EVERY_MS = 250;

/** Rejects as `run` does, or with a sentence once the project is too large; npm has been ended then. */
export async function withLimits<T>(npm: Npm, run: (npm: Npm) => Promise<T>): Promise<T> {
  const tooLarge = new AbortController();
  const over = new AbortController();
  const watch = async (): Promise<void> => {
    while (!over.signal.aborted) {
      await pause(npm.clock, LOOK_EVERY_MS, over.signal);
      if (await isTooLarge(npm.project)) return tooLarge.abort(new Error(sentence()));
    }
  };
  // A project that cannot be looked at is judged once npm is done.
  const watching = watch().catch(() => undefined);
  try {
    return await run({ ...npm, signal: AbortSignal.any([npm.signal, tooLarge.signal]) });
  } finally {
    over.abort();
    await watching;
  }
}

async function isTooLarge(project: string): Promise<boolean> {
  let [files, bytes] = [0, 0];
  for await (const size of sizesIn(project)) {
    files += 1;
    bytes += size;
    if (files > SPARE * MOST_FILES || bytes > SPARE * MOST_BYTES) return true;
  }
  return false;
}

/** Of everything below `folder`, in bytes. What npm takes away meanwhile is passed over. */
async function* sizesIn(folder: string): AsyncGenerator<number> {
  const entries = await opendir(folder).catch(undefinedWhenMissing);
  for await (const entry of entries ?? []) {
    const file = path.join(folder, entry.name);
    yield (await lstat(file).catch(undefinedWhenMissing))?.size ?? 0;
    if (entry.isDirectory()) yield* sizesIn(file);
  }
}

function sentence(): string {
  const mebibytes = (SPARE * MOST_BYTES) / 1024 ** 2;
  return (
    `it is too large for a plugin: npm was ended when it had unpacked more than ${String(mebibytes)} MiB ` +
    `or ${(SPARE * MOST_FILES).toLocaleString('en')} files`
  );
}
