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

/** Around the name of a value that is left out; no message has it. */
const MARK = '\u0000';
const NO_VALUES: Readonly<Record<string, string>> = {};

interface Compiled {
  readonly message: IntlMessageFormat;
  /** Names of values that it only shows: no other word depends on them. */
  readonly shown: ReadonlySet<string>;
}

/** As `intl-messageformat` gives them. */
type Elements = ReturnType<IntlMessageFormat['getAst']>;
/** `TYPE.argument` of its parser, whose module has nothing else that is needed here. */
const ARGUMENT = 1;

function shownIn(elements: Elements): ReadonlySet<string> {
  const [shown, used] = [new Set<string>(), new Set<string>()];
  const look = (some: Elements): void => {
    for (const one of some) {
      // The texts of a message are among them, which does no harm.
      if ('value' in one) (one.type === ARGUMENT ? shown : used).add(one.value);
      if ('children' in one) look(one.children);
      if ('options' in one) for (const { value } of Object.values(one.options)) look(value);
    }
  };
  look(elements);
  return new Set([...shown].filter((name) => !used.has(name)));
}

/** The messages of one language, compiled at their first use. */
export class Messages {
  readonly language: string;
  readonly #compiled = new Map<string, Compiled>();
  /** Hundreds of shares say the same few things: what is between the texts in them. */
  readonly #pieces = new Map<string, readonly string[]>();

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
      : (this.#compile(message).message.format(values as Record<string, string>) as Content);
  }

  /** The same for messages whose values are plain text. */
  plain(
    key: string,
    values: Readonly<Record<string, string | number>> | undefined,
    ...catalogues: readonly (Catalogue | undefined)[]
  ): string {
    const message = messageOf(key, catalogues);
    if (message === undefined) return key;
    const pieces = this.#piecesOf(message, values ?? NO_VALUES);
    let text = '';
    // Every other piece names a value.
    for (const [at, piece] of pieces.entries()) text += at % 2 === 0 ? piece : String(values?.[piece]);
    return text;
  }

  /** The message with its values in it, but for the texts that it only shows: those are other ones each time. */
  #piecesOf(text: string, values: Readonly<Record<string, string | number>>): readonly string[] {
    const { message, shown } = this.#compile(text);
    const isLeftOut = (name: string): boolean => typeof values[name] === 'string' && shown.has(name);
    let key = text;
    for (const name of Object.keys(values))
      key += isLeftOut(name) ? `\n${name}` : `\n${name} ${values[name]}`;
    const known = this.#pieces.get(key);
    if (known) return known;
    if (this.#pieces.size >= MOST_COMPILED) this.#pieces.clear();
    const marked = Object.entries(values).map(([name, value]) => [
      name,
      isLeftOut(name) ? `${MARK}${name}${MARK}` : value,
    ]);
    const made = [message.format<string>(Object.fromEntries(marked))].flat().join('').split(MARK);
    this.#pieces.set(key, made);
    return made;
  }

  #compile(text: string): Compiled {
    const known = this.#compiled.get(text);
    if (known) return known;
    if (this.#compiled.size >= MOST_COMPILED) this.#compiled.clear();
    const { IntlMessageFormat: Format } = libraries();
    const message = new Format(text, this.language);
    const made = { message, shown: shownIn(message.getAst()) };
    this.#compiled.set(text, made);
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
