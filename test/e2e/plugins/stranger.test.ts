/**
 * A stranger's plugin, first of all the README's own, comes into a running daemon by an edit of the
 * configuration.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Daemon, runCli } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { freePort } from '../../support/platform/free-port.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

const page = (name: string): Promise<string> =>
  readFile(fileURLToPath(new URL(`../../../../${name}`, import.meta.url)), 'utf8');
const PACKAGE = '{ "type": "module", "main": "index.js" }';

async function layDown(
  scratch: Scratch,
  name: string,
  code: string,
  manifest: string = PACKAGE,
): Promise<void> {
  await mkdir(scratch.path('plugins', name), { recursive: true });
  await writeFile(scratch.path('plugins', name, 'package.json'), manifest);
  await writeFile(scratch.path('plugins', name, 'index.js'), code);
}

interface Listed {
  readonly name: string;
  readonly state: string;
  readonly reason: string | null;
}

describe('the plugin that the README shows', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let code: string;

  const lay = (name: string, text: string): Promise<void> => layDown(scratch, name, text);
  const listed = async (name: string): Promise<Listed | undefined> =>
    (await daemon.get<Listed[]>('/api/plugins')).body.find((plugin) => plugin.name === name);
  const inState = (name: string, state: string): Promise<unknown> =>
    until(`${name} is ${state}`, async () => (await listed(name))?.state === state, { timeoutMs: 20_000 });
  const greeting = async (): Promise<unknown> => (await daemon.get('/ext/greeter/hello')).body;

  before(async () => {
    scratch = await createScratch('stranger');
    code = /```js\n([^]*?)```/.exec(await page('README.md'))?.[1] ?? '';
    daemon = await Daemon.create(scratch, { connections: [{ name: 'nas', type: 'local' }], shares: [] });
    await daemon.start();
  });
  after(() => scratch.close());

  it('is at most 20 lines', () => {
    const lines = code.split('\n').filter((line) => line.trim() !== '');
    assert.ok(lines.length > 5 && lines.length <= 20, `${lines.length} lines`);
  });

  it('comes up with its defaults when its folder and its switch come in one edit', async () => {
    await lay('greeter', code);
    await daemon.writeConfig(
      daemon.text({
        sections: { plugins: { dirs: [scratch.path('plugins')] }, 'plugins.greeter': { enabled: true } },
      }),
    );
    await inState('greeter', 'active');
    assert.deepEqual(await greeting(), { message: 'hello' });
    assert.equal(
      (await daemon.get<{ plugins: { greeter: { greeting: string } } }>('/api/config')).body.plugins.greeter
        .greeting,
      'hello',
    );
  });

  it('is no unknown one where its folder was laid just before its switch', async () => {
    await lay('sudden', code.replaceAll('greeter', 'sudden'));
    await daemon.writeConfig(
      daemon.text({
        sections: {
          plugins: { dirs: [scratch.path('plugins')] },
          'plugins.greeter': { enabled: true },
          'plugins.sudden': { enabled: true },
        },
      }),
    );
    // Before the daemon has noticed either of them.
    daemon.signal('SIGHUP');
    await inState('sudden', 'active');
    assert.doesNotMatch(await daemon.log(), /plugins\.sudden\]: there is no plugin of that name/);
  });

  it('says what it is told to, at once', async () => {
    await daemon.writeConfig(
      daemon.text({
        sections: {
          plugins: { dirs: [scratch.path('plugins')] },
          'plugins.greeter': { enabled: true, greeting: 'good morning' },
        },
      }),
    );
    await until('the new greeting', async () => JSON.stringify(await greeting()).includes('good morning'), {
      timeoutMs: 30_000,
    });
  });

  it('has the defaults of keys that a new version of it brings', async () => {
    const keyed = code.replace(
      'greeting: Joi',
      "name: Joi.string().default('friend').description('Whom to greet.').meta({ tier: 'live' }),\n      greeting: Joi",
    );
    await lay(
      'greeter',
      keyed.replace('message: ctx.config.greeting', 'message: `${ctx.config.greeting}, ${ctx.config.name}`'),
    );
    await until(
      'the new version',
      async () => JSON.stringify(await greeting()).includes('good morning, friend'),
      { timeoutMs: 20_000 },
    );
  });

  it('may as well be TypeScript, without a build, and goes on when a new version has a fault', async () => {
    const typed = code
      .replaceAll('greeter', 'typed')
      .replace('export default', 'interface Answer { readonly message: string }\nexport default');
    const lamp = (text: string): Promise<void> => writeFile(scratch.path('plugins/typed/index.ts'), text);
    await layDown(scratch, 'typed', '', '{ "type": "module", "exports": "./index.ts" }');
    await lamp(typed);
    await daemon.writeConfig(
      daemon.text({
        sections: { plugins: { dirs: [scratch.path('plugins')] }, 'plugins.typed': { enabled: true } },
      }),
    );
    await inState('typed', 'active');
    const said = async (): Promise<unknown> => (await daemon.get('/ext/typed/hello')).body;
    assert.deepEqual(await said(), { message: 'hello' });
    await lamp(typed.replace('interface Answer', 'enum Tone { low }\ninterface Answer'));
    const line = typed.slice(0, typed.indexOf('interface Answer')).split('\n').length;
    await until(
      'the fault is told',
      async () =>
        (await listed('typed'))?.reason?.includes(
          `enum is not supported in strip-only mode (${scratch.path('plugins/typed/index.ts')}:${line})`,
        ) === true,
      { timeoutMs: 20_000 },
    );
    await lamp(typed.replace("'hello'", "'good evening' as string"));
    await until('the mended one', async () => JSON.stringify(await said()).includes('good evening'), {
      timeoutMs: 20_000,
    });
  });

  it('is loaded by the command line for what it may bring alone, and only when it is on', async () => {
    const mark = scratch.path('imported');
    const file = scratch.path('marking.toml');
    const sections = {
      plugins: { dirs: [scratch.path('plugins/marking')] },
      supervisor: { state_dir: scratch.path('cli-state') },
    };
    await layDown(
      scratch,
      'marking/marks',
      "import { writeFileSync } from 'node:fs';\n" +
        `writeFileSync(${JSON.stringify(mark)}, '');\n${code.replaceAll('greeter', 'marks')}`,
      // For its mark.
      '{ "type": "module", "exports": "./index.js", "mountkeeper": { "permissions": ["files"] } }',
    );
    await writeFile(file, daemon.text({ sections }));
    assert.equal((await runCli(['nonsense', '--config', file])).code, 64);
    assert.equal((await runCli(['check', '--config', file])).code, 0);
    assert.equal((await runCli(['doctor', '--config', file])).code !== null, true);
    assert.equal(existsSync(mark), false, 'it is off');
    await writeFile(file, daemon.text({ sections: { ...sections, 'plugins.marks': { enabled: true } } }));
    assert.equal(
      (await runCli(['status', '--config', file, '--url', `http://127.0.0.1:${daemon.port}`])).code,
      0,
    );
    assert.equal(existsSync(mark), false, 'status comes with the package');
    assert.equal((await runCli(['nonsense', '--config', file])).code, 64);
    assert.equal(existsSync(mark), true);
  });

  it('is set aside with the reason when what the document has for it, is wrong', async () => {
    await daemon.writeConfig(
      daemon.text({ sections: { plugins: { dirs: [] }, 'plugins.rude': { enabled: true, greeting: 5 } } }),
    );
    await until('the folder is let go', async () => (await listed('greeter')) === undefined, {
      timeoutMs: 20_000,
    });
    // Not before: a document is judged by the plugins that are known, and this one would be refused.
    await lay('rude', code.replaceAll('greeter', 'rude'));
    await daemon.writeConfig(
      daemon.text({
        sections: {
          plugins: { dirs: [scratch.path('plugins')] },
          'plugins.rude': { enabled: true, greeting: 5 },
        },
      }),
    );
    await inState('rude', 'failed');
    assert.equal(
      (await listed('rude'))?.reason,
      'its table [plugins.rude] does not fit this version, which has no migration: greeting must be a string; ' +
        'change it by hand',
    );
    assert.equal((await daemon.get('/ext/rude/hello')).status, 404);
  });
});

describe('the exporter that the documents show', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let port: number;
  const SHARES = [
    { name: 'team', connection: 'nas', protocols: ['http'] },
    { name: '照片 Photos', connection: 'nas' },
    { name: 'hidden', connection: 'nas', protocols: ['smb'] },
  ];

  before(async () => {
    scratch = await createScratch('exporter');
    port = await freePort();
    const nas = await Nas.create(scratch, { files: { 'hello.txt': 1000 } });
    const docs = await page('docs/plugins.md');
    const code = /<!-- exporter -->\n```js\n([^]*?)```/.exec(docs)?.[1] ?? '';
    const manifest = /<!-- exporter-package -->\n```json\n([^]*?)```/.exec(docs)?.[1] ?? '';
    await layDown(scratch, 'listing', code, manifest);
    const sections = {
      plugins: { dirs: [scratch.path('plugins')] },
      'plugins.listing': { enabled: true, isolation: 'none', port },
    };
    daemon = await Daemon.create(scratch, { connections: [nas.connection('nas')], shares: SHARES, sections });
    await daemon.start();
  });
  after(() => scratch.close());

  const look = async (path: string): Promise<number> =>
    (
      await fetch(`http://127.0.0.1:${port}/${path}`, { signal: AbortSignal.timeout(2_000) }).catch(
        () => undefined,
      )
    )?.status ?? 0;
  const shows = (path: string, status: number): Promise<unknown> =>
    until(`${path}: ${status}`, async () => (await look(path)) === status, { timeoutMs: 20_000 });
  const extensions = async (): Promise<Record<string, unknown>> =>
    (await daemon.get<{ extensions: Record<string, unknown> }>('/api/extensions')).body.extensions;
  const verdict = async (changes: Parameters<Daemon['text']>[0]): Promise<unknown> =>
    (await daemon.request<unknown>('POST', '/api/config/check', { toml: daemon.text(changes) })).body;

  it('shows healthy shares that name its protocol, or none', async () => {
    await shows('team/hello.txt', 200);
    await shows(`${encodeURIComponent('照片 Photos')}/hello.txt`, 200);
    await daemon.healthy(['hidden']);
    await shows('hidden/hello.txt', 404);
  });

  it('is seen in the status, beside the fields of the API', async () => {
    await until(
      'it serves',
      async () => JSON.stringify((await extensions())['listing']) === '{"listingServing":true}',
      { timeoutMs: 20_000 },
    );
    assert.equal('listing_serving' in (await daemon.get<object>('/api/status')).body, false);
  });

  it('shows them, too, when it was broken at the start of the daemon and is mended', async () => {
    const file = scratch.path('plugins', 'listing', 'index.js');
    const sound = await readFile(file, 'utf8');
    await daemon.stop();
    await writeFile(file, 'this is no program');
    await daemon.start();
    await daemon.healthy(['team', 'hidden']);
    assert.equal(await look('team/hello.txt'), 0);
    await writeFile(file, sound);
    await shows('team/hello.txt', 200);
    await shows(`${encodeURIComponent('照片 Photos')}/hello.txt`, 200);
    await shows('hidden/hello.txt', 404);
  });

  it('is among the protocols that a wrong name is answered with', async () => {
    assert.match(
      JSON.stringify(await verdict({ shares: [{ name: 'team', connection: 'nas', protocols: ['htp'] }] })),
      /names the protocol \\"htp\\", which no plugin provides; did you mean \\"http\\"\?; there are .*smb.*http/,
    );
  });

  it('lets go of a share that is removed, and of all when it is switched off', async () => {
    const shares = SHARES.slice(0, 1);
    await daemon.writeConfig(daemon.text({ shares }));
    await shows(`${encodeURIComponent('照片 Photos')}/hello.txt`, 404);
    await shows('team/hello.txt', 200);
    await daemon.writeConfig(daemon.text({ shares, sections: { 'plugins.listing': { enabled: false } } }));
    await shows('team/hello.txt', 0);
  });

  it('may be named while it is off, with a warning, and has no field in the status', async () => {
    await until('its field is gone', async () => (await extensions())['listing'] === undefined, {
      timeoutMs: 20_000,
    });
    const off = { name: 'team', connection: 'nas', protocols: ['http'], read_only: true };
    assert.match(
      JSON.stringify(await verdict({ shares: [off], sections: { 'plugins.listing': { enabled: false } } })),
      /"ok":true.*protocol \\"http\\" of the plugin \\"listing\\", which is off or cannot be loaded/,
    );
  });
});

/** Tells of something when it is asked to, and keeps what it hears. */
const TELLER = `import { definePlugin } from 'mountkeeper';
const heard = [];
const event = {
  type: 'garden.flood', severity: 'warning', message: 'The cellar is full.', data: { litres: 12 }, key: 'flood',
};
export default definePlugin({ name: 'NAME', version: '1.0.0', apiVersion: 1, description: 'Tells and hears.',
  register(ctx) {
    ctx.tap('notification', (event) => { heard.push(event.message); event.message = 'changed'; });
    ctx.route({ method: 'GET', path: '/ext/NAME', handler: () => heard });
    const tell = async () => { await ctx.send('notify', event); return {}; };
    ctx.route({ method: 'GET', path: '/ext/NAME/tell', handler: tell });
  } });
`;

describe('what people should hear of', () => {
  let scratch: Scratch;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('tellers');
    for (const name of ['teller', 'hearer']) await layDown(scratch, name, TELLER.replaceAll('NAME', name));
    const sections = {
      plugins: { dirs: [scratch.path('plugins')] },
      'plugins.teller': { enabled: true },
      'plugins.hearer': { enabled: true },
    };
    daemon = await Daemon.create(scratch, {
      connections: [{ name: 'nas', type: 'local' }],
      shares: [],
      sections,
    });
    await daemon.start();
  });
  after(() => scratch.close());

  it('is heard by every plugin that listens, as it was said and by whom', async () => {
    assert.equal((await daemon.get('/ext/teller/tell')).status, 200);
    for (const name of ['teller', 'hearer']) {
      await until(
        `${name} has heard of it`,
        async () =>
          JSON.stringify((await daemon.get(`/ext/${name}`)).body) === '["teller: The cellar is full."]',
        { timeoutMs: 20_000 },
      );
    }
  });
});
