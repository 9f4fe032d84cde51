/** The languages of the dashboard: catalogues of messages in ICU's format, and which one a reader gets. */
import { createRequire } from 'node:module';
import { IntlMessageFormat } from 'intl-messageformat';
import type { Content, LocalText, MessageValues } from 'mountkeeper';

export type Catalogue = Readonly<Record<string, string>>;

const load = (name: string): Catalogue => createRequire(import.meta.url)(`./locales/${name}.json`) as Catalogue;

/** By the code that `<html lang>` has; the first is what stands in for a language that is not here. */
export const CATALOGUES: Readonly<Record<string, Catalogue>> = { en: load('en'), zh: load('zh') };
export const LANGUAGES: readonly string[] = Object.keys(CATALOGUES);
const [FALLBACK = 'en'] = LANGUAGES;
/** A plugin's messages are kept compiled; a plugin that makes new ones at every rendering must not fill memory. */
const MOST_COMPILED = 2_000;

/** The reader's own choice, else what the browser asks for, else English. */
export function pickLanguage(chosen: string | undefined, acceptLanguage: string | undefined): string {
  if (chosen !== undefined && LANGUAGES.includes(chosen)) return chosen;
  const asked = (acceptLanguage ?? '').split(',').map((part) => {
    const [tag = '', quality] = part.trim().split(/;\s*q=/);
    return { tag: tag.toLowerCase().split('-')[0] ?? '', quality: quality === undefined ? 1 : Number(quality) };
  });
  const best = asked.filter(({ tag }) => LANGUAGES.includes(tag)).sort((a, b) => b.quality - a.quality)[0];
  return best !== undefined && best.quality > 0 ? best.tag : FALLBACK;
}

export function textOf(text: LocalText, language: string): string {
  return typeof text === 'string' ? text : (text[language] ?? text[FALLBACK] ?? Object.values(text)[0] ?? '');
}

/** One message in all languages. Without values. */
export function everywhere(key: string): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(CATALOGUES).map(([language, catalogue]) => [language, catalogue[key] ?? key]));
}

/** Messages of one language, compiled when they are first used. */
export class Messages {
  readonly language: string;
  readonly #compiled = new Map<string, IntlMessageFormat>();

  constructor(language: string) {
    this.language = language;
  }

  /** The message of the first catalogue that has the key; the key itself where none has it. */
  format(key: string, values: MessageValues | undefined, ...catalogues: readonly (Catalogue | undefined)[]): Content {
    const message = catalogues.find((one) => one !== undefined && Object.hasOwn(one, key))?.[key];
    if (message === undefined) return key;
    return this.#compile(message).format(values as Record<string, string>) as Content;
  }

  #compile(message: string): IntlMessageFormat {
    const known = this.#compiled.get(message);
    if (known) return known;
    if (this.#compiled.size >= MOST_COMPILED) this.#compiled.clear();
    const made = new IntlMessageFormat(message, this.language);
    this.#compiled.set(message, made);
    return made;
  }
}

const known = new Map<string, Messages>();

export function messagesIn(language: string): Messages {
  const messages = known.get(language) ?? new Messages(language);
  known.set(language, messages);
  return messages;
}
