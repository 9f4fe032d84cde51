import assert from 'node:assert/strict';
import { Agent, request as httpRequest } from 'node:http';
import { describe, it } from 'node:test';
import { definePlugin } from '../../core/sdk/index.ts';
import type { Plugin } from '../../core/contract/plugin.ts';
import { until } from '../support/platform/wait.ts';
import { API_PLUGINS, createApi, SAMPLE } from './fixture.ts';

function status(port: number, path: string, agent: Agent): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest({ host: '127.0.0.1', port, path, agent }, (response) => {
      response.resume();
      response.on('end', () => resolve(response.statusCode ?? 0));
      response.on('error', reject);
    });
    request.on('error', reject);
    request.end();
  });
}

const switched = (on: boolean): string => `${SAMPLE}\n[plugins.logs]\nenabled = ${on}\n`;

describe('switching a plugin at run time', () => {
  it('takes its routes away and brings them back, and loses no request to the others', async () => {
    const api = await createApi();
    const agent = new Agent({ keepAlive: true, maxSockets: 8 });
    let running = true;
    const seen = new Set<number>();
    let answers = 0;
    const client = async (): Promise<void> => {
      while (running) {
        seen.add(await status(api.port, '/api/status', agent));
        answers += 1;
      }
    };
    const clients = Promise.all(Array.from({ length: 8 }, client));
    try {
      for (let round = 0; round < 10; round += 1) {
        const before = answers;
        await api.apply(switched(round % 2 === 1));
        assert.equal(await status(api.port, '/api/logs', agent), round % 2 === 1 ? 200 : 404);
        await until('the load goes on', () => answers > before, { timeoutMs: 20_000, everyMs: 1 });
      }
    } finally {
      running = false;
    }
    await clients;
    agent.destroy();
    await until('one generation is left', () => api.http.stats().generations === 1, { timeoutMs: 20_000 });
    await api.close();
    assert.deepEqual([...seen], [200]);
  });

  it('swaps no generation for a live change', async () => {
    const api = await createApi();
    const agent = new Agent({ keepAlive: true });
    let built = 0;
    const { build } = api.http.projector;
    Object.assign(api.http.projector, {
      build: (...args: Parameters<typeof build>) => {
        built += 1;
        return build(...args);
      },
    });
    await api.apply(`${SAMPLE}\n[web]\npassword = "pw"\n`);
    assert.equal(await status(api.port, '/api/status', agent), 401);
    assert.equal(built, 0);
    await api.apply(switched(false));
    assert.equal(built, 1);
    agent.destroy();
    await api.close();
  });

  it('answers 503 while a plugin comes up, and its route once it has', async () => {
    let up = (): void => undefined;
    const isUp = new Promise<void>((resolve) => (up = resolve));
    const slow = definePlugin({
      name: 'slow',
      version: '1.0.0',
      apiVersion: 1,
      description: 'Takes its time.',
      enabledByDefault: false,
      register(ctx) {
        ctx.route({ method: 'GET', path: '/slow', handler: () => 'here' });
        ctx.effect('take time', async () => {
          await isUp;
          return () => undefined;
        });
      },
    });
    const api = await createApi({ plugins: [...API_PLUGINS, slow as Plugin] });
    assert.equal((await api.get('/slow')).status, 404);
    const applied = api.apply(`${SAMPLE}\n[plugins.slow]\nenabled = true\n`);
    await until('the route is declared', async () => (await api.get('/slow')).status === 503, {
      timeoutMs: 20_000,
      everyMs: 2,
    });
    const early = await api.get('/slow');
    const other = await api.get('/api/status');
    up();
    await applied;
    const late = await api.get('/slow');
    await api.close();
    assert.deepEqual(
      [early.status, early.headers['retry-after'], other.status, late.body],
      [503, '1', 200, 'here'],
    );
  });
});
