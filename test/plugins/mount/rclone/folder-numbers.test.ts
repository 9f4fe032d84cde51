/** When rclone is told to forget which number each path had; what goes wrong otherwise is seen in test/e2e. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { RcloneFiles } from '../../../../plugins/mount/rclone/remote-files.ts';

const CLEAR = 'fscache/clear';

describe('numbers of folders that have been moved', () => {
  let server: Server;
  let calls: string[];
  let refused: string | undefined;
  let isNumbered: boolean;
  const clock = createClock();
  const options = () => ({ signal: clock.deadline(5_000) });

  const filesOf = (type: string): RcloneFiles => {
    const { port } = server.address() as AddressInfo;
    return new RcloneFiles({ address: { port, user: 'u', password: 'p' }, fs: 'nas:', type, clock });
  };
  const between = async (work: () => Promise<unknown>): Promise<string[]> => {
    const before = calls.length;
    await work();
    return calls.slice(before).filter((call) => !/^(job|core)\//.test(call));
  };

  beforeEach(async () => {
    calls = [];
    refused = undefined;
    isNumbered = true;
    server = createServer((request, response) => {
      request.resume();
      request.on('end', () => {
        const path = (request.url ?? '').slice(1);
        calls.push(path);
        const answers: Record<string, object> = {
          'operations/fsinfo': { Precision: 1e9, Hashes: [], Features: { DirCacheFlush: isNumbered } },
          'operations/list': { list: [] },
          'job/list': { jobids: [] },
          'job/status': { finished: true, success: true, error: '', group: '' },
          'sync/move': { jobid: 1 },
        };
        if (path === refused) response.writeHead(500).end(JSON.stringify({ error: 'connection lost' }));
        else response.end(JSON.stringify(answers[path] ?? {}));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => {
    server.closeAllConnections();
    server.close();
  });

  it('are forgotten after each move, before anything else is asked or changed', async () => {
    const files = filesOf('drive');
    // A former daemon may have moved some.
    assert.deepEqual(await between(() => files.list('', options())), [
      'operations/fsinfo',
      CLEAR,
      'operations/list',
    ]);
    assert.deepEqual(await between(() => files.list('', options())), ['operations/list']);
    assert.deepEqual(await between(() => files.moveFolder('e', 'z', options())), ['sync/move']);
    assert.deepEqual(await between(() => files.makeFolder('e', options())), [CLEAR, 'operations/mkdir']);
    assert.deepEqual(await between(() => files.makeFolder('e', options())), ['operations/mkdir']);
    files.close();
  });

  it('are forgotten where the move has failed, and nothing goes on before they are', async () => {
    const files = filesOf('drive');
    await files.list('', options());
    refused = 'sync/move';
    await assert.rejects(files.moveFolder('e', 'z', options()));
    refused = CLEAR;
    assert.deepEqual(await between(() => assert.rejects(files.makeFolder('e', options()))), [CLEAR]);
    refused = undefined;
    assert.deepEqual(await between(() => files.makeFolder('e', options())), [CLEAR, 'operations/mkdir']);
    files.close();
  });

  it('are forgotten where the backend does not say that it has them, and nothing where there are none', async () => {
    isNumbered = false;
    for (const [type, isCleared] of [
      ['sftp', false],
      ['fichier', true],
    ] as const) {
      const files = filesOf(type);
      const done = await between(async () => {
        await files.moveFolder('e', 'z', options());
        await files.makeFolder('e', options());
      });
      assert.equal(done.includes(CLEAR), isCleared, done.join());
      files.close();
    }
  });
});
