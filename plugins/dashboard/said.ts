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
/** What values of some names are: "{count} files" is no folder "my files", "{key} is required" no whole sentence. */
const FORMS: ReadonlyMap<string, RegExp> = new Map([
  ['count', /^\d+$/],
  ['key', /^(?:[^\s"]|"(?:[^"\\]|\\.)*")+$/],
]);
/** A value of this name is what is wrong with a configuration. */
const NESTED = 'problems';
/** Between sentences that stand side by side; a catalogue may say how its language writes it. */
const BETWEEN = '; ';

type Catalogues = Readonly<Record<string, Catalogue>>;

/** By language; English needs none. */
export const SAID: Catalogues = readTexts(import.meta.url, 'said');
/** What the doctor finds. Of its own: some of its titles are words that may be names elsewhere. */
export const FOUND: Catalogues = readTexts(import.meta.url, 'doctor');
/** What is wrong with a configuration, and what a change of it does. Of its own: Joi's sentences are short. */
export const SETTINGS: Catalogues = readTexts(import.meta.url, 'settings');
/** Why a plugin is not up. */
export const FAILURES: Catalogues = readTexts(import.meta.url, 'failures');
/** What plugins say of themselves. */
export const DESCRIBED: Catalogues = readTexts(import.meta.url, 'plugins');

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

interface Said {
  readonly text: string;
  readonly isTranslated: boolean;
  /** The number of the next part. */
  readonly to: number;
}

class Translator {
  readonly #sentences: readonly Sentence[];
  readonly #between: string;
  readonly #problems: (text: string, depth: number) => string;
  readonly #kept = new Map<string, string>();

  /** `nested`: for what is wrong with a configuration. */
  constructor(catalogue: Catalogue, nested?: Translator) {
    const { [BETWEEN]: between = BETWEEN, ...sentences } = catalogue;
    this.#sentences = Object.entries(sentences).map(sentenceOf);
    this.#between = between;
    this.#problems = (text, depth) => (nested ?? this).#all(text, depth);
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
    const said: Said[] = [];
    for (let from = 0; from < parts.length; from = said.at(-1)?.to ?? parts.length)
      said.push(this.#longest(parts, from, depth));
    return said.map((one, at) => this.#joint(said[at - 1], one) + one.text).join('');
  }

  /** Words of others keep what stood before and behind them. */
  #joint(before: Said | undefined, after: Said): string {
    if (!before) return '';
    return before.isTranslated && after.isTranslated ? this.#between : BETWEEN;
  }

  #longest(parts: readonly string[], from: number, depth: number): Said {
    for (let to = parts.length; to > from; to -= 1) {
      const text = this.#one(parts.slice(from, to).join(BETWEEN), depth);
      if (text !== undefined) return { text, isTranslated: true, to };
    }
    return { text: parts[from] ?? '', isTranslated: false, to: from + 1 };
  }

  #one(text: string, depth: number): string | undefined {
    for (const end of endsOf(text)) {
      const translated = this.#sentence(text.slice(0, end), depth);
      if (translated === undefined) continue;
      if (end === text.length) return translated;
      return `${translated}（${this.#all(text.slice(end + 2, -1), depth + 1)}）`;
    }
    return undefined;
  }

  #sentence(text: string, depth: number): string | undefined {
    for (const sentence of this.#sentences) {
      const found = valuesIn(text, sentence);
      if (!found?.every((value, at) => isOfForm(sentence.names[at], value))) continue;
      const values = new Map(
        sentence.names.map((name, at) => [name, this.#value(name, found[at] ?? '', depth + 1)]),
      );
      return sentence.translated.replaceAll(VALUE, (_, name: string) => values.get(name) ?? '');
    }
    return undefined;
  }

  #value(name: string, value: string, depth: number): string {
    return name === NESTED ? this.#problems(value, depth) : this.#all(value, depth);
  }
}

function isOfForm(name = '', value: string): boolean {
  return FORMS.get(name)?.test(value) ?? true;
}

type Translators = ReadonlyMap<string, Translator>;

/** Of one catalogue and, behind it, of `SAID`. */
function translatorsOf(own: Catalogues, nested?: Translators): Translators {
  return new Map(
    Object.keys(SAID).map((language) => [
      language,
      new Translator({ ...own[language], ...SAID[language] }, nested?.get(language)),
    ]),
  );
}

const inSettings = translatorsOf(SETTINGS);
const said = translatorsOf(FAILURES, inSettings);
const found = translatorsOf(FOUND, inSettings);
const described = new Map(
  Object.entries(DESCRIBED).map(([language, catalogue]) => [language, new Map(Object.entries(catalogue))]),
);

export function saidIn(language: string, text: string): string {
  return said.get(language)?.text(text) ?? text;
}

/** A problem of a configuration, or a line of what a change of it does. */
export function settingIn(language: string, text: string): string {
  return inSettings.get(language)?.text(text) ?? text;
}

/** A title, detail or advice of the doctor's. */
export function foundIn(language: string, text: string): string {
  return found.get(language)?.text(text) ?? text;
}

/** A plugin's description; those of third parties stay as they are. */
export function describedIn(language: string, text: string): string {
  return described.get(language)?.get(text) ?? text;
}
