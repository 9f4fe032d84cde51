/**
 * Characters that turn the direction of text around, shown by a sign: with them a file that ends in ".exe" looks as one
 * that ends in ".jpg". Only what people read: addresses and the values of forms stay.
 */
const CONTROL = /\p{Bidi_Control}/u;
const CONTROLS = /\p{Bidi_Control}/gu;
/** Values are always quoted; a "<" in a text or a value is escaped. */
const TAGS = /(<(?:[^"<>]|"[^"]*")*>)/;
const READ = /\b(aria-label|hx-confirm|title)="[^"]*"/g;

/** As in "⟨U+202E⟩". */
export function signed(text: string): string {
  return text.replace(
    CONTROLS,
    (one) => `⟨U+${one.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  );
}

/** Of markup that was rendered here. */
export function withSigns(markup: string): string {
  if (!CONTROL.test(markup)) return markup;
  // Tags are at odd places.
  const parts = markup.split(TAGS);
  return parts
    .map((part, index) => {
      if (index % 2 === 1) return part.replace(READ, signed);
      // What a text field holds is sent back as it is.
      return parts[index - 1]?.startsWith('<textarea') === true ? part : signed(part);
    })
    .join('');
}
