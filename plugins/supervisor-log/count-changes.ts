import type { ShareStatus } from 'mountkeeper';

/**
 * While a share's counts keep changing, it gets one line per this interval; the last change is always
 * logged.
 */
const REST_MS = 5_000;

export type Count = 'dirtyCount' | 'erroredFiles' | 'errors';

export interface CountChange {
  readonly share: string;
  readonly count: Count;
  readonly from: number;
  readonly to: number;
}

interface Told {
  readonly value: number;
  readonly atMs: number;
}

/** Notices when a share's counts differ from those last logged. */
export class CountChanges {
  readonly #told = new Map<string, Told>();

  look(shares: readonly ShareStatus[], nowMs: number): readonly CountChange[] {
    const known = new Set(shares.flatMap(({ name }) => COUNTS.map((count) => `${count} ${name}`)));
    for (const gone of [...this.#told.keys()].filter((key) => !known.has(key))) this.#told.delete(gone);
    return shares.flatMap((share) => COUNTS.flatMap((count) => this.#compare(share, count, nowMs)));
  }

  #compare(share: ShareStatus, count: Count, nowMs: number): readonly CountChange[] {
    const key = `${count} ${share.name}`;
    const { value: from, atMs } = this.#told.get(key) ?? { value: 0, atMs: -Infinity };
    const to = share[count];
    if (to === from || nowMs - atMs < REST_MS) return [];
    this.#told.set(key, { value: to, atMs: nowMs });
    return [{ share: share.name, count, from, to }];
  }
}

const COUNTS: readonly Count[] = ['dirtyCount', 'erroredFiles', 'errors'];
