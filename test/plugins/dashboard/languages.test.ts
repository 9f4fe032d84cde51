import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it, mock } from 'node:test';
import { fileURLToPath } from 'node:url';
import { IntlMessageFormat } from 'intl-messageformat';
import { loadLibraries } from '../../../plugins/dashboard/pages/libraries.ts';
import { CATALOGUES, messagesIn, pickLanguage, textOf } from '../../../plugins/dashboard/languages.ts';

const PLUGINS = fileURLToPath(new URL('../../../../plugins/', import.meta.url));

type Catalogue = Readonly<Record<string, string>>;

/** Every plugin's catalogues, by plugin and language. */
function catalogues(): ReadonlyMap<string, Readonly<Record<string, Catalogue>>> {
  const found = new Map<string, Readonly<Record<string, Catalogue>>>();
  for (const plugin of readdirSync(PLUGINS, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)) {
    const folder = join(PLUGINS, plugin, 'locales');
    const files = readdirSync(join(PLUGINS, plugin)).includes('locales')
      ? readdirSync(folder).filter((name) => name.endsWith('.json'))
      : [];
    if (files.length === 0) continue;
    found.set(
      plugin,
      Object.fromEntries(
        files.map((file) => [
          file.replace('.json', ''),
          JSON.parse(readFileSync(join(folder, file), 'utf8')) as Catalogue,
        ]),
      ),
    );
  }
  return found;
}

/** Names of what a message is given. */
function namesIn(message: string): readonly string[] {
  const names = new Set<string>();
  // Every element of a parsed message that stands for something has its name in \`value\`; texts have type 0,
  // the sign of a plural type 7.
  const walk = (node: unknown): void => {
    if (typeof node !== 'object' || node === null) return;
    const { type, value } = node as { type?: unknown; value?: unknown };
    if (typeof type === 'number' && type !== 0 && type !== 7 && typeof value === 'string') names.add(value);
    Object.values(node).forEach(walk);
  };
  walk(new IntlMessageFormat(message, 'en').getAst());
  return [...names].sort();
}

describe('the catalogues', () => {
  for (const [plugin, languages] of catalogues()) {
    it(`of ${plugin} say the same in every language, with the same values`, () => {
      assert.deepEqual(Object.keys(languages).sort(), Object.keys(CATALOGUES).sort());
      const english = languages['en'] ?? {};
      for (const [language, catalogue] of Object.entries(languages)) {
        assert.deepEqual(Object.keys(catalogue).sort(), Object.keys(english).sort(), language);
        for (const [key, message] of Object.entries(catalogue)) {
          assert.notEqual(message.trim(), '', `${language} ${key}`);
          assert.ok(new IntlMessageFormat(message, language), key);
          assert.deepEqual(namesIn(message), namesIn(english[key] ?? ''), `${language} ${key}`);
        }
      }
    });

    it(`of ${plugin} have every message that its code asks for`, () => {
      const sources = readdirSync(join(PLUGINS, plugin), { recursive: true, encoding: 'utf8' }).filter(
        (name) => name.endsWith('.ts'),
      );
      const text = sources.map((name) => readFileSync(join(PLUGINS, plugin, name), 'utf8')).join('\n');
      const asked = [...text.matchAll(/(?:\.t|\.plain|everywhere|text)\('([\w-]+)'/g)].map(
        ([, key = '']) => key,
      );
      assert.ok(asked.length > 0);
      assert.deepEqual(
        [...new Set(asked)].filter((key) => !Object.hasOwn(languages['en'] ?? {}, key)),
        [],
      );
    });
  }
});

describe('what a plugin contributes', () => {
  it('has a name in every language for each kind that the code knows', () => {
    const source = readFileSync(join(PLUGINS, '../core/plugins/contributed.ts'), 'utf8');
    const kinds = [...source.matchAll(/\[\s*'([a-z ]+)',\s/g)].map(([, kind = '']) => kind);
    assert.ok(kinds.includes('hooks') && kinds.includes('fields of each share') && kinds.length > 10);
    for (const catalogue of Object.values(CATALOGUES))
      assert.deepEqual(
        kinds.filter((kind) => !Object.hasOwn(catalogue, `kind-${kind.replaceAll(' ', '-')}`)),
        [],
      );
  });
});

describe('languages', () => {
  it("are the reader's own choice, else what the browser asks for, else English", () => {
    assert.equal(pickLanguage('zh', 'en'), 'zh');
    assert.equal(pickLanguage('xx', 'zh-TW,en;q=0.5'), 'zh');
    assert.equal(pickLanguage(undefined, 'fr, en;q=0.3, zh-CN;q=0.8'), 'zh');
    assert.equal(pickLanguage(undefined, 'zh;q=0'), 'en');
    assert.equal(pickLanguage(undefined, 'fr,de'), 'en');
    assert.equal(pickLanguage(undefined, undefined), 'en');
  });

  it('have their own plurals, and English stands in for what a plugin does not say', async () => {
    await loadLibraries();
    const { en = {}, zh = {} } = CATALOGUES;
    assert.equal(messagesIn('en').format('files', { count: 1 }, en), '1 file');
    assert.equal(messagesIn('en').format('files', { count: 1_234 }, en), '1,234 files');
    assert.equal(messagesIn('zh').format('files', { count: 2 }, zh), '2 个文件');
    assert.equal(textOf({ en: 'Garden' }, 'zh'), 'Garden');
    assert.equal(messagesIn('zh').format('nobody-has-this', undefined, zh, en), 'nobody-has-this');
  });
});

describe('a message of plain text', () => {
  before(() => loadLibraries());

  it('has the values of each time in it, those that choose its words as well', () => {
    const catalogue = {
      waits: '{count, plural, one {# file} other {# files}} of {name}, {size}',
      state: '{state, select, on {on since {at}} other {off}} {state}',
      twice: '{name} {name}',
      bare: 'nothing',
    };
    const messages = messagesIn('en');
    const said = (key: string, values?: Readonly<Record<string, string | number>>): string =>
      messages.plain(key, values, catalogue);
    const all = (): readonly string[] => [
      said('waits', { count: 1, name: 'a', size: '1 KiB' }),
      said('waits', { count: 1, name: '{b}', size: '2 KiB' }),
      said('waits', { count: 2, name: '<c>', size: "'" }),
      said('state', { state: 'on', at: 'noon' }),
      said('state', { state: 'off', at: 'noon' }),
      said('twice', { name: 'x' }),
      said('twice', { name: 'y' }),
      said('bare'),
      said('unknown'),
    ];
    const right = [
      '1 file of a, 1 KiB',
      '1 file of {b}, 2 KiB',
      "2 files of <c>, '",
      'on since noon on',
      'off off',
      'x x',
      'y y',
      'nothing',
      'unknown',
    ];
    assert.deepEqual(all(), right);
    assert.deepEqual(all(), right, 'the same from what is known by now');
    assert.throws(() => said('twice', {}), /name/);
  });

  it('is formatted once, however often its texts change', () => {
    const select = mock.method(Intl.PluralRules.prototype, 'select');
    try {
      const catalogue = { k: '{count, plural, one {# file} other {# files}}: {bytes}' };
      const messages = messagesIn('en');
      for (let n = 0; n < 50; n += 1)
        assert.equal(messages.plain('k', { count: 3, bytes: `${n} MiB` }, catalogue), `3 files: ${n} MiB`);
      assert.equal(select.mock.callCount(), 1);
    } finally {
      select.mock.restore();
    }
  });
});
