/**
 * What Mountkeeper's own parts say in English (reasons, notices), in the reader's language. `locales/said/` has a
 * file for each language: the English sentence, with a name in braces for each value, and its translation. Values may
 * be such sentences themselves. What is not found there stays as it is; so do the words of servers and of rclone.
 */
import { readdirSync, readFileSync } from 'node:fs';

type Catalogue = Readonly<Record<string, string>>;

interface Sentence {
  readonly pattern: RegExp;
  readonly names: readonly string[];
  readonly translated: string;
  /** A text without this is another one; found faster than by the pattern. */
  readonly mark: string;
}

const FOLDER = new URL('./locales/said/', import.meta.url);
/** Longer texts are left alone: nobody wrote them by hand. */
const LONGEST = 1_000;
const MOST_PARTS = 12;
const MOST_KEPT = 1_000;
const DEEPEST = 3;
const VALUE = /\{(\w+)\}/g;

function readCatalogues(): Readonly<Record<string, Catalogue>> {
  return Object.fromEntries(
    readdirSync(FOLDER).map((file) => [
      file.replace('.json', ''),
      JSON.parse(readFileSync(new URL(file, FOLDER), 'utf8')) as Catalogue,
    ]),
  );
}

/** By language; English needs none. */
export const SAID: Readonly<Record<string, Catalogue>> = readCatalogues();

function escaped(text: string): string {
  return text.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`);
}

/** Behind a sentence there may be a server's own words, in parentheses. */
function sentenceOf([english, translated]: readonly [string, string]): Sentence {
  const fixed = english.split(/\{\w+\}/);
  return {
    pattern: new RegExp(`^${fixed.map(escaped).join('(.+?)')}(?: \\((.+)\\))?$`, 's'),
    names: [...english.matchAll(VALUE)].map(([, name = '']) => name),
    translated,
    mark: fixed.reduce((longest, part) => (part.length > longest.length ? part : longest), ''),
  };
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
    for (const { pattern, names, translated, mark } of this.#sentences) {
      const found = text.includes(mark) ? pattern.exec(text) : null;
      if (!found) continue;
      const values = new Map(names.map((name, at) => [name, this.#all(found[at + 1] ?? '', depth + 1)]));
      const words = found[names.length + 1];
      const filled = translated.replaceAll(VALUE, (_, name: string) => values.get(name) ?? '');
      return words === undefined ? filled : `${filled}（${words}）`;
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
