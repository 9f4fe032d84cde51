import type { ClearUp } from './clear-up.ts';
import type { Journal } from './journal.ts';
import type { SmallBodies } from './small-bodies.ts';

/** What uploads need, of all shares. */
export interface PutTools {
  readonly journal: Journal;
  readonly spool: () => { readonly folder: string; readonly minFreeBytes: number };
  readonly clearUp: ClearUp;
  readonly small: SmallBodies;
}
