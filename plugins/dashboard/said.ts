/**
 * What Mountkeeper's own parts say in English (reasons, notices), in the reader's language. `locales/said/` has a
 * file for each language: the English sentence, with a name in braces for each value, and its translation. Values may
 * be such sentences themselves. What is not found there stays as it is; so do the words of servers and of rclone.
 */
import { readTexts } from 'mountkeeper';
import type { Catalogue } from './languages.ts';

interface Sentence {
  /** What stands between its values; one more than those. */
  readonly fixed: readonly string[];
  readonly names: readonly string[];
  readonly translated: string;
}

/** Longer texts are left alone: nobody wrote them by hand. */
const LONGEST = 1_000;
const MOST_PARTS = 8;
const MOST_KEPT = 1_000;
const DEEPEST = 3;
const VALUE = /\{(\w+)\}/g;

/** By language; English needs none. */
export const SAID: Readonly<Record<string, Catalogue>> = readTexts(import.meta.url, 'said');

function sentenceOf([english, translated]: readonly [string, string]): Sentence {
  const names = [...english.matchAll(VALUE)].map(([, name = '']) => name);
  return { fixed: english.split(/\{\w+\}/), names, translated };
}

/**
 * The values, each as short as it can be; undefined for another sentence. Without a pattern: servers choose what some
 * texts hold, and one made of several values could take minutes.
 */
function valuesIn(text: string, { fixed }: Sentence): readonly string[] | undefined {
  const [first = '', ...others] = fixed;
  const last = others.pop();
  if (last === undefined) return text === first ? [] : undefined;
  if (!text.startsWith(first) || !text.endsWith(last)) return undefined;
  const values: string[] = [];
  let from = first.length;
  for (const part of others) {
    const at = text.indexOf(part, from + 1);
    if (at === -1) return undefined;
    values.push(text.slice(from, at));
    from = at + part.length;
  }
  const rest = text.slice(from, text.length - last.length);
  return from + last.length < text.length ? [...values, rest] : undefined;
}

/** Behind a sentence there may be a server's own words, in parentheses: where those may begin. */
function endsOf(text: string): readonly number[] {
  const ends = [text.length];
  if (!text.endsWith(')')) return ends;
  for (let at = text.indexOf(' ('); at !== -1 && ends.length < MOST_PARTS; at = text.indexOf(' (', at + 1))
    ends.push(at);
  return ends;
}

class Translator {
  readonly #sentences: readonly Sentence[];
  readonly #kept = new Map<string, string>();

  constructor(catalogue: Catalogue) {
    this.#sentences = Object.entries(catalogue).map(sentenceOf);
  }

  text(text: string): string {
    const known = this.#kept.get(text);
    if (known !== undefined) return known;
    if (this.#kept.size >= MOST_KEPT) this.#kept.clear();
    const translated = this.#all(text, 0);
    this.#kept.set(text, translated);
    return translated;
  }

  /** Several sentences may stand side by side, with semicolons between them; some have one inside. */
  #all(text: string, depth: number): string {
    const parts = text.split('; ');
    if (text.length > LONGEST || parts.length > MOST_PARTS || depth > DEEPEST) return text;
    const said: string[] = [];
    for (let from = 0; from < parts.length;) {
      const { translated, to } = this.#longest(parts, from, depth);
      said.push(translated);
      from = to;
    }
    return said.join('; ');
  }

  #longest(
    parts: readonly string[],
    from: number,
    depth: number,
  ): { readonly translated: string; readonly to: number } {
    for (let to = parts.length; to > from; to -= 1) {
      const translated = this.#one(parts.slice(from, to).join('; '), depth);
      if (translated !== undefined) return { translated, to };
    }
    return { translated: parts[from] ?? '', to: from + 1 };
  }

  #one(text: string, depth: number): string | undefined {
    for (const end of endsOf(text)) {
      const translated = this.#sentence(text.slice(0, end), depth);
      if (translated === undefined) continue;
      return end === text.length ? translated : `${translated}（${text.slice(end + 2, -1)}）`;
    }
    return undefined;
  }

  #sentence(text: string, depth: number): string | undefined {
    for (const sentence of this.#sentences) {
      const found = valuesIn(text, sentence);
      if (!found) continue;
      const values = new Map(sentence.names.map((name, at) => [name, this.#all(found[at] ?? '', depth + 1)]));
      return sentence.translated.replaceAll(VALUE, (_, name: string) => values.get(name) ?? '');
    }
    return undefined;
  }
}

const translators = new Map(
  Object.entries(SAID).map(([language, catalogue]) => [language, new Translator(catalogue)]),
);

export function saidIn(language: string, text: string): string {
  return translators.get(language)?.text(text) ?? text;
}
