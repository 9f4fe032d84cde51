/** What is wrong with a configuration, in other languages: no sentence of the code or of Joi is missing. */
import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import type { ConfigKey } from '../../../core/contract/config.ts';
import { schemaProblems } from '../../../core/config/checks/problems.ts';
import { listKeys } from '../../../core/config/schema/key-tree.ts';
import { assemble } from '../../../core/config/schema/schema.ts';
import type { Assembly } from '../../../core/config/schema/schema.ts';
import { entryOf } from '../../../core/plugins/discovery/found.ts';
import { parseDocument } from '../../../core/sdk/toml/document.ts';
import { LANGUAGES } from '../../../plugins/dashboard/languages.ts';
import { SAID, SETTINGS, saidIn, settingIn } from '../../../plugins/dashboard/said.ts';
import { PROJECT } from '../../runner/test-files.ts';
import { strayValues, toldIn, wordsIn } from '../../support/dashboard/sentences.ts';
import { inTreePlugins } from '../../support/plugins/in-tree.ts';

const HAN = /\p{Script=Han}/u;
const others = LANGUAGES.filter((language) => language !== 'en');
/** Where the code writes down what is wrong with a configuration. */
const SPEAKERS = [
  ...readdirSync(join(PROJECT, 'core/config/checks')).map((name) => `core/config/checks/${name}`),
  'core/config/complete.ts',
  'core/config/load.ts',
  'core/config/schema/core-schema.ts',
  'core/config/schema/did-you-mean.ts',
  'core/config/schema/share-name.ts',
  'core/config/secrets/secrets.ts',
  'core/config/summary.ts',
  'core/platform/cron.ts',
  'core/platform/files/small-file.ts',
  'core/sdk/config-types.ts',
  'core/sdk/toml/document.ts',
  'core/sdk/toml/edit.ts',
  'core/sdk/units.ts',
  'plugins/auth/administrators.ts',
  // Doubts about a connection, which the guide shows as warnings.
  'plugins/mount/options/host-keys.ts',
  'plugins/mount/options/untrusted-options.ts',
  'plugins/setup/host-keys.ts',
  'plugins/webhooks/delivery/address.ts',
  ...readdirSync(join(PROJECT, 'plugins')).map((name) => `plugins/${name}/config.ts`),
].filter((path) => existsSync(join(PROJECT, path)));
const LITERAL = String.raw`(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"|${'`(?:[^`\\\\]|\\\\.)*`'})`;
/** What a key means is translated elsewhere. */
const JOINED = String.raw`\s*${LITERAL}(?:\s*\+\s*${LITERAL})*`;
const DESCRIPTIONS = new RegExp(
  [String.raw`\.description\(`, String.raw`(?:users|clients)OfShare\(`, 'const TOTP =']
    .map((start) => start + JOINED)
    .join('|'),
  'g',
);
const PATTERNS = /\/\^[^\n]*?\$\/u?/g;
/** What stands between the values of a template. */
const GAP = /\{\{[#:][\w.]+\}\}|\{\w*\}/;

/** A sentence about one key names it, where the catalogue has a value. */
const KEY_FIRST = /^[a-z_]+\.[\w.]+ /;
/** Names of types, which no problem holds. */
const TYPES: ReadonlySet<string> = new Set(['array of path']);

/** The pieces that every translation of the sentence must know, each of at least three words. */
function piecesOf(sentence: string): readonly string[] {
  return sentence
    .split(GAP)
    .map((piece) => piece.replace(/^[\s:;]+|[\s:;]+$/g, '').replace(KEY_FIRST, ''))
    .filter((piece) => wordsIn(piece) >= 3 && piece.includes(' ') && !TYPES.has(piece));
}

/** Values of every kind: some are wrong for any key. */
const WRONG: readonly unknown[] = [
  17.5,
  -3,
  1e9,
  true,
  '',
  'two words, and a %: "quoted"',
  '-1h',
  '999999w',
  '61 * * * *',
  '5-1 * * * *',
  '* * * *',
  '../up',
  ' x ',
  '@x',
  'no\u0000thing',
  'control\u0007',
  'x'.repeat(5_000),
  'ftp://example.org',
  'http://a%:b@example.org',
  'GLOBAL',
  '.dot',
  [],
  ['', ''],
  ['same', 'same'],
  [7],
  {},
  { env: 'A', file: '/b' },
  { unknown_key: 1 },
  '********',
  '0.5s',
  '::ffff:10.0.0.1',
  'root',
];

/** The value stands at every key. */
function documentOf(keys: readonly Pick<ConfigKey, 'path'>[], value: unknown): object {
  const document = {};
  for (const { path } of keys) {
    const segments = path.replaceAll('[]', '.0').split('.');
    const last = segments.pop() ?? '';
    let table: Record<string, unknown> = document;
    for (const [index, segment] of segments.entries())
      table = (table[segment] ??= segments[index + 1] === '0' ? [] : {}) as Record<string, unknown>;
    table[last] = value;
  }
  return document;
}

function problemsOf(document: object, { schema, root }: Assembly): readonly string[] {
  const { error } = schema.validate(document, {
    abortEarly: false,
    convert: false,
    errors: { wrap: { label: false } },
  });
  return error ? schemaProblems(error, root).map(({ message }) => message) : [];
}

describe('what is wrong with a configuration, in other languages', () => {
  let assembly: Assembly;
  let keys: readonly Pick<ConfigKey, 'path'>[] = [];
  before(async () => {
    assembly = assemble((await inTreePlugins()).flatMap((plugin) => entryOf(plugin)));
    keys = listKeys(assembly.root);
  });

  it('is there for every problem that a wrong value of any key gives', () => {
    const documents = [
      ...WRONG.map((value) => documentOf(keys, value)),
      ...WRONG.map((value) => ({ connections: [{ name: 'a', type: 'sftp', options: { one: value } }] })),
      ...WRONG.map((value) => ({ groups: { office: value, 'no name': [] }, shares: [value] })),
      { web: { tls: { certificate: '/c' } } },
      { web: { tls: { self_made: true, certificate: '/c', key: '/k' } } },
      { web: { tokens: [{ name: 'a', token_hash: 'b', role: 'viewer', verbs: ['status'] }] } },
      { shares: [{ protocols: ['smb', 'smb'] }], webdav: { users: [{ name: 'a' }, { name: 'a' }] } },
      { smb: { users: [{ name: 'a' }, { name: 'A' }] }, nonsense: 1, cachee: {} },
    ];
    const problems = [...new Set(documents.flatMap((document) => problemsOf(document, assembly)))];
    assert.ok(problems.length > 500, `${problems.length} problems`);
    for (const language of others)
      assert.deepEqual(
        problems.filter((problem) => settingIn(language, problem) === problem).slice(0, 20),
        [],
        `without a translation in plugins/dashboard/locales/settings/${language}.json`,
      );
    for (const problem of problems) assert.match(settingIn('zh', problem), HAN);
  });

  it('is there for every text that is no TOML', () => {
    const texts = [
      'a = 1 b = 2',
      'a = [1',
      'a = [1 2]',
      '[[a]',
      'a b = 1',
      '= 1',
      '.a = 1',
      'a = 01',
      'a = 1__0',
      'a',
      '"""a""" = 1',
      'a = 99999999999999999999',
      'a = 2024-99-99',
      'a = "\\x"',
      'a = "\\uZZZZ"',
      'a = "\\UFFFFFFFF"',
      'a = nonsense',
      'a = 1\na = 2',
      'a = ',
      'a = "open',
      'a = { b = 1',
      'a = 1_',
      'a = 1x',
      '# \u0007',
      'a = "\u0007"',
      '__proto__ = 1',
      'a = 2024-01-01T99:00:00Z',
      `a = ${'['.repeat(2_000)}`,
      `a = "\uD800"`,
      '[a',
      'a = """\\ x"""',
    ];
    const found = new Set<string>();
    for (const text of texts) {
      const parsed = parseDocument(text);
      if ('problem' in parsed) found.add(parsed.problem.message);
    }
    assert.ok(found.size > 20, `${found.size} problems`);
    for (const language of others)
      assert.deepEqual(
        [...found].filter((problem) => settingIn(language, problem) === problem),
        [],
      );
  });

  it('is there for every sentence that the checks write down', () => {
    const written = SPEAKERS.flatMap((path) => {
      const source = readFileSync(join(PROJECT, path), 'utf8')
        .replaceAll(DESCRIPTIONS, '')
        .replaceAll(PATTERNS, '');
      return toldIn(source);
    }).flatMap(piecesOf);
    assert.ok(written.length > 80, `${written.length} pieces`);
    for (const language of others) {
      const known = Object.keys({ ...SETTINGS[language], ...SAID[language] }).join('\n');
      assert.deepEqual(
        [...new Set(written)].filter((piece) => !known.includes(piece)),
        [],
        `without a translation in plugins/dashboard/locales/settings/${language}.json`,
      );
    }
  });

  it('gives every value that the English sentence has', () => {
    assert.deepEqual(strayValues(SETTINGS), []);
  });

  it('reads as whole sentences, with what is typed as it stands', () => {
    const said = (text: string): string => settingIn('zh', text);
    assert.equal(
      said('unknown key "prot" in web; did you mean "port"?'),
      'web 中没有“prot”这一键；是否指“port”？',
    );
    assert.equal(
      said('cache.max_size: "much" is not a size; write it like "0", "512K", "128M" or "1.5G"'),
      'cache.max_size：“much”不是大小；请写成 “0”、“512K”、“128M”或“1.5G” 这样',
    );
    assert.equal(said('shares[0]."my key".x is required'), '必须写明 shares[0]."my key".x');
    assert.equal(
      said('the colour of it is required'),
      'the colour of it is required',
      'a stranger said that',
    );
    assert.equal(said('web.port: 8090 → 8091'), 'web.port: 8090 → 8091');
    assert.equal(
      said('log.level: "info" → "warn" (waits for the restart)'),
      'log.level："info" → "warn"（重启后生效）',
    );
    assert.equal(settingIn('en', 'web.port is required'), 'web.port is required');
    assert.equal(
      saidIn('zh', 'Validation error: web.port must be a number (line 3, column 8); smb.port is required'),
      '配置有问题：web.port 必须是数字（第 3 行第 8 列）；必须写明 smb.port',
    );
  });
});
