/**
 * Keeps the last plan: of ten thousand entries, planning costs more than the scan, and a look at an upper folder in
 * which nothing has happened would plan the same again.
 */
import { planUpper } from './plan.ts';
import type { Conditions, Plan } from './plan-types.ts';
import type { Records } from './records.ts';
import type { Scan } from './scan.ts';

interface Kept {
  readonly entries: Scan['entries'];
  readonly version: number;
  readonly key: unknown;
  readonly isWhole: boolean;
  readonly often: Conditions['often'];
  readonly plan: Plan;
}

export class PlanMemo {
  #kept: Kept | undefined;
  #newest: { readonly entries: Scan['entries']; readonly changedNs: bigint } | undefined;

  /**
   * As `planUpper`. Conditions with the same key must answer alike for each entry of this scan, but for `isWhole` and
   * `often`. Nobody may change what is returned.
   */
  plan(scan: Scan, records: Records, conditions: Conditions, key: unknown): Plan {
    const { isWhole, often } = conditions;
    const now = { entries: scan.entries, version: records.version, key, isWhole, often };
    const kept = this.#kept;
    if (kept !== undefined && isSame(kept, now)) return kept.plan;
    const plan = planUpper(scan, records, conditions);
    this.#kept = { ...now, plan };
    return plan;
  }

  /** When the youngest of these entries was changed, in nanoseconds since the epoch. */
  newest({ entries }: Scan): bigint {
    if (this.#newest?.entries !== entries) {
      let changedNs = 0n;
      for (const entry of entries.values()) if (entry.changedNs > changedNs) ({ changedNs } = entry);
      this.#newest = { entries, changedNs };
    }
    return this.#newest.changedNs;
  }
}

function isSame(a: Omit<Kept, 'plan'>, b: Omit<Kept, 'plan'>): boolean {
  return (['entries', 'version', 'key', 'isWhole', 'often'] as const).every((name) => a[name] === b[name]);
}
