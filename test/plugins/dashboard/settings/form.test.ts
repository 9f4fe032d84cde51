/** The form of the settings: what is typed as the schema wants it, and names that may hold anything. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { listKeys } from '../../../../core/config/schema/key-tree.ts';
import { assemble } from '../../../../core/config/schema/schema.ts';
import { entryOf } from '../../../../core/plugins/discovery/found.ts';
import { editToml, joinPath, readToml } from '../../../../core/sdk/index.ts';
import type { View } from '../../../../core/contract/dashboard.ts';
import type { ConfigKey } from '../../../../core/contract/config.ts';
import type { ConfigVerdict } from '../../../../core/contract/config-changes.ts';
import { CATALOGUES } from '../../../../plugins/dashboard/languages.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { fieldsPanel } from '../../../../plugins/dashboard/settings/fields.ts';
import { editOf, isSwitch, keyOf } from '../../../../plugins/dashboard/settings/sections.ts';
import { at, OPTION, typed } from '../../../../plugins/dashboard/settings/typed.ts';
import type { Path } from '../../../../plugins/dashboard/settings/typed.ts';
import { Editor } from '../../../../plugins/dashboard/settings/editor.ts';
import { namesOf } from '../../../../plugins/dashboard/settings/offers.ts';
import { digest, verdictPanel } from '../../../../plugins/dashboard/settings/verdict.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { inTreePlugins } from '../../../support/plugins/in-tree.ts';

const WEB = { listen: '127.0.0.1', port: 8090 };
const HOSTILE = '<script>alert(1)</script> "x" \u202E';

function key(path: string, type: string, traits: Partial<ConfigKey> = {}): ConfigKey {
  return {
    path,
    type,
    description: `About ${path}.`,
    translations: {},
    default: undefined,
    tier: 'live',
    secret: false,
    fileOnly: false,
    owner: 'core',
    ...traits,
  };
}

const KEYS: readonly ConfigKey[] = [
  key('shares[].name', 'string', { tier: 'per-share' }),
  key('shares[].read_only', 'boolean', { default: false }),
  key('web.port', 'integer', { default: 8090 }),
  key('web.hostnames', 'array of string', { default: [] }),
  key('web.password', 'secret', { secret: true, default: '' }),
  key('log.level', '"info" | "warn"', { default: 'info' }),
  key('cache.dir', 'path', { fileOnly: true }),
  key('shares[].exec', 'boolean', { fileOnly: 'but-default', default: false }),
  key('web.proxies', 'array of string', { fileOnly: 'but-default', default: [] }),
  key('connections[].options', 'table'),
  key('plugins.logs.enabled', 'boolean'),
];

const view = createView({
  language: 'en',
  host: 'h',
  tab: { id: 'settings', title: 'Settings', texts: CATALOGUES, render: () => null },
});

describe('the form of the settings', () => {
  before(() => loadLibraries());

  it('shows a table of free keys as a section, and keeps its lists lists', () => {
    const document = { groups: { office: ['anna', 'ben'] } };
    const keys = [...KEYS, key('groups', 'table', { default: {} })];
    const page = toHtml(fieldsPanel(document, keys, view));
    assert.match(page, /data-section="groups"/);
    assert.match(page, /data-field="groups\.office"[\s\S]*?value="anna, ben"/);
    const edit = editOf(['groups', 'office'], 'anna, carl', { document, keys });
    assert.equal(
      editToml('[groups]\noffice = ["anna", "ben"]\n', [edit]),
      '[groups]\noffice = ["anna", "carl"]\n',
    );
  });

  it('adds a list by its name to a table of free keys, and takes one away, with the notes kept', async () => {
    const keys = [...KEYS, key('groups', 'table', { default: {} })];
    const page = toHtml(fieldsPanel({ groups: { office: ['anna'] } }, keys, view));
    const section = page.split('data-section="groups"')[1]?.split('</details>')[0] ?? '';
    assert.match(section, /About groups\./);
    assert.match(section, /do\/settings\/remove"[^>]*groups[^>]*office/);
    assert.match(section, /<label for="name-groups">Name<\/label>\s*<input id="name-groups" name="entry"/);
    assert.match(
      section,
      /hx-include="#settings-text, \[id=&quot;name-groups&quot;\]"[^>]*do\/settings\/add"/,
    );
    const changes = { check: async () => ({ ok: false, stage: 'parse', message: '', problems: [] }) };
    const config = {
      keys: () => keys,
      current: { config: { web: WEB } },
      isShownAnew: () => false,
      secretsIn: () => () => false,
    };
    const services: Readonly<Record<string, unknown>> = {
      configChanges: changes,
      config,
      shares: { list: () => [] },
    };
    const editor = new Editor({
      use: (name: string) => services[name],
      find: (name: string) => (name === 'configChanges' ? changes : undefined),
    } as never);
    const text = '[groups] # ours\noffice = ["anna"] # upstairs\n';
    const asked = (path: Path, entry: string): View =>
      createView({
        language: 'en',
        host: 'h',
        tab: { id: 'settings', title: 'Settings', texts: CATALOGUES, render: () => null },
        form: { text, path: JSON.stringify(path), entry },
      });
    const added = toHtml((await editor.add(asked(['groups'], ' lab '))).content).replaceAll('&quot;', '"');
    assert.ok(added.includes('office = ["anna"] # upstairs\nlab = []'), added);
    assert.match(added, /data-field="groups\.lab"/);
    for (const [entry, said] of [
      ['office', 'There is one of this name already.'],
      [' ', 'Give it a name first.'],
    ] as const) {
      const { ok, message } = await editor.add(asked(['groups'], entry));
      assert.deepEqual([ok, view.text(message)], [false, said]);
    }
    const removed = toHtml((await editor.remove(asked(['groups', 'office'], ''))).content);
    assert.ok(removed.includes('[groups] # ours') && !removed.includes('anna'), removed);
  });

  it('lets choose where all values are known, keeps others that stand there, and proposes the rest', () => {
    const keys = [
      key('connections[].name', 'string'),
      key('shares[].connection', 'string', { names: 'connection' }),
      key('hook.format', 'string', { names: 'webhook format', words: ['auto', 'generic'], default: 'auto' }),
      key('hook.zone', 'string', { names: 'time zone', default: '' }),
      key('hook.shares', 'array of string', { names: 'share' }),
    ];
    const document = {
      connections: [{ name: 'nas' }, { name: 'office' }],
      shares: [{ name: 'photos', connection: 'gone' }],
      hook: { format: 'lights/dmx' },
    };
    const known = namesOf({
      find: (name: string) => (name === 'webhookFormats' ? { names: () => ['webhooks/slack'] } : undefined),
    } as never);
    const page = toHtml(fieldsPanel(document, keys, view, { names: known }));
    const fieldOf = (path: string): string =>
      page.split(`data-field="${path}"`)[1]?.split('data-field=')[0] ?? '';
    const options = (path: string): readonly string[] =>
      [...fieldOf(path).matchAll(/<option value(?:="([^"]*)")?/g)].map(([, value = '']) => value);
    assert.deepEqual(options('shares[0].connection'), ['', 'nas', 'office', 'gone']);
    assert.match(fieldOf('shares[0].connection'), /<option value="gone" selected/);
    assert.deepEqual(options('hook.format'), ['', 'auto', 'generic', 'webhooks/slack', 'lights/dmx']);
    assert.match(fieldOf('hook.zone'), /<input[^>]*list="field-hook.zone-offers"/);
    assert.ok(options('hook.zone').includes('Asia/Shanghai'));
    assert.match(fieldOf('hook.shares'), /There are <code>photos<\/code>\./);
    assert.doesNotMatch(toHtml(fieldsPanel({}, KEYS, view)), /<datalist/);
  });

  it('finds what is offered in the schemas of all plugins', async () => {
    const entries = (await inTreePlugins()).flatMap((plugin) => entryOf(plugin));
    const offered = new Map(
      listKeys(assemble(entries).root).map(({ path, words, names }) => [path, { words, names }]),
    );
    assert.deepEqual(offered.get('shares[].connection'), { words: undefined, names: 'connection' });
    assert.deepEqual(offered.get('warmup.rules[].share'), { words: undefined, names: 'share' });
    assert.equal(offered.get('notifications.webhook_format')?.names, 'webhook format');
    assert.ok(offered.get('notifications.webhook_format')?.words?.includes('ntfy'));
    assert.ok(offered.get('web.tokens[].verbs')?.words?.includes('reconnect'));
    assert.equal(offered.get('shares[].users')?.names, 'login');
  });

  it('puts what is typed into the text as the schema wants it', () => {
    const cases: readonly (readonly [text: string, type: string, wanted: unknown])[] = [
      ['8091', 'integer', 8091],
      ['many', 'integer', 'many'],
      ['true', 'boolean', true],
      ['false', 'boolean', false],
      ['a, b,', 'array of string', ['a', 'b']],
      ['30s', 'duration', '30s'],
      ['', 'string', undefined],
      ['22', 'string', '22'],
    ];
    for (const [text, type, wanted] of cases)
      assert.deepEqual(typed(text, type, undefined), wanted, `${type}: ${text}`);
    assert.deepEqual(typed('{ env = "X" }', 'secret', undefined), { env: 'X' }, 'as its help says');
    assert.deepEqual(typed("{file='/etc/x'}", 'string', undefined), { file: '/etc/x' });
    assert.equal(typed('{ other = "x" }', 'secret', undefined), '{ other = "x" }');
    assert.equal(typed('23', OPTION, 22), 23, 'an option that is a number stays one');
    const text = '# mine\n[web]\nport = 1 # one\n';
    const edit = editOf(['web', 'port'], '8091', { document: readToml(text), keys: KEYS });
    assert.equal(editToml(text, [edit]), '# mine\n[web]\nport = 8091 # one\n');
    assert.equal(
      editToml(text, [editOf(['web', 'port'], '', { document: readToml(text), keys: KEYS })]),
      '# mine\n[web]\n',
    );
  });

  it('knows keys by the paths of the document', () => {
    assert.equal(keyOf(['shares', 3, 'name'], KEYS)?.path, 'shares[].name');
    assert.equal(keyOf(['shares', 3, 'none'], KEYS), undefined);
  });

  it('shows names, values and options as text, secrets as the mask, and no key of the file alone to type in', () => {
    const document = {
      shares: [{ name: HOSTILE }],
      web: { password: '********' },
      connections: [{ options: { host: HOSTILE, pass: '********' } }],
    };
    const drawn = toHtml(fieldsPanel(document, KEYS, view));
    assert.ok(!drawn.includes('<script>') && drawn.includes('&lt;script>alert(1)&lt;/script>'));
    assert.match(drawn, /type="password"[^>]* value placeholder="\*{8}"/);
    assert.doesNotMatch(drawn, /value="\*{8}"/, 'nothing is typed behind a mask');
    assert.match(drawn, /data-field="connections\[0\]\.options\.pass"/);
    assert.match(drawn, /<input(?=[^>]*id="field-cache.dir")(?=[^>]*disabled)/);
    const ofFile = (path: string): string =>
      drawn.split(`data-field="${path}"`)[1]?.split('data-field=')[0] ?? '';
    for (const path of ['cache.dir', 'shares[0].exec', 'web.proxies']) {
      assert.match(ofFile(path), /<(?:input|select)[^>]* disabled/, path);
      assert.match(ofFile(path), /Only in the configuration file/, path);
    }
    assert.doesNotMatch(ofFile('web.port'), / disabled|Only in the configuration file/);
    assert.match(drawn, /<option[^>]*>Default: info/);
    assert.ok(!drawn.includes('plugins.logs'), 'switches have a page of their own');
  });

  it("describes keys in the reader's language where their owner does, else in English, marked as English", () => {
    const keys = [
      key('web.port', 'integer', { translations: { zh: '端口。' } }),
      key('lights.colour', 'string', { translations: {} }),
    ];
    const tab = { id: 'settings', title: '设置', texts: CATALOGUES, render: () => null };
    const zh = toHtml(fieldsPanel({}, keys, createView({ language: 'zh', host: 'h', tab })));
    assert.match(zh, /<span lang="zh">端口。<\/span>/);
    assert.match(zh, /<span lang="en">About lights\.colour\.<\/span>/);
    assert.ok(!zh.includes('About web.port.'));
    const en = toHtml(fieldsPanel({}, keys, view));
    assert.match(en, /<span lang="en">About web\.port\.<\/span>/);
  });

  it('says what a change does, whom it interrupts, and names the text that was looked at', () => {
    const verdict: ConfigVerdict = {
      ok: true,
      summary: `shares.a: "${HOSTILE}"`,
      changes: [{ path: 'shares.a', tier: 'per-share', isEntry: false, before: 1, after: 2 }],
      interrupts: { shares: [HOSTILE, 'b'], servers: true, restart: true },
      warnings: [],
    };
    const drawn = toHtml(verdictPanel({ text: 'text', paused: ['b', 'c'], web: WEB }, verdict, view));
    assert.ok(!drawn.includes('<script>'));
    assert.match(drawn, /Interrupts whoever works on these 2 shares/);
    assert.match(drawn, /hx-confirm="[^"]*Whoever works on these 2 shares is interrupted/);
    assert.match(drawn, /hx-confirm="The pause of uploads of b ends/, 'only of those that are interrupted');
    assert.match(drawn, /<p>The pause of uploads of <bdi>b<\/bdi> ends/);
    assert.match(drawn, /next start/);
    assert.ok(drawn.includes(digest('text')) && digest('text') !== digest('other'));
    const quiet = toHtml(
      verdictPanel(
        { text: 't', paused: ['b'], web: WEB },
        { ...verdict, interrupts: { shares: [], servers: false, restart: false } },
        view,
      ),
    );
    assert.ok(/Interrupts nobody/.test(quiet) && !quiet.includes('hx-confirm'));
    assert.doesNotMatch(quiet, /pause of uploads/);
    const own = toHtml(
      verdictPanel(
        { text: 't', paused: [], web: WEB },
        {
          ...verdict,
          changes: [
            { path: 'web.port', tier: 'live', isEntry: false, before: 8090, after: 8091 },
            { path: 'web.password', tier: 'live', isEntry: true, before: '********', after: '' },
          ],
          interrupts: { shares: [], servers: false, restart: false },
        },
        view,
      ),
    );
    assert.match(own, /hx-confirm="Nobody is asked for the password of web\.password any more/);
    assert.match(own, /<p>This page moves to http:\/\/[^ ]*:8091\/tabs\/settings#trial;/);
    const bad: ConfigVerdict = {
      ok: false,
      stage: 'validate',
      message: 'no',
      problems: [{ message: HOSTILE, path: 'web.port', line: 3 }],
    };
    assert.match(
      toHtml(verdictPanel({ text: 't', paused: [], web: WEB }, bad, view)),
      /data-problem="web\.port"[^]*data-line="3"/,
    );
  });
});

/** Texts that people may type, some of which TOML has signs of its own for. */
const TEXTS = ['plain', '#not "a" \\ note', "o'neil = [1]", '照片 \u202E', '22', ' true '];

