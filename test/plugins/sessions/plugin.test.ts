import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { definePlugin } from 'mountkeeper';
import type { AnsweredRequest, ClientSession, Exporter, Principal } from 'mountkeeper';
import { createTestHost } from 'mountkeeper/testing';
import sessions from '../../../plugins/sessions/index.ts';
import type { SessionsAnswer } from '../../../plugins/sessions/routes.ts';
import { runCommand } from '../../api/cli.ts';

const ANNA: ClientSession = {
  id: '11.7',
  user: 'anna',
  address: '192.0.2.5',
  shares: ['docs', 'photos'],
  since: 1_000,
  lastAt: null,
  bytesToClient: 2_048,
  bytesFromClient: null,
};
const MACHINE: ClientSession = {
  ...ANNA,
  id: '192.0.2.6',
  user: null,
  address: '192.0.2.6',
  shares: null,
  since: null,
};

/** Exporters of three protocols, and a door that lets in whom a header names. */
async function start(t: TestContext) {
  let [asked, smb] = [0, [ANNA]];
  const ended: string[] = [];
  const answered: AnsweredRequest[] = [];
  const exporter = { add: async () => undefined, remove: async () => undefined };
  const exporters: Record<string, Exporter> = {
    smb: {
      ...exporter,
      sessions: async () => {
        asked += 1;
        return smb;
      },
      endSession: async (id) => {
        ended.push(id);
        if (id === 'stuck') throw new Error('it is stuck');
        const before = smb.length;
        smb = smb.filter((one) => one.id !== id);
        return smb.length < before;
      },
    },
    nfs: { ...exporter, sessions: async () => [MACHINE] },
    webdav: { ...exporter, sessions: () => new Promise(() => undefined) },
    ftp: { ...exporter, sessions: async () => [{ id: 'a/b' }] as never },
    old: exporter,
    off: { ...exporter, isEnabled: false },
  };
  const door = definePlugin({
    name: 'door',
    version: '1.0.0',
    apiVersion: 1,
    description: 'A door.',
    register(ctx) {
      for (const [protocol, one] of Object.entries(exporters)) ctx.provide(`exporter:${protocol}`, () => one);
      ctx.tap('afterRequest', (request) => void answered.push(request));
      ctx.hapi(
        {
          name: 'who',
          register: (server) => {
            server.ext('onRequest', (request, h) => {
              const shares = request.headers['x-shares'];
              const who: Partial<Principal> = { name: 'script', kind: 'token', role: 'operator' };
              if (typeof shares === 'string')
                Object.assign(request.auth, { credentials: { ...who, shares: shares.split(',') } });
              return h.continue;
            });
          },
        },
        {},
      );
    },
  });
  const host = await createTestHost({ plugins: [sessions, door] });
  t.after(() => host.close());
  /** The exporter that hangs is given its time. */
  const read = async (headers = {}): Promise<SessionsAnswer> => {
    let isOver = false;
    const answer = host.inject({ url: '/api/sessions', headers }).finally(() => (isOver = true));
    while (!isOver) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      await host.advance(1_000);
    }
    return (await answer).json() as SessionsAnswer;
  };
  return { host, read, ended, answered, asked: () => asked };
}

