import type { ClearUp } from './clear-up.ts';
import type { Journal } from './journal.ts';
import type { KeptBodies } from './kept.ts';

/** What uploads need, of all shares. */
export interface PutTools {
  readonly journal: Journal;
  readonly spool: () => { readonly folder: string; readonly minFreeBytes: number };
  readonly clearUp: ClearUp;
  readonly kept: KeptBodies;
}
