/** Signs for characters that make a text look as another one: for the page, and the daemon that draws most of it. */

/** Those that turn its direction around, and control characters. */
const CONTROLS = /[\p{Bidi_Control}\p{Cc}\u2028\u2029]/gu;

/** As in "⟨U+202E⟩" or "␊", by which names of a NAS have them, too. */
export function signed(text: string): string {
  return text.replace(CONTROLS, sign);
}

export function sign(one: string): string {
  const code = one.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  return code === 0x7f ? '␡' : `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`;
}
