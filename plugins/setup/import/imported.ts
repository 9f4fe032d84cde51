/** What an import found: a connection and a share of it, not yet in the configuration. */

export interface Imported {
  readonly type: string;
  /** In clear, as text. */
  readonly options: ReadonlyMap<string, string>;
  readonly remotePath: string;
  readonly readOnly: boolean;
  /** Proposed for the connection and the share. */
  readonly name: string;
  /** What could not be taken over, in sentences. */
  readonly notes: readonly string[];
  /** What makes it less safe than it was, in sentences: nobody takes it over without having been asked. */
  readonly doubts: readonly string[];
}

const CONTROL = /[\x00-\x1f\x7f]/;
const LONGEST_VALUE = 65_536;

/** Throws a sentence. Secrets may have lines, as keys have; nothing else may, and no secret stands in the sentence. */
export function assertPlain(what: string, value: string, { mayHaveLines = false } = {}): void {
  if (value.length > LONGEST_VALUE) throw new Error(`${what} is longer than ${LONGEST_VALUE} characters`);
  const rest = mayHaveLines ? value.replaceAll(/[\r\n\t]/g, '') : value;
  if (CONTROL.test(rest)) throw new Error(`${what} has control characters in it`);
}
