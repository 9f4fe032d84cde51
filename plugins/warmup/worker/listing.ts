import { open } from 'node:fs/promises';
import type { CacheView } from 'mountkeeper';
import type { Order } from '../job-description.ts';
import type { Counters } from '../scheduler/counters.ts';
import { AwayError, stillThere } from './unreachable.ts';
import type { Patience } from './unreachable.ts';

/** Folders that are listed in parallel. */
const AT_ONCE = 8;

/** One file to be fetched, as a line of the list. */
export type ListLine = readonly [path: string, bytes: number, modifiedMs: number];

export interface ListingParts {
  readonly view: CacheView;
  readonly counters: Counters;
  readonly patience: Patience;
}

/**
 * Lists the folder and everything below it, asking the remote directly and not through the mount, and
 * writes down files that are not cached. Keeps one folder per parallel listing in memory. Throws when the
 * top folder cannot be read or the remote stops answering.
 */
export async function listAll(order: Order, parts: ListingParts): Promise<void> {
  const list = await open(order.listFile, 'w', 0o600);
  try {
    let isFirst = true;
    await eachFolder(order.path, async (folder) => {
      const isTop = isFirst;
      isFirst = false;
      try {
        return await listOne(folder, order, {
          ...parts,
          write: async (text) => {
            await list.appendFile(text);
          },
        });
      } catch (error) {
        if (!(await stillThere(parts.view, parts.patience))) throw new AwayError((error as Error).message);
        if (isTop) throw error;
        parts.counters.failed(folder, (error as Error).message);
        return [];
      }
    });
  } finally {
    await list.close();
  }
}

async function listOne(
  folder: string,
  order: Order,
  { view, counters, write }: ListingParts & { write(text: string): Promise<void> },
): Promise<readonly string[]> {
  const { folders, files } = await view.list(folder);
  const lines: string[] = [];
  for (const { name, bytes, modifiedMs, isCached } of files) {
    if (order.changedSinceMs !== null && modifiedMs < order.changedSinceMs) continue;
    counters.found(bytes, isCached);
    if (!isCached) lines.push(JSON.stringify([below(folder, name), bytes, modifiedMs] satisfies ListLine));
  }
  if (lines.length > 0 && !order.isDryRun) {
    await write(`${lines.join('\n')}\n`);
  }
  return folders.map((name) => below(folder, name));
}

function below(folder: string, name: string): string {
  return folder === '' ? name : `${folder}/${name}`;
}

/** Visits a folder and those that each visit returns, some in parallel. The first error ends it. */
async function eachFolder(top: string, visit: (folder: string) => Promise<readonly string[]>): Promise<void> {
  const waiting = [top];
  const running = new Set<Promise<void>>();
  const start = (folder: string): void => {
    const visiting = visit(folder)
      .then((found) => void waiting.push(...[...found].reverse()))
      .finally(() => running.delete(visiting));
    // Heard of by the race below.
    visiting.catch(() => undefined);
    running.add(visiting);
  };
  for (;;) {
    while (running.size < AT_ONCE && waiting.length > 0) start(waiting.pop() as string);
    if (running.size === 0) return;
    await Promise.race(running);
  }
}
