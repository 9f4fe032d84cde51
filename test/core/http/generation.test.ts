import assert from 'node:assert/strict';
import { Agent } from 'node:http';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Server } from '@hapi/hapi';
import type { Clock } from '../../../core/contract/platform.ts';
import { createClock } from '../../../core/platform/clock.ts';
import { until, within } from '../../support/platform/wait.ts';
import { ask, createServer, dial, ledger, textRoute } from '../../support/http/test-server.ts';
import type { TestServer } from '../../support/http/test-server.ts';

interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

function createGate(): Gate {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

describe('a generation', () => {
  let server: TestServer;
  beforeEach(async () => {
    server = await createServer({ retireTimeoutMs: 15_000 });
  });
  afterEach(() => server.http.close());

  const get = (path: string, agent?: Agent) => ask({ port: server.port, path, ...(agent ? { agent } : {}) });

  it('serves what the ledgers declare, and only that after a swap', async () => {
    await server.swap(
      ledger('a', { routes: [textRoute('/a', 'a1')] }),
      ledger('b', { routes: [textRoute('/b', 'b1')] }),
    );
    assert.deepEqual([(await get('/a')).body, (await get('/b')).body], ['a1', 'b1']);
    await server.swap(ledger('a', { routes: [textRoute('/a', 'a2')] }));
    assert.deepEqual([(await get('/a')).body, (await get('/b')).status], ['a2', 404]);
  });

  it('is built while others have their turn, between two plugins', async () => {
    let turns = 0;
    let isBuilt = false;
    const count = (): void => {
      turns += 1;
      if (!isBuilt) setImmediate(count);
    };
    setImmediate(count);
    await server.swap(
      ...['a', 'b', 'c', 'd', 'e'].map((name) => ledger(name, { routes: [textRoute(`/${name}`, name)] })),
    );
    isBuilt = true;
    assert.ok(turns >= 5, `${turns} turns`);
  });

  it('is refused by the name of a plugin whose routes never come, though it holds up the end, too', async () => {
    const real = createClock();
    const after: Clock['after'] = (ms, fn, how) => real.after(ms === 5_000 ? 50 : ms, fn, how);
    const other = await createServer({ clock: { ...real, after } });
    try {
      const forever = () => new Promise<void>(() => undefined);
      const register = (own: Server) => {
        own.ext('onPreStop', forever);
        return forever();
      };
      const never = { name: 'never', register };
      await assert.rejects(
        other.swap(
          ledger('a', { routes: [textRoute('/a', 'a')] }),
          ledger('b', { hapi: [{ plugin: never, options: {} }] }),
        ),
        /routes of plugin b: the routes were not ready within 5 s/,
      );
    } finally {
      await other.http.close();
    }
  });

  it('keeps a connection open over a swap', async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    await server.swap(ledger('a', { routes: [textRoute('/a', 'one')] }));
    assert.equal((await get('/a', agent)).body, 'one');
    await server.swap(ledger('a', { routes: [textRoute('/a', 'two')] }));
    assert.equal((await get('/a', agent)).body, 'two');
    assert.equal(server.http.stats().sockets, 1);
    agent.destroy();
  });

  it('finishes a request where it began, then ends', async () => {
    const gate = createGate();
    await server.swap(
      ledger('a', {
        routes: [
          {
            method: 'GET',
            path: '/slow',
            handler: async () => {
              await gate.opened;
              return 'old';
            },
          },
        ],
      }),
    );
    const reply = get('/slow');
    await until('the request runs', () => server.http.stats().inFlight === 1, {
      timeoutMs: 20_000,
      everyMs: 2,
    });
    await server.swap(ledger('a', { routes: [textRoute('/slow', 'new')] }));
    assert.equal(server.http.stats().generations, 2);
    assert.equal((await get('/slow')).body, 'new');
    gate.open();
    assert.equal((await reply).body, 'old');
    await until('the old generation is gone', () => server.http.stats().generations === 1, {
      timeoutMs: 20_000,
      everyMs: 2,
    });
  });

  it('lets a handler swap the very generation it runs on', async () => {
    await server.swap(
      ledger('a', {
        routes: [
          {
            method: 'POST',
            path: '/swap',
            handler: async () => {
              await server.swap(ledger('a', { routes: [textRoute('/new', 'new')] }));
              return 'swapped';
            },
          },
        ],
      }),
    );
    const reply = await within(
      'the answer',
      20_000,
      ask({ port: server.port, path: '/swap', method: 'POST' }),
    );
    assert.equal(reply.body, 'swapped');
    assert.equal((await get('/new')).body, 'new');
  });

  it('ends what never finishes when its time is over', async () => {
    await server.http.close();
    server = await createServer({ retireTimeoutMs: 50 });
    await server.swap(
      ledger('a', {
        routes: [{ method: 'GET', path: '/never', handler: () => new Promise<never>(() => undefined) }],
      }),
    );
    const never = get('/never');
    never.catch(() => undefined);
    await until('the request runs', () => server.http.stats().inFlight === 1, {
      timeoutMs: 20_000,
      everyMs: 2,
    });
    await server.swap(ledger('a'));
    await assert.rejects(within('the end', 20_000, never), /socket hang up|ECONNRESET/);
    await until('the old generation is gone', () => server.http.stats().generations === 1, {
      timeoutMs: 20_000,
      everyMs: 2,
    });
  });

  it('does not wait for pipelined requests of a connection that died', async () => {
    const gate = createGate();
    await server.swap(
      ledger('a', {
        routes: [
          {
            method: 'GET',
            path: '/slow',
            handler: async () => {
              await gate.opened;
              return 'x';
            },
          },
        ],
      }),
    );
    const wire = await dial(server.port);
    wire.socket.write('GET /slow HTTP/1.1\r\nhost: localhost\r\n\r\n'.repeat(5));
    await until('the first runs', () => server.http.stats().inFlight === 1, {
      timeoutMs: 20_000,
      everyMs: 2,
    });
    wire.socket.resetAndDestroy();
    await until('none is left', () => server.http.stats().inFlight === 0, { timeoutMs: 20_000, everyMs: 2 });
    await server.swap(ledger('a'));
    await until('the old generation is gone', () => server.http.stats().generations === 1, {
      timeoutMs: 10_000,
      everyMs: 2,
    });
    gate.open();
  });

  it('answers 503 for a plugin that is not active, and for no other', async () => {
    const native = { name: 'native', register: (own: Server) => own.route(textRoute('/native', 'native')) };
    await server.swap(
      ledger('a', { routes: [textRoute('/a', 'a')], hapi: [{ plugin: native, options: {} }] }),
      ledger('b', { routes: [textRoute('/b', 'b')] }),
    );
    server.inactive.add('a');
    for (const path of ['/a', '/native']) {
      const reply = await get(path);
      assert.deepEqual([reply.status, reply.headers['retry-after']], [503, '1'], path);
    }
    assert.equal((await get('/b')).body, 'b');
    server.inactive.clear();
    assert.deepEqual([(await get('/a')).body, (await get('/native')).body], ['a', 'native']);
  });

  it('answers 503 for everything while a guard is not active', async () => {
    await server.swap(ledger('door', { guard: true }), ledger('b', { routes: [textRoute('/b', 'b')] }));
    assert.equal((await get('/b')).body, 'b');
    server.inactive.add('door');
    for (const path of ['/b', '/none']) assert.equal((await get(path)).status, 503);
    assert.equal((await get('/healthz')).status, 200);
  });

  it('answers 503 for everything while the daemon says that the door is closed', async () => {
    let reason: string | undefined = 'The guard failed.';
    const guarded = await createServer({ guardState: () => reason });
    await guarded.swap(ledger('b', { routes: [textRoute('/b', 'b')] }));
    const shut = await ask({ port: guarded.port, path: '/b' });
    reason = undefined;
    const open = await ask({ port: guarded.port, path: '/b' });
    await guarded.http.close();
    assert.deepEqual(
      [shut.status, (JSON.parse(shut.body) as { message: string }).message, open.body],
      [503, 'The guard failed.', 'b'],
    );
  });

  it('names a plugin whose routes clash or whose hapi plugin throws, and serves on as before', async () => {
    await server.swap(ledger('a', { routes: [textRoute('/a', 'a')] }));
    const clash = server.http.projector.build(
      [ledger('a', { routes: [textRoute('/a', 'x')] }), ledger('b', { routes: [textRoute('/a', 'y')] })],
      () => true,
    );
    await assert.rejects(clash, /plugin b: .*\/a/);
    const throwing = {
      name: 'bad',
      register: () => {
        throw new Error('no luck');
      },
    };
    await assert.rejects(
      server.http.projector.build([ledger('c', { hapi: [{ plugin: throwing, options: {} }] })], () => true),
      /plugin c: no luck/,
    );
    assert.equal((await get('/a')).body, 'a');
    assert.equal(server.http.stats().generations, 1);
  });

  it('leaves nothing of a generation that was built and discarded', async () => {
    await server.swap(ledger('a', { routes: [textRoute('/a', 'a')] }));
    const built = await server.http.projector.build(
      [ledger('a', { routes: [textRoute('/a', 'x')] })],
      () => true,
    );
    await built.discard();
    assert.equal((await get('/a')).body, 'a');
    assert.equal(server.http.stats().generations, 1);
  });

  it("hides what went wrong in a route from the client and tells it in the log with the plugin's name", async () => {
    await server.swap(
      ledger('a', {
        routes: [
          {
            method: 'GET',
            path: '/a',
            handler: () => {
              throw new Error('database password is x');
            },
          },
        ],
      }),
    );
    const reply = await get('/a');
    assert.equal(reply.status, 500);
    assert.ok(!reply.body.includes('password'));
    const line = server.logLines.find((one) => one['msg'] === 'a route failed');
    assert.deepEqual(
      [line?.['plugin'], line?.['path'], (line?.['err'] as { message: string } | undefined)?.message],
      ['a', '/a', 'database password is x'],
    );
  });

  it('answers Expect: 100-continue and refuses bodies above 1 MiB', async () => {
    await server.swap(
      ledger('a', {
        routes: [
          {
            method: 'POST',
            path: '/a',
            handler: (request) => `${String(request.headers['content-length'])} bytes`,
          },
        ],
      }),
    );
    const body = JSON.stringify('x'.repeat(1000));
    const wire = await dial(server.port);
    wire.socket.write(
      'POST /a HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\nconnection: close\r\n' +
        `content-length: ${body.length}\r\n\r\n`,
    );
    await until('it is asked to go on', () => wire.text().startsWith('HTTP/1.1 100 '), {
      timeoutMs: 20_000,
      everyMs: 2,
    });
    wire.socket.write(body);
    await wire.ended;
    assert.match(wire.text(), /1002 bytes$/);
    assert.equal(
      (await ask({ port: server.port, path: '/a', method: 'POST', body: 'x'.repeat(1024 * 1024 + 1) }))
        .status,
      413,
    );
  });

  it('is swapped under load without one failed request', async () => {
    const serving = (round: number) =>
      ledger('a', {
        routes: [
          textRoute('/a', `round ${round}`),
          {
            method: 'GET',
            path: '/wait',
            handler: async () => {
              await new Promise((resolve) => setImmediate(resolve));
              return 'waited';
            },
          },
          { method: 'POST', path: '/post', handler: (request) => request.payload as object },
        ],
      });
    await server.swap(serving(0));
    const agent = new Agent({ keepAlive: true, maxSockets: 16 });
    let running = true;
    let answers = 0;
    const client = async (kind: number): Promise<void> => {
      while (running) {
        const reply =
          kind % 3 === 2
            ? await ask({ port: server.port, path: '/post', method: 'POST', body: '{"a":1}', agent })
            : await ask({ port: server.port, path: kind % 3 === 1 ? '/wait' : '/a', agent });
        assert.equal(reply.status, 200);
        answers += 1;
      }
    };
    const clients = Promise.all(Array.from({ length: 16 }, (_, kind) => client(kind)));
    try {
      for (let round = 1; round <= 60; round += 1) {
        const before = answers;
        await server.swap(serving(round));
        await until('the load goes on', () => answers > before, { timeoutMs: 20_000, everyMs: 1 });
      }
    } finally {
      running = false;
    }
    await clients;
    assert.equal((await get('/a')).body, 'round 60');
    agent.destroy();
    await until('one generation is left', () => server.http.stats().generations === 1, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    await until('no socket is left', () => server.http.stats().sockets === 0, {
      timeoutMs: 20_000,
      everyMs: 5,
    });
    assert.equal(server.http.stats().inFlight, 0);
  });
});
