/** Third parties' routes: below an address of their own, and answered for when they take too long. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Request, ResponseToolkit, Server } from '@hapi/hapi';
import { createTestHost } from 'mountkeeper/testing';
import type { TestHost } from 'mountkeeper/testing';
import type { PluginContext } from 'mountkeeper';
import { ask, createServer, ledger } from '../../support/http/test-server.ts';
import { collectLog } from '../../support/platform/collected-log.ts';
import { small } from '../../support/plugins/small-plugins.ts';

type Register = (server: Server) => unknown;

const page = (path: string, text: string) => ({ method: 'GET', path, handler: () => text }) as const;
const native = (register: Register, name = 'native') => ({ name, register }) as never;

/** A plugin that comes with Mountkeeper, which serves `/api/truth`, and a third party's. */
async function beside(
  t: TestContext,
  declare: (ctx: PluginContext) => void,
  more: object = {},
): Promise<TestHost> {
  const { log } = collectLog();
  const test = await createTestHost({
    plugins: [
      small('ours', [], { declare: (ctx) => ctx.route(page('/api/truth', 'true')) }),
      small('theirs', [], { declare, ...more }),
    ],
    strangers: ['theirs'],
    config: { plugins: { theirs: { enabled: true } } },
    log,
  });
  t.after(() => test.close());
  return test;
}

const payload = async (test: TestHost, path: string) => (await test.inject(path)).payload;
const status = async (test: TestHost, path: string) => (await test.inject(path)).statusCode;

describe('routes of a third party', () => {
  it('get the prefix of their plugin, unless they have it', async (t) => {
    const test = await beside(t, (ctx) => {
      ctx.route(page('/', 'root'), page('/a', 'a'), page('/ext/theirs/b', 'b'), page('/ext/ours/c', 'c'));
      ctx.route(page('/ext/theirsandmore', 'd'));
    });
    const at = ['/ext/theirs', '/ext/theirs/a', '/ext/theirs/b', '/ext/theirs/ext/ours/c'];
    assert.deepEqual(await Promise.all(at.map((one) => payload(test, one))), ['root', 'a', 'b', 'c']);
    assert.equal(await payload(test, '/ext/theirs/ext/theirsandmore'), 'd');
    assert.deepEqual(
      await Promise.all(['/a', '/ext/ours/c', '/ext/theirsandmore'].map((one) => status(test, one))),
      [404, 404, 404],
    );
    const [, routes] = test.info('theirs').contributes?.find(([kind]) => kind === 'routes') ?? [];
    assert.deepEqual(routes?.slice(0, 2), ['GET /ext/theirs', 'GET /ext/theirs/a']);
  });

  it('shadow nothing, though they take everything', async (t) => {
    const all = { method: '*', path: '/{any*}', handler: () => 'mine' } as const;
    const test = await beside(t, (ctx) => {
      ctx.route(all, page('/api/truth', 'false'));
      ctx.hapi(
        native(async (server) => {
          server.route(page('/native/api/truth', 'false'));
          const inner = native((one) => one.route({ ...all, path: '/{rest*}' }), 'inner');
          await server.register(inner, { routes: { prefix: '/deep' } });
        }),
        {},
      );
    });
    assert.equal(test.info('theirs').state, 'active');
    assert.equal(await payload(test, '/api/truth'), 'true');
    assert.equal(await status(test, '/whatever'), 404);
    assert.equal(await payload(test, '/ext/theirs/whatever'), 'mine');
    assert.equal(await payload(test, '/ext/theirs/api/truth'), 'false');
    assert.equal(await payload(test, '/ext/theirs/deep/x'), 'mine');
  });

  it('are refused where they would be next to their prefix', async (t) => {
    const declared = await beside(t, (ctx) => ctx.route(page('evil/x', '')));
    assert.match(declared.info('theirs').reason ?? '', /"evil\/x" of a route must begin with "\/"/);
    const registered = await beside(t, (ctx) =>
      ctx.hapi(
        native((server) => server.route(page('evil/x', ''))),
        {},
      ),
    );
    assert.match(registered.info('theirs').reason ?? '', /"evil\/x" of a route must begin with "\/"/);
  });
});

