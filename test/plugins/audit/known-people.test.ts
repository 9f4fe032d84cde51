/** The record has what people and tokens tried that they may not, also where the answer says that there is nothing. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { definePlugin, openTo } from '../../../core/sdk/index.ts';
import { createClock } from '../../../core/platform/clock.ts';
import { createTestHost } from '../../../core/testing/test-host.ts';
import type { TestHost } from '../../../core/testing/test-host.ts';
import audit from '../../../plugins/audit/index.ts';
import auth from '../../../plugins/auth/index.ts';
import { makeHash } from '../../../plugins/auth/password-hash.ts';
import { hashToken, makeToken } from '../../../plugins/auth/token.ts';
import dashboard from '../../../plugins/dashboard/index.ts';
import { until } from '../../support/platform/wait.ts';

const TOKEN = makeToken();
const SCRIPT = { authorization: `Bearer ${TOKEN}` };
const ANNA = { authorization: `Basic ${btoa('anna:her word')}` };
const WHO = {
  anna: { name: 'anna', kind: 'user', role: 'viewer' },
  script: { name: 'script', kind: 'token', role: 'operator' },
};

const garden = definePlugin({
  name: 'garden',
  version: '1.0.0',
  apiVersion: 1,
  description: 'A garden.',
  register(ctx) {
    const handler = (): string => 'roses';
    ctx.route({ method: 'GET', path: '/tools', handler, options: openTo({ role: 'operator' }) });
    const options = openTo({ role: 'viewer', share: 'share' });
    ctx.route({ method: 'GET', path: '/beds/{share}', handler, options });
    const actions = { fell: () => ({ ok: true, message: 'felled' }) };
    ctx.tab({ id: 'shed', title: 'Shed', render: () => 'tools', parts: { piece: () => 'a saw' }, actions });
    ctx.tab({ id: 'bed', title: 'Bed', access: { see: 'viewer' }, render: () => 'roses', actions });
  },
});

describe('what people tried that they may not', () => {
  let host: TestHost;
  before(async () => {
    const users = [{ name: 'anna', password_hash: await makeHash('her word'), role: 'viewer' }];
    const tokens = [{ name: 'script', token_hash: hashToken(TOKEN), role: 'operator', shares: ['photos'] }];
    host = await createTestHost({
      plugins: [dashboard, garden, auth, audit],
      clock: createClock(),
      config: {
        connections: [{ name: 'nas', type: 'local' }],
        shares: [{ name: 'photos', connection: 'nas', remote_path: '/p' }],
        web: { password: 'pw', users, tokens },
      },
    });
  });
  after(() => host.close());

  const refused = async (): Promise<Record<string, unknown>[]> =>
    (await readFile(join(host.stateDir, 'audit/audit.log'), 'utf8'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ event }) => event === 'refused');

  it('stands in the record with who and where from, and what they may does not', async () => {
    const get = async (url: string, headers: Record<string, string>): Promise<number> =>
      (await host.inject({ url, headers })).statusCode;
    const post = async (url: string, headers: Record<string, string>): Promise<number> => {
      const form = { 'content-type': 'application/x-www-form-urlencoded', ...headers };
      return (await host.inject({ method: 'POST', url, headers: form, payload: '' })).statusCode;
    };
    const answers = [
      await get('/tools', ANNA),
      await get('/beds/photos', SCRIPT),
      await get('/beds/secrets', SCRIPT),
      await get('/tabs/bed', ANNA),
      await get('/tabs/nothing', ANNA),
      await get('/tabs/shed', ANNA),
      await get('/dashboard/parts/shed/piece', ANNA),
      await post('/dashboard/do/shed/fell', ANNA),
      await post('/dashboard/do/bed/fell', ANNA),
    ];
    assert.deepEqual(answers, [403, 200, 404, 200, 404, 404, 404, 404, 403]);
    await until('all are written down', async () => (await refused()).length >= 6, { timeoutMs: 20_000 });
    const found = await refused();
    assert.deepEqual(
      found.map(({ who, method, route, params, status }) => [who, method, route, params, status]),
      [
        [WHO.anna, 'GET', '/tools', undefined, 403],
        [WHO.script, 'GET', '/beds/{share}', { share: 'secrets' }, 404],
        [WHO.anna, 'GET', '/tabs/{name}', { name: 'shed' }, 404],
        [WHO.anna, 'GET', '/dashboard/parts/{tab}/{name}', { tab: 'shed', name: 'piece' }, 404],
        [WHO.anna, 'POST', '/dashboard/do/{tab}/{name}', { tab: 'shed', name: 'fell' }, 404],
        [WHO.anna, 'POST', '/dashboard/do/{tab}/{name}', { tab: 'bed', name: 'fell' }, 403],
      ],
    );
    assert.deepEqual(
      new Set(found.map(({ from }) => JSON.stringify(from))),
      new Set(['{"address":"127.0.0.1"}']),
    );
  });
});
