/** Which calls have rclone read folders again; what it then shows is seen in test/e2e. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import { RcloneFiles } from '../../../../plugins/mount/rclone/remote-files.ts';

type Answer = (parameters: Readonly<Record<string, string>>) => object | undefined;

describe('folders that are to be read again', () => {
  let server: Server;
  let files: RcloneFiles;
  let calls: string[];
  let told: string[];
  let answers: Record<string, Answer>;
  let refused: string | undefined;
  const clock = createClock();
  const signal = (): AbortSignal => clock.deadline(5_000);

  beforeEach(async () => {
    calls = [];
    told = [];
    refused = undefined;
    answers = {
      'operations/list': ({ remote = '' }) => ({
        list: remote === 'parent' ? [{ Name: 'leaf', IsDir: true }] : [],
      }),
      'vfs/refresh': ({ dir = '' }) => ({ result: { [dir]: 'OK' } }),
      'vfs/forget': () => ({}),
    };
    server = createServer((request, response) => {
      let body = '';
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => {
        const parameters = JSON.parse(body) as Record<string, string>;
        const path = (request.url ?? '').slice(1);
        const { remote, dir, file0, recursive } = parameters;
        calls.push(
          [path, remote ?? dir ?? file0, recursive && 'with what is below'].filter(Boolean).join(' '),
        );
        const answer = answers[path]?.(parameters);
        response
          .writeHead(answer && (path !== 'operations/list' || remote !== refused) ? 200 : 500)
          .end(JSON.stringify(answer ?? { error: 'connection lost' }));
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    files = new RcloneFiles({
      address: { port, user: 'u', password: 'p' },
      fs: 'nas:',
      type: 'sftp',
      clock,
      dropping: async ({ folders, trees }, drop) => {
        const what = `${folders.join()};${trees.join()}`;
        told.push(`${what} after ${calls.at(-1)}`);
        try {
          return await drop();
        } finally {
          told.push(`${what} done after ${calls.at(-1)}`);
        }
      },
    });
  });
  afterEach(() => {
    files.close();
    server.closeAllConnections();
    server.close();
  });

  const without = (path: string): readonly string[] => calls.filter((call) => !call.startsWith(path));

  it('are read before they are dropped, where no folder is in them', async () => {
    await files.forget(['leaf'], { signal: signal() });
    assert.deepEqual(without('operations'), ['vfs/refresh leaf with what is below']);
  });

  it('keep what they show when the NAS goes away meanwhile', async () => {
    answers['vfs/refresh'] = () => undefined;
    await assert.rejects(files.forget(['leaf'], { signal: signal() }));
    assert.deepEqual(without('operations'), ['vfs/refresh leaf with what is below']);
  });

  it('are read right after they were dropped, where their whole tree would be read', async () => {
    await files.forget(['parent'], { signal: signal() });
    assert.deepEqual(without('operations'), ['vfs/forget parent/any', 'vfs/refresh parent']);
  });

  it('are only dropped where the mount does not have them yet', async () => {
    answers['vfs/refresh'] = ({ dir = '' }) => ({ result: { [dir]: 'file does not exist' } });
    await files.forget(['leaf'], { signal: signal() });
    assert.equal(calls.includes('vfs/forget leaf/any'), true);
  });

  it('are only dropped where the mount has a file of the name, or the NAS refuses to list one', async () => {
    answers['vfs/refresh'] = ({ dir = '' }) => ({
      result: { [dir]: dir === 'turned' ? 'invalid argument' : 'OK' },
    });
    const list = answers['operations/list'];
    answers['operations/list'] = (one) =>
      one['remote'] === 'file' ? { error: 'permission denied' } : list?.(one);
    refused = 'file';
    await files.forget(['', 'turned', 'file', 'leaf'], { signal: signal() });
    assert.ok(
      calls.some((call) => call.startsWith('vfs/forget')),
      calls.join(),
    );
    assert.ok(calls.includes('vfs/refresh leaf with what is below'), calls.join());
  });

  it('are dropped with a change in the same moment, which waits for nothing', async () => {
    const change = async (): Promise<{ folders: string[]; trees: string[] }> => {
      calls.push('the change');
      return { folders: ['leaf'], trees: [] };
    };
    await files.forget(['leaf'], { signal: signal(), change });
    assert.deepEqual(without('operations'), ['the change', 'vfs/forget leaf/any']);
  });

  it('are unknown from before they are dropped or read until after it, however it ends', async () => {
    const change = (): Promise<{ folders: string[]; trees: string[] }> =>
      Promise.resolve({ folders: ['leaf'], trees: ['tree'] });
    await files.forget(['leaf'], { signal: signal(), change });
    assert.deepEqual(told.splice(0), [
      'leaf;tree after operations/list leaf',
      'leaf;tree done after vfs/forget leaf/any',
    ]);
    answers['vfs/refresh'] = () => undefined;
    await assert.rejects(files.forget(['leaf'], { signal: signal() }));
    assert.deepEqual(told, [
      'leaf; after operations/list leaf',
      'leaf; done after vfs/refresh leaf with what is below',
    ]);
  });
});
