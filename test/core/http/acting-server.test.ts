/** For whom code runs that a third party's plugin has handed to the web server. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import type { Request, ResponseToolkit, Server } from '@hapi/hapi';
import { createTestHost } from 'mountkeeper/testing';
import type { TestHost } from 'mountkeeper/testing';
import type { PluginContext } from 'mountkeeper';
import { actorNow } from '../../../core/plugins/instance/acting-plugin.ts';
import { small } from '../../support/plugins/small-plugins.ts';

type Lifecycle = (request: Request, h: ResponseToolkit) => unknown;

/** Notes by `what` for whom code runs that it has begun. */
class Notebook {
  readonly notes = new Map<string, string>();

  async note(what: string): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    this.notes.set(what, actorNow()?.name ?? 'the core');
  }

  /** Goes on after its note. */
  readonly next =
    (what: string): Lifecycle =>
    (_request, h) =>
      this.note(what).then(() => h.continue);
}

async function open(
  t: TestContext,
  declare: (ctx: PluginContext) => void,
  { ours = (_ctx: PluginContext): void => undefined, guard = false } = {},
): Promise<TestHost> {
  const test = await createTestHost({
    plugins: [
      small('odd', [], { declare: declare as never, guard }),
      small('ours', [], { declare: ours as never }),
    ],
    strangers: ['odd'],
    config: { plugins: { odd: { enabled: true } } },
  });
  t.after(() => test.close());
  assert.equal(test.info('odd').state, 'active', test.info('odd').reason);
  return test;
}

const post = (url: string) => ({ method: 'POST', url, payload: '{"bed":"roses"}' });

describe('what a third party hands to the web server', () => {
  it('goes to one that has all its parts', async (t) => {
    let parts: readonly unknown[] = [];
    await open(t, (ctx) =>
      ctx.hapi(
        {
          name: 'parts',
          register: (server: Server) => {
            parts = [typeof server.cache.provision, typeof server.method];
          },
        },
        {},
      ),
    );
    assert.deepEqual(parts, ['function', 'function']);
  });

  it('of a route runs for it: its extensions, what comes before the handler, and what checks', async (t) => {
    const book = new Notebook();
    const bind = { count: 0 };
    const options = (name: string) =>
      ({
        bind,
        pre: [
          { method: () => book.note(`${name} pre`).then(() => 1), assign: 'one' },
          [() => book.note(`${name} beside`).then(() => 2)],
        ],
        ext: {
          onPreHandler: { method: book.next(`${name} ext`) },
          onPreResponse: [{ method: book.next(`${name} list`), options: { bind } }],
        },
        validate: {
          payload: async (value: unknown) => book.note(`${name} validate`).then(() => value),
          query: async () => {
            await book.note(`${name} query`);
            throw new Error('odd');
          },
          failAction: book.next(`${name} fail`),
        },
        response: { schema: () => book.note(`${name} response`) },
      }) as never;
    const handler = function count(this: typeof bind): string {
      this.count += 1;
      return 'lit';
    } as never;
    const test = await open(t, (ctx) => {
      ctx.route({ method: 'POST', path: '/own', handler, options: options('own') });
      ctx.route({
        method: 'POST',
        path: '/made',
        options: (() => ({ ...(options('made') as object), handler })) as never,
      });
      ctx.hapi(
        {
          name: 'native',
          register: (server: Server) =>
            server.route({ method: 'POST', path: '/native', handler, options: options('native') }),
        } as never,
        {},
      );
    });
    for (const path of ['own', 'made', 'native']) {
      const { statusCode, payload } = await test.inject(post(`/ext/odd/${path}?a=1`));
      assert.deepEqual([statusCode, payload], [200, 'lit'], path);
    }
    assert.equal(bind.count, 3, 'its own object');
    assert.equal(book.notes.size, 24, [...book.notes.keys()].join(', '));
    for (const [what, whose] of book.notes) assert.equal(whose, 'odd', what);
  });

  it('runs for it also where it asks at the door of others, whose own code does not', async (t) => {
    const book = new Notebook();
    class Lock {
      readonly #word = 'rose';
      async authenticate(_request: Request, h: ResponseToolkit): Promise<unknown> {
        await book.note('authenticate');
        return h.authenticated({ credentials: { user: this.#word } });
      }
      readonly response = book.next('seal');
    }
    const guard = {
      name: 'lock',
      register: async (server: Server): Promise<void> => {
        server.auth.scheme('lock', () => {
          void book.note('scheme');
          return new Lock() as never;
        });
        server.auth.strategy('lock', 'lock');
        server.auth.default('lock');
        server.ext('onPostAuth', book.next('ext') as never);
        server.ext([{ type: 'onPreResponse', method: [book.next('last') as never] }]);
        server.events.on('response', () => void book.note('listener'));
        await server.register({
          plugin: {
            name: 'inner',
            register: (inner: Server) => inner.ext('onPreHandler', book.next('inner') as never),
          },
        } as never);
      },
    };
    const test = await open(t, (ctx) => ctx.hapi(guard as never, {}), {
      guard: true,
      ours: (ctx) =>
        ctx.route({
          method: 'GET',
          path: '/ours',
          handler: async ({ auth }) => {
            await book.note('ours');
            return auth.credentials.user as string;
          },
          options: { ext: { onPreResponse: { method: book.next('ours too') as never } } },
        }),
    });
    assert.equal((await test.inject('/ours')).payload, 'rose');
    await book.note('the test');
    const { ours, 'ours too': too, 'the test': self, ...theirs } = Object.fromEntries(book.notes);
    assert.deepEqual([ours, too, self], ['the core', 'the core', 'the core']);
    assert.deepEqual(theirs, {
      authenticate: 'odd',
      seal: 'odd',
      scheme: 'odd',
      ext: 'odd',
      last: 'odd',
      listener: 'odd',
      inner: 'odd',
    });
  });

  it('runs for it in a native plugin with routes of its own alone, whose listeners can be taken away', async (t) => {
    const book = new Notebook();
    const listener = (): void => void book.note('listener');
    const native = {
      name: 'native',
      register: (server: Server): void => {
        server.route({ method: 'GET', path: '/', handler: () => 'lit' });
        server.ext('onPreHandler', book.next('ext') as never);
        server.ext('onPreStart', (own: Server) => own.ext('onPostHandler', book.next('late') as never));
        server.events.on('route', () => undefined).on('response', listener);
        server.dependency([], async (own) => own.ext('onPreResponse', book.next('after') as never));
        server.route({
          method: 'GET',
          path: '/off',
          handler: () => {
            server.events.removeListener('response', listener);
            return 'off';
          },
        });
      },
    };
    const test = await open(t, (ctx) => ctx.hapi(native as never, {}));
    assert.equal((await test.inject('/ext/odd')).payload, 'lit');
    await book.note('the test');
    assert.deepEqual(Object.fromEntries(book.notes), {
      ext: 'odd',
      late: 'odd',
      after: 'odd',
      listener: 'odd',
      'the test': 'the core',
    });
    assert.equal((await test.inject('/ext/odd/off')).payload, 'off');
    book.notes.clear();
    assert.equal((await test.inject('/ext/odd')).payload, 'lit');
    await book.note('the test');
    assert.equal(book.notes.has('listener'), false);
  });
});
