/** Line ends of a text that somebody wrote on Windows. Browsers, and what is inserted here, have those of Unix. */

/** True where each line ends as on Windows. */
export function isOfWindows(text: string): boolean {
  return text.includes('\r\n') && !/(?<!\r)\n/.test(text);
}

export function unixLines(text: string): string {
  return text.replaceAll('\r\n', '\n');
}

/** With the line ends of `model`, unless it has some of its own. */
export function linesLike(model: string, text: string): string {
  return isOfWindows(model) && !text.includes('\r\n') ? text.replaceAll('\n', '\r\n') : text;
}
