/**
 * A stranger's plugin, first of all the README's own, comes into a running daemon by an edit of the
 * configuration.
 */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Daemon, runCli } from '../support/daemon.ts';
import { Nas } from '../support/nas.ts';
import { freePort } from '../support/ports.ts';
import { createScratch } from '../support/scratch.ts';
import type { Scratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';

const page = (name: string): Promise<string> =>
  readFile(fileURLToPath(new URL(`../../../${name}`, import.meta.url)), 'utf8');
const PACKAGE = '{ "type": "module", "main": "index.js" }';

async function layDown(scratch: Scratch, name: string, code: string): Promise<void> {
  await mkdir(scratch.path('plugins', name), { recursive: true });
  await writeFile(scratch.path('plugins', name, 'package.json'), PACKAGE);
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
  const greeting = async (): Promise<unknown> => (await daemon.get('/api/hello')).body;

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
      `import { writeFileSync } from 'node:fs';\nwriteFileSync(${JSON.stringify(mark)}, '');\n${code.replaceAll('greeter', 'marks')}`,
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
    await lay('rude', code.replaceAll('greeter', 'rude').replaceAll('/api/hello', '/api/rude'));
    await daemon.writeConfig(
      daemon.text({ sections: { plugins: { dirs: [] }, 'plugins.rude': { enabled: true, greeting: 5 } } }),
    );
    await until('the folder is let go', async () => (await listed('greeter')) === undefined, {
      timeoutMs: 20_000,
    });
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
      'its configuration [plugins.rude] is not valid: greeting must be a string',
    );
    assert.equal((await daemon.get('/api/rude')).status, 404);
  });
});

describe('the exporter that the documents show', () => {
  let scratch: Scratch;
  let daemon: Daemon;
  let port: number;

  before(async () => {
    scratch = await createScratch('exporter');
    port = await freePort();
    const nas = await Nas.create(scratch, { files: { 'hello.txt': 1000 } });
    const shares = ['work', '照片 Photos'].map((name) => ({ name, connection: 'nas' }));
    const code = /<!-- exporter -->\n```js\n([^]*?)```/.exec(await page('docs/plugins.md'))?.[1] ?? '';
    await layDown(scratch, 'listing', code);
    const sections = {
      plugins: { dirs: [scratch.path('plugins')] },
      'plugins.listing': { enabled: true, port },
    };
    daemon = await Daemon.create(scratch, { connections: [nas.connection('nas')], shares, sections });
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

  it('shows healthy shares by their names', async () => {
    await shows('work/hello.txt', 200);
    await shows(`${encodeURIComponent('照片 Photos')}/hello.txt`, 200);
  });

  it('lets go of a share that is removed, and of all when it is switched off', async () => {
    const shares = [{ name: 'work', connection: 'nas' }];
    await daemon.writeConfig(daemon.text({ shares }));
    await shows(`${encodeURIComponent('照片 Photos')}/hello.txt`, 404);
    await shows('work/hello.txt', 200);
    await daemon.writeConfig(daemon.text({ shares, sections: { 'plugins.listing': { enabled: false } } }));
    await shows('work/hello.txt', 0);
  });
});

/** Tells of something when it is asked to, and keeps what it hears. */
const TELLER = `import { definePlugin } from 'mountkeeper';
const heard = [];
const event = { type: 'garden.flood', severity: 'warning', message: 'The cellar is full.', data: { litres: 12 }, key: 'flood' };
export default definePlugin({ name: 'NAME', version: '1.0.0', apiVersion: 1, description: 'Tells and hears.',
  register(ctx) {
    ctx.tap('notification', (event) => { heard.push(event.message); event.message = 'changed'; });
    ctx.route({ method: 'GET', path: '/api/NAME', handler: () => heard });
    ctx.route({ method: 'GET', path: '/api/NAME/tell', handler: async () => { await ctx.send('notify', event); return {}; } });
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

  it('is heard by every plugin that listens, as it was said', async () => {
    assert.equal((await daemon.get('/api/teller/tell')).status, 200);
    for (const name of ['teller', 'hearer']) {
      await until(
        `${name} has heard of it`,
        async () => JSON.stringify((await daemon.get(`/api/${name}`)).body) === '["The cellar is full."]',
        { timeoutMs: 20_000 },
      );
    }
  });
});