describe('a path of a third party that takes the web server for ever', () => {
  const SLOW = '/{a}x{b}x{c}x{d}x{e}x{f}x{g}x{h}z';
  const declared: Readonly<Record<string, (ctx: PluginContext) => void>> = {
    'as a route': (ctx) => ctx.route(page(SLOW, '')),
    'by a native hapi plugin': (ctx) =>
      ctx.hapi(
        native((server) => server.route(page(SLOW, ''))),
        {},
      ),
  };
  for (const [how, declare] of Object.entries(declared))
    it(`is refused, and asked of nobody: ${how}`, async (t) => {
      const test = await beside(t, declare);
      const { state, reason } = test.info('theirs');
      assert.match(state, /^(?:failed|invalid)$/);
      assert.match(reason ?? '', /two parameters between two slashes/);
      assert.equal(await status(test, `/ext/theirs/${'x'.repeat(40)}`), 404);
    });
});

describe('a native hapi plugin of a third party', () => {
  it('may be a whole module, and acts on its own routes alone in what hapi calls later', async (t) => {
    const spoil = (_request: Request, h: ResponseToolkit) => h.response('spoilt').takeover();
    const late = native((server) => {
      server.route(page('/own', 'own'));
      server.dependency([], async (one) => one.ext('onPreResponse', spoil));
    });
    const test = await beside(t, (ctx) => ctx.hapi({ plugin: late } as never, {}));
    assert.equal(test.info('theirs').state, 'active');
    assert.equal(await payload(test, '/api/truth'), 'true');
    assert.equal(await payload(test, '/ext/theirs/own'), 'spoilt');
  });

  it('acts on its own routes alone, also by what it registers in turn', async (t) => {
    const heard: string[] = [];
    const spoil = (request: Request, h: ResponseToolkit) => {
      heard.push(request.path);
      return h.response('spoilt').takeover();
    };
    const test = await beside(t, (ctx) => {
      ctx.route(page('/own', 'own'));
      ctx.hapi(
        native(async (server) => {
          server.ext([{ type: 'onPreResponse', method: spoil }]);
          server.events.on('response', (request) => heard.push(`response ${request.path}`));
          await server.register(native((one) => one.ext('onPreHandler', spoil), 'inner'));
        }),
        {},
      );
    });
    assert.equal(await payload(test, '/api/truth'), 'true');
    assert.equal(await status(test, '/nowhere'), 404);
    assert.deepEqual(heard, []);
    assert.equal(await payload(test, '/ext/theirs/own'), 'spoilt');
    assert.deepEqual(new Set(heard), new Set(['/ext/theirs/own', 'response /ext/theirs/own']));
  });

  it('hears of its own requests once or until it leaves, and has events of its own', async (t) => {
    const heard: string[] = [];
    let first: string | undefined;
    const test = await beside(t, (ctx) => {
      ctx.route(page('/own', 'own'));
      ctx.hapi(
        native(async (server) => {
          server.events.once('response', ({ path }) => heard.push(`once ${path}`));
          void server.events.once('response').then(([one]) => (first = (one as Request).path));
          const twice = (): void => {
            heard.push('twice');
          };
          server.events.on({ name: 'response', count: 2 }, twice);
          const never = (): void => void heard.push('never');
          server.events.on('response', never).removeListener('response', never);
          server.event('bloom');
          await server.register(
            native((one) => void one.events.on('bloom', (what: string) => heard.push(what)), 'inner'),
          );
          server.events.emit('bloom', 'roses');
        }),
        {},
      );
    });
    assert.equal(test.info('theirs').state, 'active');
    assert.deepEqual(heard.splice(0), ['roses']);
    assert.equal(await payload(test, '/api/truth'), 'true');
    assert.deepEqual(heard, []);
    for (const _ of [1, 2, 3]) assert.equal(await payload(test, '/ext/theirs/own'), 'own');
    assert.deepEqual(heard, ['once /ext/theirs/own', 'twice', 'twice']);
    assert.equal(first, '/ext/theirs/own');
  });

  const REFUSED: Readonly<Record<string, Register>> = {
    'ext\\("onRequest"\\)': (server) => server.ext('onRequest', (_request, h) => h.continue),
    'ext\\("onPreAuth"\\) without a method': (server) => server.ext('onPreAuth' as never),
    'decorate\\(\\) with extend or apply': (server) =>
      server.decorate(
        'toolkit',
        'response' as never,
        (() => () => 'mine') as never,
        { extend: true } as never,
      ),
    'auth.default\\(\\)': (server) => server.auth.default('mine'),
    state: (server) => server.state('everybodys', { strictHeader: true }),
    stop: (server) => server.stop(),
    listener: (server) => server.listener.on('request', () => undefined),
    encoder: (server) => server.encoder('gzip', (() => undefined) as never),
    'events.emit\\("response"\\)': (server) => server.events.emit('response', {}),
    'events.removeAllListeners\\(\\)': (server) => void server.events.removeAllListeners('response'),
    'events.few\\(\\)': (server) =>
      (server.events as unknown as { few(of: object): void }).few({ name: 'log', count: 1 }),
  };
  for (const [what, register] of Object.entries(REFUSED))
    it(`is refused by name where it would act on others: ${what}`, async (t) => {
      const test = await beside(t, (ctx) => ctx.hapi(native(register), {}));
      const { state, reason } = test.info('theirs');
      assert.equal(state, 'failed');
      assert.match(reason ?? '', new RegExp(`server\\.${what} would act on routes of others`));
      assert.equal(await payload(test, '/api/truth'), 'true');
    });

  it('keeps what is its own: decorations with a name of their own, a strategy, methods', async (t) => {
    const test = await beside(t, (ctx) =>
      ctx.hapi(
        native((server) => {
          server.decorate('toolkit', 'hello' as never, (() => 'hello') as never);
          server.auth.scheme('open', () => ({
            authenticate: (_request, h) => h.authenticated({ credentials: {} }),
          }));
          server.auth.strategy('open', 'open');
          server.method('twice', (text: string) => text + text);
          server.route({
            method: 'GET',
            path: '/hello',
            options: { auth: 'open' },
            handler: (request, h) =>
              (request.server.methods as unknown as { twice(text: string): string }).twice(
                (h as unknown as { hello(): string }).hello(),
              ),
          });
        }),
        {},
      ),
    );
    assert.equal(await payload(test, '/ext/theirs/hello'), 'hellohello');
  });

  it('that guards decides about every request', async (t) => {
    const test = await beside(
      t,
      (ctx) =>
        ctx.hapi(
          native((server) => server.ext('onRequest', (_request, h) => h.response('shut').takeover())),
          {},
        ),
      { guard: true },
    );
    assert.equal(await payload(test, '/api/truth'), 'shut');
  });
});

