/** A refresh that is given up goes on in rclone, and is guarded until rclone has ended it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createRefresher, mapSome } from '../../../../plugins/mount/rclone/refresh.ts';
import type { Refresher } from '../../../../plugins/mount/rclone/refresh.ts';
import { until } from '../../../support/platform/wait.ts';

const PATIENCE = { timeoutMs: 10_000, everyMs: 5 };

interface World {
  readonly refresher: Refresher;
  /** What has happened, in this order. */
  readonly events: string[];
  /** Answers the calls that change what rclone shows, from now on. */
  answer(): void;
}

async function createWorld(t: TestContext): Promise<World> {
  const events: string[] = [];
  let answer = (): void => undefined;
  const answered = new Promise<void>((resolve) => (answer = resolve));
  const respond = async (path: string, text: string): Promise<object> => {
    if (path.endsWith('/list')) return { list: [] };
    const { dir = '' } = JSON.parse(text) as { dir?: string };
    events.push(`asked ${dir}`);
    await answered;
    events.push(`shown ${dir}`);
    return { result: { [dir]: 'OK' } };
  };
  const server = createServer((request, response) => {
    void request
      .toArray()
      .then((pieces) => respond(request.url ?? '', Buffer.concat(pieces as Buffer[]).toString()))
      .then((body) => response.writeHead(200).end(JSON.stringify(body)));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => {
    answer();
    server.close();
    server.closeAllConnections();
  });
  const refresher = createRefresher({
    address: { port: (server.address() as AddressInfo).port, user: '', password: '' },
    fs: 'nas:',
    end: new AbortController().signal,
    around: async (refresh, folder = 'anywhere') => {
      events.push(`guard ${folder}`);
      try {
        return await refresh();
      } finally {
        events.push(`free ${folder}`);
      }
    },
  });
  return { refresher, events, answer };
}

describe('a refresh of listings', () => {
  it('is guarded until rclone shows what it has read, also when nobody waits for it any more', async (t) => {
    const { refresher, events, answer } = await createWorld(t);
    const giveUp = new AbortController();
    const refreshing = refresher('a//b/', { recursive: true, signal: giveUp.signal });
    await until('rclone is asked', () => events.includes('asked a/b'), PATIENCE);
    giveUp.abort(new Error('given up'));
    await assert.rejects(refreshing, /given up/);
    await setImmediate();
    assert.deepEqual(events, ['guard anywhere', 'asked a/b']);
    answer();
    await until('the guard is gone', () => events.includes('free anywhere'), PATIENCE);
    assert.deepEqual(events, ['guard anywhere', 'asked a/b', 'shown a/b', 'free anywhere']);
  });

  it('of one folder guards that folder, and asks nothing when it was given up before', async (t) => {
    const { refresher, events, answer } = await createWorld(t);
    answer();
    assert.deepEqual(await refresher('/a/', { recursive: false, signal: new AbortController().signal }), {
      ok: 1,
      failed: [],
    });
    assert.deepEqual(events.splice(0), ['guard a', 'asked a', 'shown a', 'free a']);
    await assert.rejects(refresher('a', { recursive: false, signal: AbortSignal.abort() }));
    assert.deepEqual(events, []);
  });

  it('waits for another one, until its own end', async (t) => {
    const { refresher, events, answer } = await createWorld(t);
    const [signal, giveUp] = [new AbortController().signal, new AbortController()];
    const first = refresher('a', { recursive: true, signal });
    const impatient = refresher('b', { recursive: true, signal: giveUp.signal });
    const last = refresher('c', { recursive: true, signal });
    await until('rclone is asked', () => events.includes('asked a'), PATIENCE);
    giveUp.abort(new Error('given up'));
    await assert.rejects(impatient, /given up/);
    answer();
    assert.deepEqual(await Promise.all([first, last]), Array(2).fill({ ok: 1, failed: [] }));
    assert.deepEqual(
      events.filter((event) => event.startsWith('asked')),
      ['asked a', 'asked c'],
    );
    assert.ok(events.indexOf('shown a') < events.indexOf('asked c'));
  });

  it('folder by folder ends with the last folder that is being read, also after a failure', async () => {
    let end = (): void => undefined;
    const slow = new Promise<void>((resolve) => (end = resolve));
    const visited: string[] = [];
    const visit = async (folder: string): Promise<readonly string[]> => {
      visited.push(folder);
      if (folder === 'broken') throw new Error('broken');
      await slow;
      visited.push(`${folder} through`);
      return [];
    };
    const mapping = mapSome(['slow', 'broken', 'later'], 2, visit).finally(() => visited.push('over'));
    void setImmediate().then(end);
    await assert.rejects(mapping, /broken/);
    assert.deepEqual(visited, ['slow', 'broken', 'slow through', 'over']);
  });
});
