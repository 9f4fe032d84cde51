/** The state of the line index, and the part that its readers need. */

export const LINES_PER_MARK = 1024;

/**
 * What is known about one file up to `bytes`. Marks are only ever appended, so a reader may keep its state.
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
