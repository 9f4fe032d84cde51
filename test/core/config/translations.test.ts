/** What the keys mean, in the languages of the dashboard: every plugin brings its own, English stands in. */
import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type { ConfigKey } from '../../../core/contract/config.ts';
import { listKeys } from '../../../core/config/schema/key-tree.ts';
import { assemble } from '../../../core/config/schema/schema.ts';
import type { ContributionEntry } from '../../../core/config/schema/schema.ts';
import { withTranslations } from '../../../core/config/translations.ts';
import { entryOf } from '../../../core/plugins/discovery/found.ts';
import { Joi, readDescriptions } from '../../../core/sdk/index.ts';
import { LANGUAGES } from '../../../plugins/dashboard/languages.ts';
import { entry } from '../../support/config/config-fixture.ts';
import { inTreePlugins } from '../../support/plugins/in-tree.ts';

const HAN = /\p{Script=Han}/u;
const others = LANGUAGES.filter((language) => language !== 'en');

function keysOf(entries: readonly ContributionEntry[]): readonly ConfigKey[] {
  return withTranslations(listKeys(assemble(entries).root), entries);
}

describe('the descriptions of the keys that come with the package', () => {
  let entries: readonly ContributionEntry[] = [];
  before(async () => {
    const found = await inTreePlugins();
    entries = found.flatMap((plugin) => entryOf(plugin));
  });

  it('are there in every language of the dashboard, and are not the English ones', () => {
    const keys = keysOf(entries);
    assert.ok(keys.length > 90 && others.includes('zh'));
    for (const { path, description, translations } of keys)
      for (const language of others) {
        const text = translations[language] ?? '';
        assert.notEqual(text, '', `${language} ${path}`);
        assert.notEqual(text, description, `${language} ${path}`);
        if (language === 'zh') assert.match(text, HAN, path);
      }
  });

  it('name in every language what is to be typed as it stands: references, files, addresses, commands', () => {
    const literal = /\{ \w+ = "[^"]*" \}|`[^`]+`|"(?:[\d.:/]+[A-Z]?|[a-z]+\/\d+|auto|hash|size|read-back)"/g;
    const plain = (text: string): string => text.replaceAll(/[“”]/g, '"');
    for (const { path, description, translations } of keysOf(entries))
      for (const language of others)
        for (const [one] of description.matchAll(literal))
          assert.ok(plain(translations[language] ?? '').includes(one), `${language} ${path}: ${one}`);
  });

  it('are of keys that there are', () => {
    const paths = new Set(keysOf(entries).map(({ path }) => path));
    for (const { owner, contribution } of entries)
      for (const texts of Object.values(contribution.descriptions ?? {}))
        assert.deepEqual(
          Object.keys(texts).filter((path) => !paths.has(path)),
          [],
          owner,
        );
    const core = readDescriptions(new URL('../../../core/config/translations.js', import.meta.url).href);
    const switches = new Set(['enabled', 'isolation', 'log_level'].map((key) => `plugins.*.${key}`));
    assert.deepEqual(
      Object.keys(core['zh'] ?? {}).filter((path) => !paths.has(path) && !switches.has(path)),
      [],
    );
  });
});

describe("a stranger's descriptions", () => {
  const schema = Joi.object({ colour: Joi.string().default('red').description('Colour.') });
  const path = 'plugins.lights.colour';
  const given = (descriptions: unknown): ConfigKey['translations'] | undefined =>
    keysOf([entry('lights', { schema, descriptions: descriptions as never }, { thirdParty: true })]).find(
      (key) => key.path === path,
    )?.translations;

  it('are taken for its own keys, and English stands in where it brings none', () => {
    assert.deepEqual(given({ zh: { [path]: '颜色。' } }), { zh: '颜色。' });
    assert.deepEqual(given(undefined), {});
    assert.deepEqual(given({ zh: { 'web.port': '端口。' } }), {});
    const keys = keysOf([entry('lights', { schema, descriptions: { zh: { 'web.port': 'mine' } } })]);
    assert.notEqual(keys.find((key) => key.path === 'web.port')?.translations['zh'], 'mine');
  });

  it('break nothing when they are no texts', () => {
    for (const bad of [7, 'x', { zh: null }, { zh: 7 }, { zh: { [path]: 7 } }, { zh: { [path]: '' } }, []])
      assert.deepEqual(given(bad), {}, JSON.stringify(bad));
  });
});
