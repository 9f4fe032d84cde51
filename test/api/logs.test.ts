import assert from 'node:assert/strict';
import { appendFile, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { createApi, SAMPLE } from './fixture.ts';
import type { ApiFixture } from './fixture.ts';

const NOTHING = { total_lines: 0, entries: [] };

function lines(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, index) => `line ${from + index}`);
}

describe('GET /api/logs', () => {
  let api: ApiFixture;
  let file: string;

  beforeEach(async () => {
    api = await createApi({ logFile: 'daemon.log' });
    file = join(api.folder, 'daemon.log');
  });
  afterEach(() => api.close());

  const withLog = (path: string): Promise<unknown> =>
    api.apply(`${SAMPLE}\n[log]\nfile = ${JSON.stringify(path)}\n`);
  const read = async (query = ''): Promise<unknown> => {
    const answer = await api.get(`/api/logs${query}`);
    assert.equal(answer.status, 200);
    return answer.json();
  };

  it('has nothing without a log file, and when it was removed', async (t) => {
    const without = await createApi();
    t.after(() => without.close());
    assert.deepEqual((await without.get('/api/logs')).json(), NOTHING);
    assert.deepEqual(await read(), NOTHING);
    await writeFile(file, 'a\n');
    assert.deepEqual(await read(), { total_lines: 1, entries: ['a'] });
    await rm(file);
    assert.deepEqual(await read(), NOTHING);
    await mkdir(file);
    assert.deepEqual(await read('?from_line=3'), NOTHING);
  });

  it('gives the last 200 lines at first, or as many as asked for', async () => {
    await writeFile(file, `${lines(0, 500).join('\n')}\n`);
    assert.deepEqual(await read(), { total_lines: 500, entries: lines(300, 500) });
    assert.deepEqual(await read('?lines=3'), { total_lines: 500, entries: lines(497, 500) });
    assert.deepEqual(await read('?lines=3&from_line=0'), { total_lines: 500, entries: lines(497, 500) });
    assert.deepEqual(await read('?lines=1000'), { total_lines: 500, entries: lines(0, 500) });
    assert.deepEqual(await read('?lines=0'), { total_lines: 500, entries: [] });
  });

  it('is sent to four at a time, so that nobody fills the memory with answers', async () => {
    await writeFile(file, `${lines(0, 500).join('\n')}\n`);
    const answers = await Promise.all(Array.from({ length: 6 }, () => api.get('/api/logs?lines=1001')));
    assert.deepEqual(answers.filter(({ status }) => status === 200).length, 4);
    assert.match(answers.find(({ status }) => status === 503)?.body ?? '', /ask again/);
    const few = await Promise.all(Array.from({ length: 20 }, () => api.get('/api/logs?lines=1000')));
    assert.ok(
      few.every(({ status }) => status === 200),
      'pages wait for nobody',
    );
    for (let count = 0; count < 10; count += 1) await read('?lines=5000');
  });

  it('gives from from_line on, up to as many as asked for', async () => {
    await writeFile(file, `${lines(0, 500).join('\n')}\n`);
    assert.deepEqual(await read('?from_line=1&lines=2'), { total_lines: 500, entries: lines(1, 3) });
    assert.deepEqual(await read('?from_line=499'), { total_lines: 500, entries: lines(499, 500) });
    assert.deepEqual(await read('?from_line=500'), { total_lines: 500, entries: [] });
    assert.deepEqual(await read('?from_line=999999999999999'), { total_lines: 500, entries: [] });
  });

  it('lets a client follow with the former total, over a rotation too', async () => {
    await writeFile(file, 'a\nb\n');
    assert.deepEqual(await read(), { total_lines: 2, entries: ['a', 'b'] });
    await appendFile(file, 'c\n');
    assert.deepEqual(await read('?from_line=2'), { total_lines: 3, entries: ['c'] });
    await rename(file, `${file}.1`);
    assert.deepEqual(
      await read('?from_line=3'),
      { total_lines: 3, entries: [] },
      'the logger still writes to the old file',
    );
    await writeFile(file, 'new\n');
    api.logger.reopen();
    assert.deepEqual(await read('?from_line=3'), { total_lines: 1, entries: [] });
    assert.deepEqual(await read('?from_line=0'), { total_lines: 1, entries: ['new'] });
  });

  it('reads what the logger has open, whatever the configuration names by now', async () => {
    const other = join(api.folder, 'secret');
    await writeFile(file, 'mine\n');
    await writeFile(other, 'root:hash\n');
    await withLog(other);
    assert.deepEqual(await read(), { total_lines: 1, entries: ['mine'] });
    await withLog('');
    assert.deepEqual(await read(), { total_lines: 1, entries: ['mine'] });
  });

  it('reads nothing that a daemon without a log file is told to name', async (t) => {
    const without = await createApi();
    t.after(() => without.close());
    const other = join(without.folder, 'secret');
    await writeFile(other, 'root:hash\n');
    await without.apply(`${SAMPLE}\n[log]\nfile = ${JSON.stringify(other)}\n`);
    assert.deepEqual((await without.get('/api/logs')).json(), NOTHING);
  });

  it('follows no link that was put in the place of the log, nor reads another file there', async () => {
    const other = join(api.folder, 'secret');
    await writeFile(file, 'mine\n');
    await writeFile(other, 'root:hash\n');
    await rename(file, `${file}.1`);
    await symlink(other, file);
    assert.deepEqual(await read(), { total_lines: 1, entries: ['mine'] });
    await rm(file);
    await writeFile(file, 'another\nfile\n');
    assert.deepEqual(await read(), { total_lines: 1, entries: ['mine'] });
  });

  it('never touches a file below a mount point', async () => {
    const behind = await createApi({ logFile: 'mnt/daemon.log' });
    try {
      const mounting = (folder: string): string =>
        SAMPLE.replace(
          'remote_path = "/photos"',
          `mount_point = ${JSON.stringify(join(behind.folder, folder))}`,
        );
      await writeFile(join(behind.folder, 'mnt', 'daemon.log'), 'text\n');
      await behind.apply(mounting('mnt2'));
      assert.deepEqual((await behind.get('/api/logs')).json(), { total_lines: 1, entries: ['text'] });
      await behind.apply(mounting('mnt'));
      assert.deepEqual((await behind.get('/api/logs')).json(), NOTHING);
    } finally {
      await behind.close();
    }
  });

  it('refuses queries that are no whole numbers', async () => {
    for (const query of [
      '?lines=abc',
      '?lines=-1',
      '?lines=1.5',
      '?from_line=',
      '?lines=1&lines=2',
      '?from_line=1e3',
      '?from_line=9999999999999999',
    ]) {
      assert.equal((await api.get(`/api/logs${query}`)).status, 400, query);
    }
  });

  it('gives as many lines as are asked for', async () => {
    await writeFile(file, `${lines(0, 12_000).join('\n')}\n`);
    assert.deepEqual(await read('?lines=11999'), { total_lines: 12_000, entries: lines(1, 12_000) });
    assert.deepEqual(await read('?lines=999999'), { total_lines: 12_000, entries: lines(0, 12_000) });
    assert.deepEqual(await read('?lines=999999&from_line=1'), {
      total_lines: 12_000,
      entries: lines(1, 12_000),
    });
  });
});
