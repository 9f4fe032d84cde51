/** Values of every kind through the form's own actions: what stands in the text afterwards, and what the form shows. */
import assert from 'node:assert/strict';
import { afterEach, before, describe, it } from 'node:test';
import { schemaProblems } from '../../../../core/config/checks/problems.ts';
import { assemble } from '../../../../core/config/schema/schema.ts';
import type { ConfigKey } from '../../../../core/contract/config.ts';
import type { View } from '../../../../core/contract/dashboard.ts';
import { duration, Joi, readToml, secret } from '../../../../core/sdk/index.ts';
import { entryOf } from '../../../../core/plugins/discovery/found.ts';
import { CATALOGUES } from '../../../../plugins/dashboard/languages.ts';
import { loadLibraries } from '../../../../plugins/dashboard/pages/libraries.ts';
import { toHtml } from '../../../../plugins/dashboard/pages/shell.ts';
import { Editor } from '../../../../plugins/dashboard/settings/editor.ts';
import { fieldsPanel } from '../../../../plugins/dashboard/settings/fields.ts';
import { editOf } from '../../../../plugins/dashboard/settings/sections.ts';
import type { Path } from '../../../../plugins/dashboard/settings/typed.ts';
import { createView } from '../../../../plugins/dashboard/view.ts';
import { optionsOf } from '../../../../plugins/mount/options/backends.ts';
import { entry, OpenedRooms, PHOTOS, sampleEntries } from '../../../support/config/config-fixture.ts';
import { inTreePlugins } from '../../../support/plugins/in-tree.ts';

/** Of a third party. */
const lights = entry('lights', {
  section: 'lights',
  schema: Joi.object({
    headers: Joi.object().pattern(Joi.string(), Joi.string()).default({}).description('Free.'),
    levels: Joi.array().items(Joi.number()).default([]).description('Numbers.'),
    either: Joi.alternatives(Joi.string(), Joi.number()).optional().description('Either.'),
    options: Joi.string().default('').description('Called like those of a connection.'),
    on: Joi.boolean().default(false).description('On.'),
    mode: Joi.string().valid('slow', 'fast').default('slow').description('Mode.'),
    note: Joi.string().allow('').default('').description('Lines.'),
    key: secret().default('').description('Key.'),
    trusted: Joi.array()
      .items(Joi.string())
      .default([])
      .meta({ fileOnly: 'but-default' })
      .description('Trust.'),
  }).meta({ tier: 'live' }),
  share: Joi.object({
    dim: Joi.object({ after: duration().default('5m').description('When.') })
      .default()
      .description('Dims.'),
    rooms: Joi.array()
      .items(Joi.object({ name: Joi.string().description('Room.') }))
      .default([])
      .description('Rooms.'),
  }).meta({ tier: 'live' }),
});
const rooms = new OpenedRooms();
const tab = { id: 'settings', title: 'Settings', texts: CATALOGUES, render: () => null };

interface Form {
  /** The text as the page shows it, and after each action. */
  text: string;
  /** Of the last answer. */
  page: string;
  set(path: Path, value: string): Promise<void>;
  add(path: Path, name: string): Promise<void>;
  remove(path: Path): Promise<void>;
}

function unescaped(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&lt;', '<').replaceAll('&amp;', '&');
}

