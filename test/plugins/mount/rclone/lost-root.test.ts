/** A share whose folder on the remote is lost: nothing is asked of the remote, nor changed there. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before, beforeEach, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { RcloneFiles } from '../../../../plugins/mount/rclone/remote-files.ts';

const REASON = 'its path is not there';
const FILE = process.execPath;

describe('a remote without its folder', () => {
  let server: Server;
  let files: RcloneFiles;
  let isLost: boolean;
  const calls: string[] = [];
  const suspicions: string[] = [];
  const clock = createClock();
  const options = () => ({ signal: clock.deadline(5_000) });

  before(async () => {
    server = createServer((request, response) => {
      calls.push(request.url ?? '');
      response.writeHead(500).end(JSON.stringify({ error: 'directory not found' }));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    files = new RcloneFiles({
      address: { port, user: 'u', password: 'p' },
      fs: 'nas:p',
      type: 'sftp',
      clock,
      root: {
        admit: async () => {
          if (isLost) throw new Error(REASON);
        },
        changing: (_, change) => change(),
        foundAtMs: 0,
        isLost: false,
        suspect: () => suspicions.push('suspect'),
      },
    });
  });
  beforeEach(() => {
    calls.length = 0;
    suspicions.length = 0;
  });
  after(() => {
    files.close();
    server.closeAllConnections();
    server.close();
  });

  it('is asked nothing, and gets nothing', async () => {
    isLost = true;
    for (const call of [
      files.stat('a', options()),
      files.list('', options()),
      files.readBack('a', options()),
      files.uploadNew(FILE, 'a', options()),
      files.clearLeftovers('a', options()),
      files.moveFile('a', 'b', options()),
      files.moveFolder('a', 'b', options()),
      files.deleteFile('a', options()),
      files.makeFolder('a', options()),
      files.removeFolder('a', options()),
      files.forget(['a'], options()),
      files.upload(FILE, 'a', options()),
    ])
      await assert.rejects(call, { message: REASON });
    assert.deepEqual(calls, []);
  });

  it('is looked at where it says that a folder is not there', async () => {
    isLost = false;
    await assert.rejects(files.readBack('a', options()));
    assert.deepEqual(suspicions, ['suspect']);
  });
});
