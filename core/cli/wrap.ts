/** Wraps text to a width in terminal columns. */

/** Hangul, CJK with kana, compatibility and full-width forms. */
const WIDE_LETTER =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]/;
/** Emoji, and the rarer Han characters. */
const WIDE_SYMBOL = /[\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/u;
const NO_WIDTH = /[\p{Mn}\p{Me}\p{Cf}]/u;

/** Columns that the text takes: wide (East Asian) characters count double. */
export function displayWidth(text: string): number {
  return [...text].reduce((sum, character) => sum + columnsOf(character), 0);
}

function columnsOf(character: string): number {
  if (NO_WIDTH.test(character)) return 0;
  return WIDE_LETTER.test(character) || WIDE_SYMBOL.test(character) ? 2 : 1;
}

/** Breaks at spaces. Words are never split, however long: a path or an address must stay in one piece. */
export function wrap(text: string, width: number): readonly string[] {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && displayWidth(last) + 1 + displayWidth(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Puts `head` before the first line, and indents the other lines to the first one's text. */
export function hang(head: string, text: string, width: number): string {
  const indent = displayWidth(head);
  return head + wrap(text, width - indent).join(`\n${' '.repeat(indent)}`);
}