/** Of a daemon that runs `text`; `typed`: what somebody has typed into the text. */
async function formOf(text: string, typed?: string): Promise<Form> {
  const { service, run } = rooms.open({
    entries: () => [...sampleEntries(), lights],
    env: { NAS_PASSWORD: 'x' },
  });
  await run(text);
  const changes = {
    version: '1',
    check: async (given: string) => {
      const check = await service.check(given, 'http', { keepSecrets: true });
      if (!check.ok) return check;
      const interrupts = { shares: [], servers: false, restart: false };
      const { changes: all, summary } = check.diff;
      return { ok: true, summary, changes: all, interrupts, warnings: [] };
    },
  };
  const services: Readonly<Record<string, unknown>> = {
    configChanges: changes,
    config: service,
    shares: { list: () => [] },
    mounter: { optionsOf },
  };
  const find = (name: string): unknown => services[name];
  const editor = new Editor({ use: find, find } as never);
  const act = async (
    action: 'set' | 'add' | 'remove',
    form: Readonly<Record<string, string>>,
  ): Promise<void> => {
    const view: View = createView({ language: 'en', host: 'h', tab, form: { ...form, text: made.text } });
    made.page = toHtml((await editor[action](view)).content);
    const [, shown] = /<textarea\s+id="settings-text"[^>]*>\n?([^]*?)<\/textarea>/.exec(made.page) ?? [];
    if (shown !== undefined) made.text = unescaped(shown);
  };
  const made: Form = {
    text: typed ?? service.shown(),
    page: toHtml(editor.controls(createView({ language: 'en', host: 'h', tab }))),
    set: (path, value) => act('set', { path: JSON.stringify(path), value }),
    add: (path, name) => act('add', { path: JSON.stringify(path), entry: name }),
    remove: (path) => act('remove', { path: JSON.stringify(path) }),
  };
  return made;
}

/** What is drawn of one field. */
function drawnAt(page: string, path: string): string {
  const [, found = ''] = page.split(`data-field="${path.replaceAll('"', '&quot;')}"`);
  return found.split('data-field=')[0] ?? '';
}

function problemAt(page: string, path: string): string | undefined {
  const problem = new RegExp(
    `data-problem="${path.replaceAll(/[.[\]]/g, '\\$&')}"\\s+data-message="([^"]*)"`,
  );
  const [, said] = problem.exec(page) ?? [];
  return said === undefined ? undefined : unescaped(said);
}

const OPTIONS = ['connections', 0, 'options'];

