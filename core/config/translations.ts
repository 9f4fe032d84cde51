/**
 * The keys with their descriptions in other languages. The owner of a key brings them: a plugin in its
 * `descriptions`, the core in `locales/config/`.
 */
import type { ConfigKey } from '../contract/config.ts';
import { readDescriptions } from '../sdk/texts.ts';
import type { Texts } from '../sdk/texts.ts';
import type { DeclaredKey } from './schema/key-tree.ts';
import type { ContributionEntry } from './schema/schema.ts';

const CORE = 'core';
/** Every plugin has the switch; one text serves all of them. */
const OWN_TABLE = /^plugins\.[^.]+\./;

let ofCore: Texts | undefined;

export function withTranslations(
  keys: readonly DeclaredKey[],
  entries: readonly ContributionEntry[],
): readonly ConfigKey[] {
  ofCore ??= readDescriptions(import.meta.url);
  const brought = new Map<string, Texts | undefined>([
    ...entries.map(({ owner, contribution }) => [owner, contribution.descriptions] as const),
    [CORE, ofCore],
  ]);
  return keys.map((key) => ({ ...key, translations: translationsOf(key, brought.get(key.owner)) }));
}

/** What a stranger's plugin gives may be anything: only texts are taken. */
function translationsOf(
  { path, owner }: Pick<ConfigKey, 'path' | 'owner'>,
  texts: Texts = {},
): ConfigKey['translations'] {
  const name = owner === CORE ? path.replace(OWN_TABLE, 'plugins.*.') : path;
  return Object.fromEntries(
    Object.entries(texts).flatMap(([language, descriptions]) => {
      const text: unknown = Object.hasOwn(descriptions ?? {}, name) ? descriptions[name] : undefined;
      return typeof text === 'string' && text !== '' ? [[language, text]] : [];
    }),
  );
}
