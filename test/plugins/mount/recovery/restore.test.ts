import assert from 'node:assert/strict';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { Logger } from 'mountkeeper';
import type { FileMeta } from '../../../../plugins/mount/cache/metadata.ts';
import { settleIdentity } from '../../../../plugins/mount/cache/identity.ts';
import { repairCache } from '../../../../plugins/mount/recovery/repair.ts';
import { pendingIn } from '../../../../plugins/mount/cache/scan.ts';
import { quarantine } from '../../../../plugins/mount/recovery/quarantine.ts';
import { createClock } from '../../../../core/platform/clock.ts';

const silent = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
} as unknown as Logger;
const clock = createClock();
const AT = '2026-11-21T05:00:00.000Z';
const REMOTE_BYTES = 100;

describe('changes that rclone gave up', () => {
  let root: string;
  let cache: string;
  const data = (path: string): string => join(cache, 'vfs', 'nas', path);
  const meta = (path: string): string => join(cache, 'vfsMeta', 'nas', path);
  const put = async (file: string, content: string | Buffer): Promise<void> => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, content);
    // As rclone leaves both when it saves a record after the last change.
    await utimes(file, new Date(AT), new Date(AT));
  };
  const record = (changes: Partial<FileMeta>): FileMeta => ({
    ModTime: AT,
    ATime: AT,
    Size: REMOTE_BYTES,
    Rs: null,
    Fingerprint: `${REMOTE_BYTES},2026`,
    Dirty: true,
    ...changes,
  });
  const recordOf = async (path: string): Promise<FileMeta> =>
    JSON.parse(await readFile(meta(path), 'utf8')) as FileMeta;
  /** A file of which only `text` was written, at `at`. */
  const partly = (text: string, at: number, bytes = REMOTE_BYTES): { content: Buffer; meta: FileMeta } => {
    const content = Buffer.alloc(bytes);
    content.write(text, at);
    return { content, meta: record({ Rs: [{ Pos: at, Size: text.length }] }) };
  };
  const held = async (path: string, version: { content: Buffer; meta: FileMeta }): Promise<void> => {
    await put(join(root, 'content'), version.content);
    await put(join(root, 'record'), JSON.stringify(version.meta));
    await quarantine(cache, path, { content: join(root, 'content'), meta: join(root, 'record') });
  };
  const recovered = async (): Promise<readonly string[]> => readdir(join(cache, 'recovered')).catch(() => []);

  beforeEach(async () => {
    root = await mkdtemp(join(tmpdir(), 'mk-held-'));
    cache = join(root, 'photos');
  });
  afterEach(() => rm(root, { recursive: true, force: true }));

  it('count as waiting, and are dirty at the next start, written zeros included', async () => {
    await held('d/a', { ...partly('x', 50), meta: record({ Rs: [{ Pos: 40, Size: 20 }] }) });
    assert.deepEqual(await pendingIn(cache), { count: 1, bytes: REMOTE_BYTES, paths: ['d/a'] });
    assert.deepEqual(await repairCache(cache, silent, clock), ['d/a']);
    assert.deepEqual((await recordOf('d/a')).Rs, [{ Pos: 40, Size: 20 }]);
    assert.equal((await recordOf('d/a')).Dirty, true);
    assert.equal((await readFile(data('d/a'))).toString('latin1', 50, 51), 'x');
    assert.deepEqual(await recovered(), []);
    await assert.rejects(stat(join(cache, 'held')));
  });

  it('lie over each other in the order in which they were made, and under what the cache has by now', async () => {
    await held('a', partly('1111', 10));
    await held('a', partly('22', 12));
    const live = partly('3', 80);
    await put(data('a'), live.content);
    await put(meta('a'), JSON.stringify(live.meta));
    await repairCache(cache, silent, clock);
    const content = await readFile(data('a'), 'latin1');
    assert.deepEqual([content.slice(10, 14), content.slice(80, 81)], ['1122', '3']);
    assert.deepEqual((await recordOf('a')).Rs, [
      { Pos: 10, Size: 4 },
      { Pos: 80, Size: 1 },
    ]);
    assert.equal((await recovered()).length, 2, 'the versions themselves are kept');
  });

  it('give way to a file that was written anew as a whole, and are kept aside', async () => {
    await held('a', partly('old', 60));
    await put(data('a'), 'short');
    await put(meta('a'), JSON.stringify(record({ Size: 0 })));
    await repairCache(cache, silent, clock);
    assert.equal(await readFile(data('a'), 'utf8'), 'short');
    assert.equal((await recovered()).length, 1);
  });

  it("give way to nothing that is clean: that is the remote's file", async () => {
    await held('a', partly('mine', 60));
    await put(data('a'), Buffer.alloc(REMOTE_BYTES, 'r'));
    await put(meta('a'), JSON.stringify(record({ Dirty: false, Rs: [{ Pos: 0, Size: REMOTE_BYTES }] })));
    await repairCache(cache, silent, clock);
    assert.deepEqual((await recordOf('a')).Rs, [{ Pos: 60, Size: 4 }]);
    assert.equal((await readFile(data('a'), 'latin1')).slice(60, 64), 'mine');
  });

  it('make the file longer where they went past its end', async () => {
    await held('a', partly('tail', 100, 104));
    await held('a', partly('x', 5));
    await repairCache(cache, silent, clock);
    const { Rs, Size } = await recordOf('a');
    assert.deepEqual(
      { Rs, Size },
      {
        Rs: [
          { Pos: 5, Size: 1 },
          { Pos: 100, Size: 4 },
        ],
        Size: 104,
      },
    );
    assert.equal((await readFile(data('a'), 'latin1')).slice(100), 'tail');
  });

  it('are not taken for none where their folder cannot be read', async () => {
    await mkdir(cache, { recursive: true });
    await symlink('held', join(cache, 'held'));
    await assert.rejects(pendingIn(cache), /ELOOP/);
    await assert.rejects(held('a', partly('mine', 60)), /ELOOP/);
    assert.equal((await stat(join(root, 'content'))).size, REMOTE_BYTES, 'it stays where it was');
  });

  it('wait with the place that they belong to', async () => {
    await settleIdentity(cache, 'first', () => Promise.resolve(false));
    await held('a', partly('mine', 60));
    assert.deepEqual(await settleIdentity(cache, 'second', async () => (await pendingIn(cache)).count > 0), {
      setAside: true,
    });
    assert.equal((await pendingIn(cache)).count, 0);
    await settleIdentity(cache, 'first', () => Promise.resolve(false));
    assert.equal((await pendingIn(cache)).count, 1);
  });
});