describe('the form of the settings, with values of every kind', () => {
  before(() => loadLibraries());
  afterEach(() => rooms.close());

  it('keeps a group a list, whatever stood there', async () => {
    for (const [text, office] of [
      ['office = ["anna"]', ''],
      ['office = "anna"', 'anna, ben'],
    ] as const) {
      const form = await formOf(PHOTOS, `${PHOTOS}[groups]\n${text}\n`);
      await form.set(['groups', 'office'], office);
      await form.set(['groups', 'office'], 'anna, ben');
      assert.deepEqual(readToml(form.text)['groups'], { office: ['anna', 'ben'] }, text);
    }
  });

  it('says what cannot be written at its field, and keeps the effect of everything else', async () => {
    const form = await formOf(PHOTOS, `lights.on = true\n${PHOTOS}`);
    const before = form.text;
    await form.remove(['lights']);
    assert.equal(
      problemAt(form.page, 'lights'),
      'lights is written in a way that only an editor of the text can change',
    );
    assert.match(form.page, /data-verdict="good"[^]*do\/settings\/apply/);
    assert.equal(form.text, before);
    await form.set(['lights', 'mode'], 'fast');
    assert.equal(form.text, before.replace('true\n', 'true\nlights.mode = "fast"\n'));
  });

  it('adds options to a connection by name, of the kind that they are known to be', async () => {
    const form = await formOf(PHOTOS.replace('"sftp"', '"ftp"'));
    assert.match(drawnAt(form.page, 'connections[0].options.pass'), /<option value="explicit_tls"/);
    await form.add(OPTIONS, 'port');
    await form.set([...OPTIONS, 'port'], '2121');
    await form.add(OPTIONS, 'explicit_tls');
    assert.match(drawnAt(form.page, 'connections[0].options.explicit_tls'), /<option value="true" selected/);
    await form.set([...OPTIONS, 'explicit_tls'], 'false');
    await form.add(OPTIONS, 'domain');
    await form.set([...OPTIONS, 'domain'], '22');
    await form.set([...OPTIONS, 'domain'], '');
    await form.add(OPTIONS, 'domain');
    const [connection] = readToml(form.text)['connections'] as [{ options: unknown }];
    assert.deepEqual(connection.options, {
      host: 'nas.example.org',
      pass: '********',
      port: 2121,
      explicit_tls: false,
      domain: '',
    });
    const given = PHOTOS.replace('pass =', 'long = 1.5\nflag = true\npass =');
    const other = await formOf(given);
    await other.set([...OPTIONS, 'long'], '2.25');
    await other.set([...OPTIONS, 'flag'], 'false');
    const [nas] = readToml(other.text)['connections'] as [{ options: Record<string, unknown> }];
    assert.deepEqual([nas.options['long'], nas.options['flag']], [2.25, false]);
  });

  it('leaves a masked secret alone, takes it away by its button, and sets none typed behind a mask', async () => {
    const form = await formOf(`${PHOTOS}[lights]\nkey = "the old key"\n`);
    assert.match(drawnAt(form.page, 'lights.key'), /type="password"[^>]* value placeholder="\*{8}"/);
    assert.match(drawnAt(form.page, 'lights.key'), /Left empty, it stays as it is\./);
    await form.set(['lights', 'key'], '');
    assert.match(form.page, /data-verdict="same"/);
    await form.set(['lights', 'key'], 'new');
    await form.set(['lights', 'key'], '');
    assert.match(form.page, /data-verdict="same"/, 'emptied again, it is what it was');
    for (const path of [
      ['lights', 'key'],
      [...OPTIONS, 'pass'],
    ]) {
      await form.set(path, '********x');
      const label = path.length === 2 ? 'lights.key' : 'connections[0].options.pass';
      assert.equal(
        problemAt(form.page, label),
        `${label} begins with the mask "********"; give the whole secret again`,
      );
      await form.set(path, '');
    }
    assert.match(drawnAt(form.page, 'lights.key'), /^$/, 'only the text was answered');
    assert.match(
      drawnAt((await formOf(PHOTOS)).page, 'connections[0].options.pass'),
      /do\/settings\/remove[^>]*>\s*Clear</,
    );
    await form.remove(['lights', 'key']);
    assert.deepEqual(readToml(form.text)['lights'] ?? {}, {});
    assert.match(drawnAt(form.page, 'lights.key'), /type="password"[^>]* value placeholder spellcheck/);
    await form.set(['lights', 'key'], 'new');
    assert.deepEqual(readToml(form.text)['lights'], { key: 'new' });
  });

  it('hides the secrets of a new connection, empty and typed', async () => {
    const form = await formOf(PHOTOS);
    await form.add(['connections'], '');
    for (const value of ['', 'hunter2']) {
      if (value !== '') {
        await form.set(['connections', 1, 'options', 'pass'], value);
        await form.add(['connections', 1, 'options'], 'token');
        await form.set(['connections', 1, 'options', 'host'], value);
        await form.add(['connections', 1, 'options'], 'x');
      }
      assert.match(drawnAt(form.page, 'connections[1].options.pass'), /type="password"/, value);
      assert.match(drawnAt(form.page, 'connections[1].options.host'), /type="text"/, value);
    }
    assert.match(drawnAt(form.page, 'connections[1].options.token'), /type="password"/);
  });

  it('shows what it cannot draw for reading alone, and draws what lies in tables of a share', async () => {
    const text =
      `${PHOTOS}[shares.dim]\nafter = "1m" # soon\n[[shares.rooms]]\nname = "hall"\n` +
      '[lights]\neither = 4\n[lights.headers]\na = "b"\n';
    const { page } = await formOf(text);
    for (const [path, value] of [
      ['shares[0].rooms', '[{"name":"hall"}]'],
      ['lights.either', '4'],
      ['lights.headers', '{"a":"********"}'],
    ] as const) {
      const drawn = drawnAt(page, path);
      assert.ok(unescaped(drawn).includes(`value="${value}"`), drawn);
      assert.match(drawn, /<input[^>]* disabled[^>]*>[^]*Change it in the text\./, path);
    }
    const { page: bare } = await formOf(PHOTOS);
    for (const path of ['shares[0].rooms', 'lights.headers', 'lights.either'])
      assert.match(drawnAt(bare, path), /<input[^>]* disabled/, path);
    assert.doesNotMatch(drawnAt(page, 'shares[0].dim.after'), / disabled/);
    assert.match(drawnAt(page, 'lights.options'), /<input(?![^>]* disabled)/);
    const form = await formOf(text);
    await form.set(['shares', 0, 'dim', 'after'], '2m');
    assert.match(form.text, /^after = "2m" # soon$/m);
    await form.set(['lights', 'levels'], '1, 2.5');
    await form.set(['lights', 'options'], 'plain');
    const { levels, options } = readToml(form.text)['lights'] as Record<string, unknown>;
    assert.deepEqual([levels, options], [[1, 2.5], 'plain']);
    assert.match(
      drawnAt((await formOf(form.text.replaceAll('"********"', '"x y"'))).page, 'lights.levels'),
      /value="1, 2\.5"/,
    );
  });

  it('shows what is no entry to choose as it is written, so that the right one is a change', async () => {
    const { page } = await formOf(PHOTOS);
    assert.match(drawnAt(page, 'lights.on'), /<option value selected>/);
    const wrong = await formOf(PHOTOS, `${PHOTOS}[lights]\non = "true"\nmode = "quick"\n`);
    await wrong.add(['shares'], '');
    assert.match(
      drawnAt(wrong.page, 'lights.on'),
      /<option disabled selected value="\?">&quot;true&quot;<\/option>/,
    );
    assert.match(
      drawnAt(wrong.page, 'lights.mode'),
      /<option disabled selected value="\?">&quot;quick&quot;</,
    );
    await wrong.set(['lights', 'on'], 'true');
    assert.match(wrong.text, /^on = true$/m);
  });

  it('takes a key that only the file may set back to its default, as the API does', async () => {
    const form = await formOf(`${PHOTOS}[lights]\ntrusted = ["10.0.0.1"] # proxy\n`);
    assert.match(drawnAt(form.page, 'lights.trusted'), /do\/settings\/remove[^>]*>\s*Back to the default/);
    assert.doesNotMatch(drawnAt(form.page, 'lights.mode'), /Back to the default/);
    await form.remove(['lights', 'trusted']);
    assert.match(form.page, /data-verdict="good"/);
  });

  it('keeps the lines of a text', async () => {
    const text = `${PHOTOS}[lights]\nnote = """\none\ntwo"""\n`;
    const form = await formOf(text);
    assert.match(
      drawnAt(form.page, 'lights.note'),
      /<textarea(?=[^>]*name="value")[^>]*>\n?one\ntwo<\/textarea>/,
    );
    await form.set(['lights', 'note'], 'one\r\nthree');
    assert.deepEqual(readToml(form.text)['lights'], { note: 'one\nthree' });
  });

  it('says that two have the same name at the name of the second', async () => {
    const { schema, root } = assemble((await inTreePlugins()).flatMap((plugin) => entryOf(plugin)));
    const twins = [{ name: 'a' }, { name: 'a' }];
    const { error } = schema.validate(
      {
        connections: [],
        web: { users: twins, tokens: twins.map((one) => ({ ...one, role: 'viewer' })) },
        webdav: { users: twins },
        smb: { users: twins },
      },
      { abortEarly: false },
    );
    const paths = new Set(error && schemaProblems(error, root).map(({ path }) => path));
    for (const array of ['web.users', 'web.tokens', 'webdav.users', 'smb.users'])
      assert.ok(paths.has(`${array}[1].name`) && !paths.has(`${array}[1]`), array);
  });

  it('writes a reference as its help does, and gives it back', () => {
    const key = {
      path: 'lights.key',
      type: 'secret',
      description: '',
      translations: {},
      default: '',
      tier: 'live',
      secret: true,
      fileOnly: false,
      owner: 'lights',
    } satisfies ConfigKey;
    const view = createView({ language: 'en', host: 'h', tab });
    const document = { lights: { key: { env: 'A "b"' } } };
    const drawn = unescaped(drawnAt(toHtml(fieldsPanel(document, [key], view)), 'lights.key'));
    assert.match(drawn, /value="\{ env = "A \\"b\\"" \}"/);
    const { value } = editOf(['lights', 'key'], '{ env = "NAME" }', { document, keys: [key] });
    assert.deepEqual(value, { env: 'NAME' });
  });
});
