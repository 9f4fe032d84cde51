/**
 * Characters that make a text look as another one, shown by a sign. Those that turn its direction around: with them a
 * file that ends in ".exe" looks as one that ends in ".jpg". And control characters: with line breaks in its name a
 * file writes sentences of its own into a question. Only what people read: addresses and the values of forms stay.
 */
import { sign, signed } from '../client/signs.ts';

/** In a text of markup, tabs and line breaks are the template's own, and browsers show them as a space. */
const CONTROLS_OF_MARKUP = /(?![\t\n\r])[\p{Bidi_Control}\p{Cc}\u2028\u2029]/gu;
/** Whether anything may have to be done. */
const SUSPECT =
  /(?![\t\n\r])[\p{Bidi_Control}\p{Cc}\u2028\u2029]|<bdi\b[^<>]*>[^<]*[\t\n\r]|="[^"]*[\t\n\r]/u;
/** Values are always quoted; a "<" in a text or a value is escaped. */
const TAGS = /(<(?:[^"<>]|"[^"]*")*>)/;
const READ = /\b(aria-label|hx-confirm|title)="[^"]*"/g;

/** Names, and what servers say, stand in `<bdi>`; what a text field holds is sent back as it is. */
function signedText(text: string, tag = ''): string {
  if (tag.startsWith('<textarea')) return text;
  return tag.startsWith('<bdi') ? signed(text) : text.replace(CONTROLS_OF_MARKUP, sign);
}

/** Of markup that was rendered here. */
export function withSigns(markup: string): string {
  if (!SUSPECT.test(markup)) return markup;
  // Tags are at odd places.
  const parts = markup.split(TAGS);
  return parts
    .map((part, index) => (index % 2 === 1 ? part.replace(READ, signed) : signedText(part, parts[index - 1])))
    .join('');
}