function typedInto({
  type,
  default: byDefault,
}: ConfigKey): readonly (readonly [text: string, value: unknown])[] {
  if (type === 'boolean')
    return [
      ['true', true],
      ['false', false],
    ];
  if (type === 'integer') return [['8091', 8091]];
  if (type.startsWith('"')) return type.split(' | ').map((one) => [one.slice(1, -1), one.slice(1, -1)]);
  const empty =
    type === 'string' && byDefault !== '' && byDefault !== undefined ? ([['""', '']] as const) : [];
  if (!type.startsWith('array of')) return [...TEXTS.map((text) => [text, text] as const), ...empty];
  return [
    ['one', ['one']],
    ['one, "two" #', ['one', '"two" #']],
    ['[]', []],
    ['["a, b", "[c"]', ['a, b', '[c']],
  ];
}

/** What the field of this path shows, as the browser gives it back when somebody types nothing. */
function shownIn(page: string, path: Path): string {
  const name = joinPath(path).replaceAll(/[.[\]]/g, '\\$&');
  const field = new RegExp(`data-field="${name}"([^]*?)<p class="help"`).exec(page)?.[1] ?? '';
  const raw =
    /<option(?=[^>]* selected)[^>]* value="([^"]*)"|<option value="([^"]*)" selected/.exec(field) ??
    /<input[^>]* value="([^"]*)"/.exec(field) ??
    [];
  return (raw[1] ?? raw[2] ?? '').replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}