describe('what a third party says of itself', () => {
  it('is one line without escape sequences, also where the web server refuses its route', async (t) => {
    const label = 'a bed\n\u001b[31mred\u202e';
    const refused = await beside(t, (ctx) =>
      ctx.route({ method: 'G ET', path: '/x y\n', handler: () => 'x' } as never),
    );
    const { reason = '' } = refused.info('theirs');
    assert.match(reason, /"method"/);
    assert.doesNotMatch(reason, /[\u0000-\u001f]|\[31m|"path":/);
    const named = await beside(t, (ctx) => ctx.effect(label, () => () => undefined), {
      description: `Grows\n${'x'.repeat(1_000)}`,
    });
    const { effects, description } = named.info('theirs');
    assert.equal(effects.at(-1), 'a bed red');
    assert.match(description, /^Grows x{293}…$/);
  });

  it('takes no room from what the daemon says after it', async (t) => {
    const fail = (): never => {
      throw new Error('x'.repeat(5_000));
    };
    const { reason = '' } = (await beside(t, fail, { guard: true })).info('theirs');
    assert.match(
      reason,
      /^x{599}…; it may be what lets people in, so nobody is let in but by the command socket$/,
    );
  });
});

describe('a route of a third party that takes too long', () => {
  const hang = () => new Promise<never>(() => undefined);
  const theirs = (routes: readonly object[], hapi: readonly object[] = []) => ({
    ...ledger('theirs', { routes: routes as never, hapi: hapi as never }),
    routePrefix: '/ext/theirs',
  });

  it('is answered with 503 that names the plugin; others may take their time', async (t) => {
    const server = await createServer({ routeMs: 150 });
    t.after(() => server.http.close());
    const slow = async (): Promise<string> => {
      await new Promise((resolve) => setTimeout(resolve, 400));
      return 'late';
    };
    const get = (path: string, handler: unknown, options: object = {}) => ({
      method: 'GET',
      path,
      handler,
      options,
    });
    await server.swap(
      ledger('ours', { routes: [get('/slow', slow)] as never }),
      theirs(
        [
          get('/ext/theirs/hang', hang),
          get('/ext/theirs/pre', () => 'never', { pre: [hang] }),
          get('/ext/theirs/own-limit', hang, { timeout: { server: 600_000 } }),
          get('/ext/theirs/quick', () => 'quick'),
          get('/ext/theirs/refuses', (_request: unknown, h: ResponseToolkit) => h.response('full').code(503)),
        ],
        [{ plugin: native((one) => one.route(get('/native', hang) as never)), options: {} }],
      ),
    );
    const asked = (path: string) => ask({ port: server.port, path });
    for (const path of ['hang', 'pre', 'own-limit', 'native']) {
      const { status: code, body } = await asked(`/ext/theirs/${path}`);
      assert.deepEqual(
        [code, (JSON.parse(body) as { message: string }).message],
        [503, 'The plugin "theirs" did not answer within 0.15 s.'],
        path,
      );
    }
    assert.equal((await asked('/ext/theirs/quick')).body, 'quick');
    assert.equal((await asked('/ext/theirs/refuses')).body, 'full');
    assert.equal((await asked('/slow')).body, 'late');
    const lines = server.logLines.filter(({ msg }) => msg === 'a route did not answer in time');
    assert.deepEqual(
      lines.map(({ plugin, path }) => `${String(plugin)} ${String(path)}`),
      ['hang', 'pre', 'own-limit', 'native'].map((one) => `theirs /ext/theirs/${one}`),
    );
  });

  it('is answered also where its answer cannot be sent', { timeout: 10_000 }, async (t) => {
    const server = await createServer({ routeMs: 150 });
    t.after(() => server.http.close());
    const boom = Object.assign(new Error('x'), { isBoom: true, output: { statusCode: 'x' } });
    const odd = {
      symbol: () => Symbol('x'),
      boom: () => {
        throw boom;
      },
    };
    const routes = Object.entries(odd).map(([name, handler]) => ({
      method: 'GET',
      path: `/ext/theirs/${name}`,
      handler,
    }));
    await server.swap(theirs(routes));
    for (const name of Object.keys(odd)) {
      const { status: code, body } = await ask({ port: server.port, path: `/ext/theirs/${name}` });
      assert.equal(code, 500, name);
      assert.match(body, /The plugin \\"theirs\\" gave an answer that cannot be sent/);
    }
    const lines = server.logLines.filter(({ msg }) => msg === 'a route gave an answer that cannot be sent');
    assert.equal(lines.length, 2);
  });

  it('is sent where an error carries a text, or leads elsewhere', async (t) => {
    const server = await createServer();
    t.after(() => server.http.close());
    const thrown = (output: object) => () => {
      throw Object.assign(new Error('x'), { isBoom: true, output });
    };
    const routes = Object.entries({
      text: thrown({ statusCode: 418, payload: 'a teapot', headers: {} }),
      moved: thrown({ statusCode: 302, payload: {}, headers: { location: '/elsewhere' } }),
    }).map(([name, handler]) => ({ method: 'GET', path: `/ext/theirs/${name}`, handler }));
    await server.swap(theirs(routes));
    const { status: code, body } = await ask({ port: server.port, path: '/ext/theirs/text' });
    assert.deepEqual([code, body], [418, 'a teapot']);
    const moved = await ask({ port: server.port, path: '/ext/theirs/moved' });
    assert.deepEqual([moved.status, moved.headers.location], [302, '/elsewhere']);
    assert.deepEqual(
      server.logLines.filter(({ msg }) => msg === 'a route gave an answer that cannot be sent'),
      [],
    );
  });

  it('may take its time once the plugin answers by itself', { timeout: 10_000 }, async (t) => {
    const server = await createServer({ routeMs: 50 });
    t.after(() => server.http.close());
    const handler = ({ raw: { res } }: Request, h: ResponseToolkit) => {
      // Longer than a route may take, and the second after it.
      setTimeout(() => res.writeHead(200).end('at last'), 1_500);
      return h.abandon;
    };
    await server.swap(theirs([{ method: 'GET', path: '/ext/theirs/slow', handler }]));
    const { status: code, body } = await ask({ port: server.port, path: '/ext/theirs/slow' });
    assert.deepEqual([code, body], [200, 'at last']);
  });
});
