import assert from 'node:assert/strict';
import { appendFile, mkdir, rename, writeFile } from 'node:fs/promises';
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
    api = await createApi();
    file = join(api.folder, 'daemon.log');
  });
  afterEach(() => api.close());

  const withLog = (path: string): Promise<unknown> => api.apply(`${SAMPLE}\n[log]\nfile = ${JSON.stringify(path)}\n`);
  const read = async (query = ''): Promise<unknown> => {
    const answer = await api.get(`/api/logs${query}`);
    assert.equal(answer.status, 200);
    return answer.json();
  };

  it('has nothing without a log file, with a missing one and with a folder in its place', async () => {
    assert.deepEqual(await read(), NOTHING);
    await withLog(file);
    assert.deepEqual(await read(), NOTHING);
    await mkdir(file);
    assert.deepEqual(await read('?from_line=3'), NOTHING);
  });

  it('gives the last 200 lines at first, or as many as asked for', async () => {
    await withLog(file);
    await writeFile(file, `${lines(0, 500).join('\n')}\n`);
    assert.deepEqual(await read(), { total_lines: 500, entries: lines(300, 500) });
    assert.deepEqual(await read('?lines=3'), { total_lines: 500, entries: lines(497, 500) });
    assert.deepEqual(await read('?lines=3&from_line=0'), { total_lines: 500, entries: lines(497, 500) });
    assert.deepEqual(await read('?lines=1000'), { total_lines: 500, entries: lines(0, 500) });
    assert.deepEqual(await read('?lines=0'), { total_lines: 500, entries: [] });
  });

  it('gives from from_line on, up to as many as asked for', async () => {
    await withLog(file);
    await writeFile(file, `${lines(0, 500).join('\n')}\n`);
    assert.deepEqual(await read('?from_line=1&lines=2'), { total_lines: 500, entries: lines(1, 3) });
    assert.deepEqual(await read('?from_line=499'), { total_lines: 500, entries: lines(499, 500) });
    assert.deepEqual(await read('?from_line=500'), { total_lines: 500, entries: [] });
    assert.deepEqual(await read('?from_line=999999999999999'), { total_lines: 500, entries: [] });
  });

  it('lets a client follow with the former total, over a rotation too', async () => {
    await withLog(file);
    await writeFile(file, 'a\nb\n');
    assert.deepEqual(await read(), { total_lines: 2, entries: ['a', 'b'] });
    await appendFile(file, 'c\n');
    assert.deepEqual(await read('?from_line=2'), { total_lines: 3, entries: ['c'] });
    await rename(file, `${file}.1`);
    await writeFile(file, 'new\n');
    assert.deepEqual(await read('?from_line=3'), { total_lines: 1, entries: [] });
    assert.deepEqual(await read('?from_line=0'), { total_lines: 1, entries: ['new'] });
  });

  it('reads the file that the running configuration names', async () => {
    const other = join(api.folder, 'other.log');
    await writeFile(file, 'one\n');
    await writeFile(other, 'two\n');
    await withLog(file);
    assert.deepEqual(await read(), { total_lines: 1, entries: ['one'] });
    await withLog(other);
    assert.deepEqual(await read(), { total_lines: 1, entries: ['two'] });
  });

  it('never touches a file below a mount point', async () => {
    const mountPoint = join(api.folder, 'mnt');
    await mkdir(mountPoint);
    await writeFile(join(mountPoint, 'daemon.log'), 'text\n');
    const toml = SAMPLE.replace('remote_path = "/photos"', `mount_point = ${JSON.stringify(mountPoint)}`);
    await api.apply(`${toml}\n[log]\nfile = ${JSON.stringify(join(api.folder, 'mnt2.log'))}\n`);
    await writeFile(join(api.folder, 'mnt2.log'), 'beside\n');
    assert.deepEqual(await read(), { total_lines: 1, entries: ['beside'] });
    const check = await api.config.check(`${toml}\n[log]\nfile = ${JSON.stringify(join(mountPoint, 'daemon.log'))}\n`, 'file');
    if (!check.ok) return;
    await api.apply(`${toml}\n[log]\nfile = ${JSON.stringify(join(mountPoint, 'daemon.log'))}\n`);
    assert.deepEqual(await read(), NOTHING);
  });

  it('refuses queries that are no whole numbers', async () => {
    for (const query of ['?lines=abc', '?lines=-1', '?lines=1.5', '?from_line=', '?lines=1&lines=2', '?from_line=1e3', '?from_line=9999999999999999']) {
      assert.equal((await api.get(`/api/logs${query}`)).status, 400, query);
    }
  });

  it('gives as many lines as are asked for', async () => {
    await withLog(file);
    await writeFile(file, `${lines(0, 12_000).join('\n')}\n`);
    assert.deepEqual(await read('?lines=11999'), { total_lines: 12_000, entries: lines(1, 12_000) });
    assert.deepEqual(await read('?lines=999999'), { total_lines: 12_000, entries: lines(0, 12_000) });
    assert.deepEqual(await read('?lines=999999&from_line=1'), { total_lines: 12_000, entries: lines(1, 12_000) });
  });
});