describe('each field of the form, with the keys of all plugins that come with the package', () => {
  const example = readFileSync(
    fileURLToPath(new URL('../../../../../config/example.toml', import.meta.url)),
    'utf8',
  );
  const text = `${example}
[[smb.users]] # of the office
name = "a"
[[webdav.users]] # of the office
name = "a"
[[warmup.rules]] # at night
share = "photos"
[[web.users]] # them
name = "a"
[[web.tokens]] # programs
name = "a"
`;
  const notes = (of: string): readonly string[] => of.match(/#.*$/gm) ?? [];
  let keys: readonly ConfigKey[] = [];
  before(async () => {
    const found = await inTreePlugins();
    keys = listKeys(assemble(found.flatMap((plugin) => entryOf(plugin))).root).map((one) => ({
      ...one,
      translations: {},
    }));
  });

  it('is written to the text, shown as it was typed, and emptied again, with every note kept', () => {
    const own = keys.filter(({ path, type }) => !isSwitch(path) && type !== 'table');
    assert.ok(own.length > 60);
    const written = notes(text);
    const known = new Set(written);
    for (const key of own) {
      const path: Path = key.path
        .split('.')
        .flatMap((name): Path => (name.endsWith('[]') ? [name.slice(0, -2), 0] : [name]));
      for (const [wanted, value] of typedInto(key)) {
        const edited = editToml(text, [editOf(path, wanted, { document: readToml(text), keys })]);
        const document = readToml(edited);
        assert.deepEqual(at(document, path), value, `${key.path}: ${wanted}`);
        assert.deepEqual(
          notes(edited).filter((note) => known.has(note)),
          written,
          key.path,
        );
        const shown = shownIn(toHtml(fieldsPanel(document, [key], view)), path);
        const again = editToml(edited, [editOf(path, shown, { document, keys })]);
        assert.equal(again, edited, `${key.path} shows ${shown} for ${wanted}`);
      }
      const emptied = readToml(editToml(text, [editOf(path, '', { document: readToml(text), keys })]));
      assert.equal(at(emptied, path), undefined, key.path);
    }
  });
});
