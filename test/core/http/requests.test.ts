/** Who asks for what: what is kept of a request, and what is told of one whose parts are not as they should be. */
import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ServerRoute } from '@hapi/hapi';
import type { AnsweredRequest, Requester } from '../../../core/contract/http.ts';
import { requesterNow } from '../../../core/http/requests.ts';
import { ask, createServer, ledger } from '../../support/http/test-server.ts';
import type { TestServer } from '../../support/http/test-server.ts';
import { until } from '../../support/platform/wait.ts';

const PATIENCE = { timeoutMs: 20_000, everyMs: 10 };

describe('what is told of requests', () => {
  let server: TestServer;
  let answered: AnsweredRequest[];

  beforeEach(async () => {
    answered = [];
    server = await createServer({ answered: (request) => void answered.push(request) });
  });
  afterEach(() => server.http.close());

  const post = (path: string, body = '{}') =>
    ask({
      port: server.port,
      method: 'POST',
      path,
      body,
      headers: { 'content-type': 'application/json' },
    });
  const told = async (count: number): Promise<AnsweredRequest> => {
    await until(`${count} are told of`, () => answered.length >= count, PATIENCE);
    assert.equal(answered.length, count);
    return answered[count - 1] as AnsweredRequest;
  };

  it('knows what a route has answered by itself', async () => {
    const route = (method: 'GET' | 'POST', code: number): ServerRoute => ({
      method,
      path: '/self',
      handler: ({ raw }, h) => {
        raw.res.statusCode = code;
        raw.res.end('by itself');
        return h.abandon;
      },
    });
    await server.swap(ledger('page', { routes: [route('GET', 200), route('POST', 202)] }));
    assert.equal((await ask({ port: server.port, path: '/self' })).body, 'by itself');
    await post('/self');
    assert.equal((await told(1)).status, 202);
    assert.deepEqual(
      server.logLines.filter(({ level }) => Number(level) >= 40),
      [],
    );
  });

  it('keeps no body in memory for what a request left behind', async () => {
    setFlagsFromString('--expose_gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const bodies: WeakRef<object>[] = [];
    const during: (Requester | undefined)[] = [];
    let left: NodeJS.Timeout | undefined;
    await server.swap(
      ledger('page', {
        routes: [
          {
            method: 'POST',
            path: '/login',
            handler: ({ payload }) => {
              bodies.push(new WeakRef(payload as object));
              during.push(requesterNow());
              left = setInterval(() => during.push(requesterNow()), 10).unref();
              return 'in';
            },
          },
        ],
      }),
    );
    await post('/login', '{"password":"secret"}');
    const { id } = await told(1);
    assert.equal(during[0]?.id, id);
    await until('it runs on', () => during.length > 1 && during.at(-1) === undefined, PATIENCE);
    await until(
      'the body is gone',
      () => {
        collectGarbage();
        return bodies.length === 1 && bodies[0]?.deref() === undefined;
      },
      { timeoutMs: 5_000, everyMs: 20 },
    );
    clearInterval(left);
  });
});