describe('sessions', () => {
  it('are told by protocol, and what cannot be told is said', async (t) => {
    const { read } = await start(t);
    const { sessions: found, problems } = await read();
    const of = (one: ClientSession) => ({ user: one.user, address: one.address, shares: one.shares });
    const bytes = { last_request: null, bytes_to_client: 2_048, bytes_from_client: null };
    assert.deepEqual(found, [
      { id: 'nfs:192.0.2.6', protocol: 'nfs', ...of(MACHINE), since: null, ...bytes, can_end: false },
      {
        id: 'smb:11.7',
        protocol: 'smb',
        ...of(ANNA),
        since: '1970-01-01T00:00:01.000Z',
        ...bytes,
        can_end: true,
      },
    ]);
    assert.deepEqual(problems.map(({ protocol }) => protocol).sort(), ['ftp', 'old', 'webdav']);
    const said = Object.fromEntries(problems.map(({ protocol, message }) => [protocol, message]));
    assert.match(said['ftp'] ?? '', /cannot be used/);
    assert.match(said['webdav'] ?? '', /did not finish within 10 s/);
    assert.match(said['old'] ?? '', /does not tell/);
  });

  it('are asked for once for all who ask at the same time, and anew after some seconds', async (t) => {
    const { host, read, asked } = await start(t);
    await Promise.all([read(), read(), read()]);
    assert.equal(asked(), 1);
    await read();
    assert.equal(asked(), 1);
    await host.advance(3_000);
    await read();
    assert.equal(asked(), 2);
  });

  it('are those of its shares to a token of these, with nothing of others', async (t) => {
    const { read } = await start(t);
    const [found, ...more] = (await read({ 'x-shares': 'docs' })).sessions;
    assert.deepEqual(more, []);
    assert.deepEqual(
      [found?.user, found?.shares, found?.since, found?.bytes_to_client],
      ['anna', ['docs'], null, null],
    );
    assert.equal((await read({ 'x-shares': 'docs,photos' })).sessions[0]?.bytes_to_client, 2_048);
    assert.deepEqual((await read({ 'x-shares': 'music' })).sessions, []);
  });

  it('end when asked to, and the answer and the record say what came of it', async (t) => {
    const { host, read, ended, answered } = await start(t);
    await read();
    const end = async (id: string) => {
      const answer = host.inject({ method: 'POST', url: `/api/sessions/${encodeURIComponent(id)}/end` });
      return (await answer).json();
    };
    assert.deepEqual(await end('smb:11.7'), { ok: true, message: 'Session ended' });
    const { about, isDone } = answered[0] ?? {};
    assert.deepEqual(
      [about, isDone],
      [{ protocol: 'smb', user: 'anna', address: '192.0.2.5', shares: 'docs, photos' }, true],
    );
    // Known at once.
    assert.deepEqual(
      (await read()).sessions.map(({ id }) => id),
      ['nfs:192.0.2.6'],
    );
    for (const id of ['smb:11.7', 'nobody:1', 'x'])
      assert.deepEqual(await end(id), { ok: false, message: 'There is no such session any more' });
    assert.match(JSON.stringify(await end('nfs:192.0.2.6')), /nfs cannot be ended from here/);
    assert.deepEqual(await end('smb:stuck'), { ok: false, message: 'Session not ended: it is stuck' });
    assert.deepEqual(ended, ['11.7', '11.7', 'stuck']);
  });

  it('are counted for whoever collects figures, without being waited for, once a minute at the most', async (t) => {
    const { host, read, asked } = await start(t);
    const counts = () =>
      host.host
        .service('metrics')
        ?.read()
        .find(({ name }) => name === 'mountkeeper_sessions');
    assert.deepEqual(counts()?.samples, []);
    await read();
    const { samples = [] } = counts() ?? {};
    assert.deepEqual(samples, [
      { labels: { protocol: 'smb' }, value: 1 },
      { labels: { protocol: 'nfs' }, value: 1 },
    ]);
    for (let scrape = 0; scrape < 5; scrape += 1) {
      await host.advance(10_000);
      counts();
    }
    assert.equal(asked(), 1);
    await host.advance(10_000);
    counts();
    assert.equal(asked(), 2);
    await host.advance(200_000);
    assert.deepEqual(counts()?.samples, []);
  });

  it('are a table on the command line, which ends one of them too', async () => {
    const body = JSON.stringify({
      sessions: [
        {
          id: 'smb:1.2',
          protocol: 'smb',
          user: null,
          address: '192.0.2.5',
          shares: null,
          since: null,
          last_request: null,
          bytes_to_client: 2_048,
          bytes_from_client: null,
          can_end: true,
        },
      ],
      problems: [{ protocol: 'nfs', message: 'it hangs' }],
    });
    const requests: string[] = [];
    const request = async (method: string, path: string) => {
      requests.push(`${method} ${path}`);
      return { status: 200, body: method === 'GET' ? body : '{"ok":false,"message":"There is none"}' };
    };
    const shown = await runCommand(sessions, ['sessions'], { request });
    assert.deepEqual(shown.tables[0]?.[1], ['smb', '-', '192.0.2.5', '?', '?', '2.0 KiB', '?', 'smb:1.2']);
    assert.deepEqual([shown.code, shown.errors], [1, ['who is connected over nfs is not known: it hangs']]);
    const ended = await runCommand(sessions, ['sessions', 'end', 'smb:1.2'], { request });
    assert.deepEqual([ended.code, ended.errors], [1, ['There is none']]);
    assert.deepEqual(requests, ['GET /api/sessions', 'POST /api/sessions/smb%3A1.2/end']);
    assert.equal((await runCommand(sessions, ['sessions', 'kick'], { request })).code, 64);
  });
});
