/** The shorter blocks of code in docs/plugins.md do what the page says of them, run as they stand there. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { fileURLToPath } from 'node:url';
import { transform } from '@swc/wasm-typescript';
import { pino } from 'pino';
import { definePlugin, Joi, withRelease } from 'mountkeeper';
import type { Plugin, PluginContext, WebhookFormatsService } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import type { TestHost, TestHostOptions } from 'mountkeeper/testing';

const PAGE = fileURLToPath(new URL('../../../docs/plugins.md', import.meta.url));

/** What the page has around a block: names that it uses and does not make. */
type Around = Readonly<Record<string, unknown>>;

async function blockOf(name: string): Promise<string> {
  const page = await readFile(PAGE, 'utf8');
  const [, language, code] = new RegExp(`<!-- ${name} -->\\n\`\`\`(js|ts)\\n([^]*?)\`\`\``).exec(page) ?? [];
  assert.ok(code, `docs/plugins.md has no block "${name}"`);
  return language === 'ts' ? (await transform(code, { mode: 'strip-only' })).code : code;
}

/** A function of its own module, with what stands around the code as its arguments. */
async function functionOf(code: string, around: Around): Promise<(ctx: unknown) => unknown> {
  const source = `export default (ctx, { ${Object.keys(around).join(', ')} }) => {\n${code}\n};`;
  const made = (await import(`data:text/javascript,${encodeURIComponent(source)}`)) as {
    readonly default: (ctx: unknown, around: Around) => unknown;
  };
  return (ctx) => made.default(ctx, around);
}

interface More {
  readonly around?: Around;
  readonly requires?: Plugin['requires'];
  /** What is declared beside the block. */
  readonly beside?: (ctx: PluginContext) => void;
  readonly plugins?: TestHostOptions['plugins'];
  readonly log?: TestHostOptions['log'];
}

/** A daemon's host with the plugin `garden`, which declares what stands in these blocks. */
async function gardenOf(t: TestContext, names: readonly string[], more: More = {}): Promise<TestHost> {
  const code = await Promise.all(names.map(blockOf));
  const declare = await functionOf(code.join('\n'), { withRelease, Joi, ...more.around });
  const garden = definePlugin({
    name: 'garden',
    version: '1.0.0',
    apiVersion: 1,
    description: 'Has what the page shows.',
    ...(more.requires && { requires: more.requires }),
    register(ctx) {
      declare(ctx);
      more.beside?.(ctx);
    },
  });
  const host = await createTestHost({
    plugins: [garden, ...(more.plugins ?? [])],
    ...(more.log && { log: more.log }),
  });
  t.after(() => host.close());
  return host;
}

/** The beds of the page: how often they were looked at, whether they are shut. */
function someBeds(): { looks: number; isShut: boolean; isDry: boolean; openBeds: unknown } {
  const beds = {
    looks: 0,
    isShut: false,
    isDry: false,
    openBeds: async () => ({
      count: 3,
      look: () => (beds.looks += 1),
      areDry: async () => beds.isDry,
      close: () => (beds.isShut = true),
    }),
  };
  return beds;
}

const createGardener = (left: string[]) => () => ({ goHome: () => left.push('gardener') });

