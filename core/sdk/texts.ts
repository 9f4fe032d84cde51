/** A plugin's own texts in several languages, in files that translators can edit. */
import { readdirSync, readFileSync } from 'node:fs';

/** Messages by language and key, in ICU's message format. */
export type Texts = Readonly<Record<string, Readonly<Record<string, string>>>>;

/**
 * Reads `locales/<language>.json` next to a module, for `texts` of `ctx.tab`. Call
 * `readTexts(import.meta.url)` when the module is loaded. With `folder`, those of `locales/<folder>/`. Throws when
 * there is no such folder or a file is not JSON.
 */
export function readTexts(moduleUrl: string, folder?: string): Texts {
  return textsIn(new URL(folder === undefined ? './locales/' : `./locales/${folder}/`, moduleUrl));
}

/**
 * The same of `locales/config/<language>.json`, for `descriptions` of a plugin's `config`: what each key
 * means, by its path. English needs no file, since the schema says it.
 */
export function readDescriptions(moduleUrl: string): Texts {
  return readTexts(moduleUrl, 'config');
}

function textsIn(folder: URL): Texts {
  const files = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort();
  return Object.fromEntries(
    files.map((name) => [
      name.slice(0, -'.json'.length),
      JSON.parse(readFileSync(new URL(name, folder), 'utf8')) as Record<string, string>,
    ]),
  );
}

/** One message in every language, for titles, labels and outcomes. */
export function inEveryLanguage(texts: Texts, key: string): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(texts).map(([language, messages]) => [language, messages[key] ?? key]),
  );
}
