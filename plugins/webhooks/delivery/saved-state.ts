import { readFile } from 'node:fs/promises';
import { createLatestQueue, undefinedWhenMissing, writeWhole } from 'mountkeeper';
import type { Logger } from 'mountkeeper';
import { NOTHING_CROSSED } from '../events/thresholds.ts';
import type { Crossed } from '../events/thresholds.ts';
import type { Delivery } from './delivery.ts';

/**
 * State that survives the daemon: deliveries and passed thresholds, in one file, so that the two always
 * match.
 */
export interface Remembered {
  readonly version: 1;
  readonly deliveries: readonly Delivery[];
  readonly crossed: Crossed;
}

/** Waits this long before it writes, so that a burst becomes one write. */
export interface Memory {
  readonly initial: Remembered;
  /** Called when it is time to write. */
  save(): void;
  /** Resolves when everything saved so far is on disk. */
  settled(): Promise<void>;
}

export async function readMemory(file: string, log: Logger): Promise<Remembered> {
  const nothing: Remembered = { version: 1, deliveries: [], crossed: NOTHING_CROSSED };
  try {
    const text = await readFile(file, 'utf8').catch(undefinedWhenMissing);
    if (text === undefined) return nothing;
    const read = JSON.parse(text) as Partial<Remembered>;
    if (read.version !== 1 || !Array.isArray(read.deliveries)) throw new Error('it is of another version');
    return {
      version: 1,
      deliveries: read.deliveries.filter(isDelivery),
      crossed: { ...NOTHING_CROSSED, ...read.crossed },
    };
  } catch (error) {
    log.error({ file, err: error }, 'deliveries of the former daemon cannot be read');
    return nothing;
  }
}

/** A damaged delivery must not keep the others from being sent. */
function isDelivery(one: Partial<Delivery> | null): one is Delivery {
  return (
    typeof one?.id === 'string' &&
    typeof one.event?.key === 'string' &&
    typeof one.createdAt === 'number' &&
    typeof one.nextAt === 'number' &&
    Array.isArray(one.attempts)
  );
}

/** Writes the latest state, one write at a time; changes during a write go into the next one. */
export function createSaver(
  file: string,
  state: () => Remembered,
  log: Logger,
): Pick<Memory, 'save' | 'settled'> {
  const writing = createLatestQueue<undefined>(async () => {
    await writeWhole(file, JSON.stringify(state())).catch((error: unknown) =>
      log.error({ file, err: error }, 'deliveries not saved'),
    );
  });
  let last = Promise.resolve();
  return {
    save: () => {
      last = writing.push(undefined);
    },
    // Not until nothing is written any more: somebody may never cease to change something.
    settled: () => last,
  };
}