describe('a block of docs/plugins.md', () => {
  it('made: what an effect and a service make reaches other verbs, and is released', async (t) => {
    const beds = someBeds();
    const left: string[] = [];
    const around = { openBeds: beds.openBeds, createGardener: createGardener(left) };
    const host = await gardenOf(t, ['made'], { around });
    assert.deepEqual(host.effects(), ['garden: service gardener', 'garden: beds']);
    await host.hooks.observe('afterCycle', {} as never);
    assert.equal(beds.looks, 1);
    await host.setPlugins([]);
    assert.deepEqual([beds.isShut, left, host.effects()], [true, ['gardener'], []]);
  });

  it('status: its fields stand in the status of the daemon and of a share', async (t) => {
    const around = {
      openBeds: someBeds().openBeds,
      createGardener: createGardener([]),
      moodOf: (share: unknown) => {
        asked.push(share);
        return 'sunny';
      },
    };
    const asked: unknown[] = [];
    const host = await gardenOf(t, ['made', 'status'], { around });
    const { gardenBeds } = host.status() as unknown as { readonly gardenBeds: number };
    const { gardenMood } = host.shareStatus('photos') as unknown as { readonly gardenMood: string };
    assert.deepEqual([gardenBeds, gardenMood, asked], [3, 'sunny', ['photos']]);
  });

  it('trouble: a share has it for as long as it is found', async (t) => {
    const beds = someBeds();
    const around = { openBeds: beds.openBeds, createGardener: createGardener([]) };
    const host = await gardenOf(t, ['made', 'trouble'], { around });
    const troubles = () => host.hooks.collect('collectShareTroubles');
    await host.advance(60_000);
    assert.deepEqual(await troubles(), []);
    beds.isDry = true;
    await host.advance(60_000);
    assert.deepEqual(await troubles(), [{ share: 'photos', message: 'garden: its garden is dry' }]);
  });

  it('event: who listens hears what is given each hour', async (t) => {
    const lines: Record<string, unknown>[] = [];
    const log = pino({ level: 'info' }, { write: (line: string) => lines.push(JSON.parse(line) as never) });
    const heard: unknown[] = [];
    const neighbour = definePlugin({
      name: 'neighbour',
      version: '1.0.0',
      apiVersion: 1,
      description: 'Listens.',
      register: (ctx) => ctx.on('garden:watered' as never, (value: unknown) => void heard.push(value)),
    });
    const host = await gardenOf(t, ['event'], { log, plugins: [neighbour] });
    await host.advance(3_600_000);
    assert.deepEqual(heard, [{ bed: 'roses', litres: 4 }]);
    assert.deepEqual(
      lines.filter(({ msg }) => msg === 'wet feet').map(({ bed }) => bed),
      ['roses'],
    );
  });

  it('store: counts the starts, of which the second knows the first', async (t) => {
    const host = await gardenOf(t, ['store'], { requires: ['store'] });
    const file = path.join(host.stateDir, 'store/garden/starts.json');
    const kept = async () => (JSON.parse(await readFile(file, 'utf8')) as { readonly value: unknown }).value;
    assert.deepEqual(await kept(), { count: 1 });
    await host.configure({ plugins: { garden: { enabled: false } } });
    await host.configure({ plugins: { garden: { enabled: true } } });
    assert.deepEqual(await kept(), { count: 2 });
  });

  it('format: makes a message of an event, which whoever sends gets from the service', async (t) => {
    let formats: WebhookFormatsService | undefined;
    const beside: More['beside'] = (ctx) =>
      ctx.every({
        name: 'send',
        ms: () => 1_000,
        run: async () => {
          formats = ctx.use('webhookFormats');
        },
      });
    const host = await gardenOf(t, ['format'], { requires: ['webhookFormats'], beside });
    await host.advance(1_000);
    const event = {
      type: 'garden.flood',
      severity: 'info',
      message: 'It is wet.',
      data: {},
      key: '1',
    } as const;
    const message = await formats?.render('garden/card', { event, id: 'a1', at: 5, host: 'nas' });
    assert.deepEqual(message?.headers, { 'content-type': 'application/json', 'x-event': 'a1' });
    assert.deepEqual(JSON.parse(message?.body ?? ''), {
      title: 'garden.flood',
      text: 'nas: It is wet.',
      time: 5,
    });
  });

  it('migrate: takes the former key into the new form, which the schema takes', async () => {
    const made = await functionOf(`return {\n${await blockOf('migrate')}\n}.config;`, { Joi });
    const { schema, migrate } = made(undefined) as {
      readonly schema: Joi.ObjectSchema;
      readonly migrate: (table: object) => object;
    };
    const former = { bed: 'roses', note: 'old' };
    assert.match(String(schema.validate({ bed: 'roses' }).error), /"bed" is not allowed/);
    assert.deepEqual(migrate(former), { note: 'old', beds: ['roses'] });
    assert.equal(schema.validate(migrate({ bed: 'roses' })).error, undefined);
    assert.deepEqual(migrate({ beds: ['lilies'] }), { beds: ['lilies'] });
  });
});
