import { readFile } from 'node:fs/promises';
import { writeWhole } from 'mountkeeper';
import type { Logger } from 'mountkeeper';
import { NOTHING_CROSSED } from '../events/thresholds.ts';
import type { Crossed } from '../events/thresholds.ts';
import type { Delivery } from './delivery.ts';

/**
 * What outlives the daemon: deliveries and crossings in one file, so that neither is ever ahead of the other.
 */
export interface Remembered {
  readonly version: 1;
  readonly deliveries: readonly Delivery[];
  readonly crossed: Crossed;
}

/** Rests this long before it writes, so that a burst is one write. */
export interface Memory {
  readonly initial: Remembered;
  /** Reads what is to be kept when it gets to it. */
  save(): void;
  /** Everything saved so far is on the disk. */
  settled(): Promise<void>;
}

export async function readMemory(file: string, log: Logger): Promise<Remembered> {
  const text = await readFile(file, 'utf8').catch(() => undefined);
  const nothing: Remembered = { version: 1, deliveries: [], crossed: NOTHING_CROSSED };
  if (text === undefined) return nothing;
  try {
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

/** One that somebody has damaged must not keep the others from going out. */
function isDelivery(one: Partial<Delivery> | null): one is Delivery {
  return (
    typeof one?.id === 'string' &&
    typeof one.event?.key === 'string' &&
    typeof one.createdAt === 'number' &&
    typeof one.nextAt === 'number' &&
    Array.isArray(one.attempts)
  );
}

/** Writes the latest state, one writer at a time; what changes meanwhile is in the next write. */
export function createSaver(
  file: string,
  state: () => Remembered,
  log: Logger,
): Pick<Memory, 'save' | 'settled'> {
  let writing: Promise<void> | undefined;
  let isDue = false;
  const run = async (): Promise<void> => {
    while (isDue) {
      isDue = false;
      await writeWhole(file, JSON.stringify(state())).catch((error: unknown) =>
        log.error({ file, err: error }, 'deliveries not saved'),
      );
    }
    writing = undefined;
  };
  return {
    save: () => {
      isDue = true;
      writing ??= run();
    },
    settled: async () => {
      await writing;
    },
  };
}
