import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { RcClient } from '../../../../plugins/mount/rclone/control/remote-control.ts';
import { serveInside } from '../../../../plugins/mount/rclone/serve.ts';

describe('a mount that serves its files', () => {
  let folder: string;
  let calls: { path: string; parameters: Readonly<Record<string, unknown>> }[];
  beforeEach(async () => (folder = await mkdtemp(join(tmpdir(), 'mk-serve-'))));
  afterEach(() => rm(folder, { recursive: true, force: true }));

  const serve = async (list: unknown): Promise<string[]> => {
    calls = [];
    const rc: RcClient = {
      call: <T>(path: string, parameters: Readonly<Record<string, unknown>>) => {
        calls.push({ path, parameters });
        return Promise.resolve((path === 'serve/list' ? { list } : {}) as T);
      },
      close: () => undefined,
    };
    await serveInside(
      {
        protocol: 'webdav',
        socket: join(folder, 's.sock'),
        baseUrl: '/照片',
        onFreeze: () => Promise.resolve(),
        signal: new AbortController().signal,
      },
      rc,
      'nas:photos',
    );
    return calls.map(({ path }) => path);
  };
  const serving = (params: Record<string, string>) => [
    {
      id: 'webdav-1',
      addr: join(folder, 's.sock'),
      params: { type: 'webdav', fs: 'nas:photos', baseurl: '/照片', ...params },
    },
  ];

  it("does so with the mount's own remote and no option that would give it a second view of the files", async () => {
    await writeFile(join(folder, 's.sock'), 'left by a killed process');
    assert.deepEqual(await serve(null), ['serve/list', 'serve/start']);
    assert.equal(existsSync(join(folder, 's.sock')), false);
    const { parameters } = calls[1] ?? assert.fail();
    assert.deepEqual(
      [parameters['type'], parameters['fs'], parameters['baseurl'], parameters['addr']],
      ['webdav', 'nas:photos', '/照片', `unix://${join(folder, 's.sock')}`],
    );
    assert.deepEqual(
      Object.keys(parameters).filter((name) => /vfs/i.test(name)),
      [],
    );
  });

  it('goes on when it does already', async () => {
    assert.deepEqual(await serve(serving({})), ['serve/list']);
  });

  it('gives way to what is wanted now', async () => {
    assert.deepEqual(await serve(serving({ baseurl: '/other' })), [
      'serve/list',
      'serve/stop',
      'serve/start',
    ]);
    assert.deepEqual(calls[1]?.parameters, { id: 'webdav-1' });
  });
});
