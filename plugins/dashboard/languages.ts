/** The dashboard's languages: message catalogues in ICU's format, and the choice for each reader. */
import type { IntlMessageFormat } from 'intl-messageformat';
import { inEveryLanguage, readTexts } from 'mountkeeper';
import type { Content, LocalText, MessageValues } from 'mountkeeper';
import { libraries } from './pages/libraries.ts';

export type Catalogue = Readonly<Record<string, string>>;

/** By the code for `<html lang>`. */
export const CATALOGUES: Readonly<Record<string, Catalogue>> = readTexts(import.meta.url);
export const LANGUAGES: readonly string[] = Object.keys(CATALOGUES);
/** Used when a reader's language is not available. */
const FALLBACK = 'en';
/**
 * Limit for compiled messages of a plugin: one that makes new messages at every rendering must not fill
 * memory.
 */
const MOST_COMPILED = 2_000;

/** The reader's own choice, else the browser's preference, else English. */
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

/** The messages of one language, compiled at their first use. */
export class Messages {
  readonly language: string;
  readonly #compiled = new Map<string, IntlMessageFormat>();
  /** Hundreds of shares say the same few things. */
  readonly #plain = new Map<string, string>();

  constructor(language: string) {
    this.language = language;
  }

  /** The message from the first catalogue that has the key; the key itself when none has it. */
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

  /** The same for messages whose values are plain text. */
  plain(
    key: string,
    values: Readonly<Record<string, string | number>> | undefined,
    ...catalogues: readonly (Catalogue | undefined)[]
  ): string {
    const message = messageOf(key, catalogues);
    if (message === undefined) return key;
    const said = `${message} ${JSON.stringify(values)}`;
    const known = this.#plain.get(said);
    if (known !== undefined) return known;
    if (this.#plain.size >= MOST_COMPILED) this.#plain.clear();
    const text = [this.#compile(message).format<string>(values)].flat().join('');
    this.#plain.set(said, text);
    return text;
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
