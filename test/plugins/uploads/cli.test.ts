/** What `mountkeeper queue` asks the daemon for. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CliContext } from 'mountkeeper';
import { commands } from '../../../plugins/uploads/cli.ts';

interface Asked {
  readonly code: number;
  readonly requests: readonly unknown[];
  readonly said: string;
}

const entry = (path: string, version: string | null) => ({
  path,
  action: 'upload',
  state: 'waiting',
  bytes: 1,
  tries: 0,
  next_try_at: null,
  reason: 'It waits for its turn.',
  version,
});

async function queue(args: readonly string[], entries: readonly object[] = []): Promise<Asked> {
  const requests: unknown[] = [];
  const said: string[] = [];
  const cli = {
    args,
    json: false,
    request: async (method: string, path: string, body?: unknown) => {
      requests.push(body === undefined ? `${method} ${path}` : [`${method} ${path}`, body]);
      const answer =
        method === 'POST'
          ? { ok: true, message: 'done' }
          : { share: 's', dirty_files: 1_200, dirty_bytes: 1, entries, conflicts: [], paused_until: null };
      return { status: 200, body: JSON.stringify({ oldest_dirty_at: null, ...answer }) };
    },
    print: (text: string) => void said.push(text),
    printError: (text: string) => void said.push(text),
    table: (rows: readonly (readonly string[])[]) => void said.push(...rows.map((row) => row.join(' '))),
  } as Partial<CliContext> as CliContext;
  const code = await commands.find(({ name }) => name === 'queue')!.run(cli);
  return { code, requests, said: said.join('\n') };
}

describe('the command queue', () => {
  it('asks for one path, to show it, and to discard the version that waits, however many others do', async () => {
    const shown = await queue(['s', 'd/a b/'], [entry('d/a b', 'v1')]);
    assert.deepEqual([shown.code, shown.requests], [0, ['GET /api/queue/s?path=d%2Fa%20b']]);
    assert.match(shown.said, /d\/a b/);
    const { requests } = await queue(['s', 'd/a b', '--discard'], [entry('d/a b', 'v1')]);
    assert.deepEqual(requests, [
      'GET /api/queue/s?path=d%2Fa%20b',
      ['POST /api/queue/s/discard', { path: 'd/a b', version: 'v1' }],
    ]);
    assert.equal((await queue(['s', '.', '--discard'])).code, 64);
  });

  it('says that there may be more than it shows', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => entry(`f${index}`, 'v'));
    assert.match((await queue(['s'], many)).said, /^s: more may wait than the 1000 shown; name a PATH/m);
    assert.doesNotMatch((await queue(['s'], many.slice(1))).said, /more may wait/);
  });

  it('pauses for a second at least, and ends a pause only by --resume', async () => {
    const seconds = async (...args: string[]): Promise<unknown> => (await queue(['s', ...args])).requests[0];
    assert.deepEqual(await seconds('--pause', '400ms'), ['POST /api/queue/s/pause', { seconds: 1 }]);
    assert.deepEqual(await seconds('--pause', '90s'), ['POST /api/queue/s/pause', { seconds: 90 }]);
    assert.deepEqual(await seconds('--resume'), ['POST /api/queue/s/pause', { seconds: 0 }]);
    const none = await queue(['s', '--pause', '0s']);
    assert.deepEqual([none.code, none.requests], [64, []]);
  });
});
