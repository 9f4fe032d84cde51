/** What the line index knows of a file, and what its reader needs of that. */

export const LINES_PER_MARK = 1024;

/**
 * What is known of one file, up to `bytes`. Marks are only ever added, so that a reader may keep the state it
 * got.
 */
export interface IndexState {
  readonly identity: string;
  readonly marks: number[];
  readonly bytes: number;
  readonly newlines: number;
  /** True when the indexed part ends inside a line. */
  readonly isLastOpen: boolean;
  readonly fingerprint: Buffer;
}

export function totalLines(state: IndexState): number {
  return state.newlines + (state.isLastOpen ? 1 : 0);
}
