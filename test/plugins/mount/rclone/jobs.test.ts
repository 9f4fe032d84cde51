/** What is told of a job while rclone works on it. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, it } from 'node:test';
import { createClock } from '../../../../core/platform/clock.ts';
import type { RcClient } from '../../../../plugins/mount/rclone/control/remote-control.ts';
import { Jobs } from '../../../../plugins/mount/rclone/jobs.ts';
import { until } from '../../../support/platform/wait.ts';
import { RcloneFiles } from '../../../../plugins/mount/rclone/remote-files.ts';

type Parameters = Readonly<Record<string, unknown>>;

describe('the progress of a job', () => {
  const clock = createClock();
  const signal = (): AbortSignal => clock.deadline(20_000);

  it('is told of a short one, too, which may take long on a slow line', async () => {
    let end: (answer: object) => void = () => undefined;
    let group: unknown;
    const answers: Record<string, (parameters: Parameters) => unknown> = {
      'job/list': () => ({ jobids: [] }),
      'operations/copyfile': (parameters) => {
        group = parameters['_group'];
        return new Promise((resolve) => {
          end = resolve;
          // Also where nothing is told.
          setTimeout(resolve, 3_000, {}).unref();
        });
      },
      'core/stats': (asked) => ({ bytes: asked['group'] === group ? 1_000 : 9_999 }),
    };
    const call = async (path: string, parameters: Parameters): Promise<unknown> =>
      answers[path]?.(parameters) ?? {};
    const jobs = new Jobs({ call, close: () => undefined } as unknown as RcClient, clock);
    const told: number[] = [];
    const onProgress = (bytes: number): void => {
      told.push(bytes);
      end({});
    };
    await jobs.run('operations/copyfile', {}, { signal: signal(), onProgress, isShort: true });
    assert.deepEqual(told, [1_000]);
  });

  it('of what is read back from the remote is counted with what is read through the mount', async (t) => {
    const groups: unknown[] = [];
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => {
        groups.push([request.url, (JSON.parse(body) as Parameters)['_group']]);
        response.end(JSON.stringify({ hash: 'abc' }));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const address = { port, user: 'u', password: 'p' };
    const files = new RcloneFiles({ address, fs: 'nas:', type: 'webdav', clock });
    t.after(() => {
      files.close();
      server.closeAllConnections();
      server.close();
    });
    await files.readBack('a.bin', { signal: signal() });
    assert.deepEqual(groups.at(-1), ['/operations/hashsumfile', 'global_stats']);
  });
});

describe('a job that is given up, since its connection broke', () => {
  const clock = createClock();
  const options = () => ({ signal: clock.deadline(20_000) });

  it('has ended also for the second who asks, while the first one ends it', async () => {
    let stopped: (answer: object) => void = () => undefined;
    let isRunning = true;
    const answers: Record<string, () => unknown> = {
      'job/list': () => ({ jobids: [7] }),
      'job/status': () => ({
        finished: !isRunning,
        success: false,
        error: '',
        group: 'mountkeeper-write/x/1',
      }),
      'job/stop': () => new Promise((resolve) => (stopped = resolve)),
    };
    const calls: string[] = [];
    const call = async (path: string): Promise<unknown> => {
      calls.push(path);
      return answers[path]?.() ?? {};
    };
    const jobs = new Jobs({ call, close: () => undefined } as unknown as RcClient, clock);
    const ended: string[] = [];
    const asks = ['first', 'second'].map(async (who) => jobs.endAbandoned().then(() => ended.push(who)));
    await until('it is told to end', () => calls.includes('job/stop'), { timeoutMs: 10_000 });
    const third = jobs.endAbandoned().then(() => ended.push('third'));
    // Whoever does not wait has passed by then.
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(ended, []);
    isRunning = false;
    stopped({});
    await Promise.all([...asks, third]);
    assert.equal(ended.length, 3);
  });

  it('has ended before the remote is asked what became of it', async (t) => {
    const calls: string[] = [];
    let isRunning = false;
    let group: unknown;
    const answers: Record<string, () => unknown> = {
      'operations/fsinfo': () => ({ Precision: 1, Hashes: [], Features: { Move: true } }),
      'operations/stat': () => ({ item: null }),
      'operations/list': () => ({ list: [] }),
      'job/list': () => ({ jobids: isRunning ? [7] : [] }),
      'job/status': () => ({ finished: !isRunning, success: false, error: '', group }),
      'job/stop': () => {
        isRunning = false;
        return {};
      },
    };
    const server = createServer((request, response) => {
      let body = '';
      request.on('data', (piece: Buffer) => (body += piece.toString()));
      request.on('end', () => {
        const path = (request.url ?? '').slice(1);
        calls.push(path);
        if (path === 'operations/movefile') {
          isRunning = true;
          group = (JSON.parse(body) as Parameters)['_group'];
          request.socket.destroy();
        } else response.end(JSON.stringify(answers[path]?.() ?? {}));
      });
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const files = new RcloneFiles({
      address: { port, user: 'u', password: 'p' },
      fs: 'nas:',
      type: 'sftp',
      clock,
    });
    t.after(() => {
      files.close();
      server.closeAllConnections();
      server.close();
    });
    await assert.rejects(files.moveFile('a', 'b', options()));
    await files.stat('a', options());
    assert.ok(calls.includes('job/stop'), calls.join());
    assert.ok(calls.indexOf('job/stop') < calls.indexOf('operations/stat'), calls.join());
  });
});
