/** Sentences of others, as they may stand in a log, a status or a terminal. */
import { stripVTControlCharacters } from 'node:util';
import { UNPRINTABLE } from '../platform/log/unprintable.ts';

/** Characters; a sentence that somebody is to read needs no more. */
export const LONGEST_SENTENCE = 300;

/** The text on one line, without escape sequences, and with "…" where it was longer than `most` characters. */
export function oneLine(text: string, most = LONGEST_SENTENCE): string {
  // What is left out may be as long as what is kept; the rest is not looked at.
  const line = stripVTControlCharacters(text.slice(0, 8 * most))
    .replace(UNPRINTABLE, ' ')
    .replace(/\s+/g, ' ')
    .trim();
  return line.length <= most && text.length <= 8 * most ? line : `${line.slice(0, most - 1).trimEnd()}…`;
}
