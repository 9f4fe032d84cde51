/** Characters that make a text look like another, or like several lines: never as they are in a log or a terminal. */

/**
 * Controls, separators of lines, spaces without a width, and what turns the direction of writing. Those that join or
 * part letters (U+200C, U+200D) stay: Persian and emoji are written with them.
 */
export const UNPRINTABLE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]/g;

/** The text with such characters as `\uXXXX`, as JSON has them. */
export function escapeUnprintable(text: string): string {
  return text.replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
