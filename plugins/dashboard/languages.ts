/** The languages of the dashboard: catalogues of messages in ICU's format, and which one a reader gets. */
import type { IntlMessageFormat } from 'intl-messageformat';
import { inEveryLanguage, readTexts } from 'mountkeeper';
import type { Content, LocalText, MessageValues } from 'mountkeeper';
import { libraries } from './pages/libraries.ts';

export type Catalogue = Readonly<Record<string, string>>;

/** By the code that `<html lang>` has. */
export const CATALOGUES: Readonly<Record<string, Catalogue>> = readTexts(import.meta.url);
export const LANGUAGES: readonly string[] = Object.keys(CATALOGUES);
/** Stands in for a language that is not here. */
const FALLBACK = 'en';
/**
 * A plugin's messages are kept compiled; a plugin that makes new ones at every rendering must not fill
 * memory.
 */
const MOST_COMPILED = 2_000;

/** The reader's own choice, else what the browser asks for, else English. */
export function pickLanguage(chosen: string | undefined, acceptLanguage: string | undefined): string {
  if (chosen !== undefined && LANGUAGES.includes(chosen)) return chosen;
  const asked = (acceptLanguage ?? '').split(',').map((part) => {
    const [tag = '', quality] = part.trim().split(/;\s*q=/);
    return {
      tag: tag.toLowerCase().split('-')[0] ?? '',
      quality: quality === undefined ? 1 : Number(quality),
    };
  });
  const best = asked.filter(({ tag }) => LANGUAGES.includes(tag)).sort((a, b) => b.quality - a.quality)[0];
  return best !== undefined && best.quality > 0 ? best.tag : FALLBACK;
}

export function textOf(text: LocalText, language: string): string {
  return typeof text === 'string' ? text : (text[language] ?? text[FALLBACK] ?? Object.values(text)[0] ?? '');
}

export const everywhere = (key: string): Readonly<Record<string, string>> => inEveryLanguage(CATALOGUES, key);

/** Messages of one language, compiled when they are first used. */
export class Messages {
  readonly language: string;
  readonly #compiled = new Map<string, IntlMessageFormat>();

  constructor(language: string) {
    this.language = language;
  }

  /** The message of the first catalogue that has the key; the key itself where none has it. */
  format(
    key: string,
    values: MessageValues | undefined,
    ...catalogues: readonly (Catalogue | undefined)[]
  ): Content {
    const message = messageOf(key, catalogues);
    return message === undefined
      ? key
      : (this.#compile(message).format(values as Record<string, string>) as Content);
  }

  /** The same where no value is a node. */
  plain(
    key: string,
    values: Readonly<Record<string, string | number>> | undefined,
    ...catalogues: readonly (Catalogue | undefined)[]
  ): string {
    const message = messageOf(key, catalogues);
    return message === undefined ? key : [this.#compile(message).format<string>(values)].flat().join('');
  }

  #compile(message: string): IntlMessageFormat {
    const known = this.#compiled.get(message);
    if (known) return known;
    if (this.#compiled.size >= MOST_COMPILED) this.#compiled.clear();
    const { IntlMessageFormat: Format } = libraries();
    const made = new Format(message, this.language);
    this.#compiled.set(message, made);
    return made;
  }
}

function messageOf(key: string, catalogues: readonly (Catalogue | undefined)[]): string | undefined {
  return catalogues.find((one) => one !== undefined && Object.hasOwn(one, key))?.[key];
}

const known = new Map<string, Messages>();

export function messagesIn(language: string): Messages {
  const messages = known.get(language) ?? new Messages(language);
  known.set(language, messages);
  return messages;
}
