/** Why something failed, for a log, a status or a terminal. */
import { sentence } from '../platform/log/thrown.ts';
import { oneLine } from './one-line.ts';

/** Characters; a path in it may be long. */
const LONGEST_REASON = 1_000;

/** On one line of at most `most` characters, with its causes. Never throws, whatever was thrown. */
export function reasonOf(thrown: unknown, most = LONGEST_REASON): string {
  return oneLine(sentence(thrown), most);
}
