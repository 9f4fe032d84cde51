import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { createManualClock } from 'mountkeeper/testing';
import { createFailedUploads, failedUploadsTrouble } from '../../../../plugins/mount/stats/failed-uploads.ts';
import type { FailedUploads } from '../../../../plugins/mount/stats/failed-uploads.ts';

const line = (name: string, reason: string): string =>
  `2026/03/01 10:00:05 ERROR : ${name}: vfs cache: failed to upload try #2, ` +
  `will retry in 4s: vfs cache: failed to transfer file from cache to remote: ${reason}`;
const before = new Date('2026-03-01T10:00:01').toISOString();
const after = new Date('2026-03-01T10:00:09').toISOString();

interface Room {
  readonly put: (name: string, dirty: boolean, modTime?: string) => Promise<void>;
  readonly look: (mayBe?: boolean) => Promise<FailedUploads>;
  readonly lines: string[];
}

async function inRoom(work: (room: Room) => Promise<void>): Promise<void> {
  const metaRoot = await mkdtemp(join(tmpdir(), 'mk-failed-'));
  const clock = createManualClock();
  const lines: string[] = [];
  const failed = createFailedUploads({ clock, metaRoot, tail: () => Promise.resolve(lines) });
  try {
    await work({
      lines,
      put: async (name, dirty, modTime = before) => {
        await mkdir(dirname(join(metaRoot, name)), { recursive: true });
        await writeFile(
          join(metaRoot, name),
          JSON.stringify({
            Size: 1,
            Rs: null,
            Fingerprint: '',
            Dirty: dirty,
            ModTime: modTime,
            ATime: modTime,
          }),
        );
      },
      look: async (mayBe = true) => {
        await clock.advance(5_000);
        return failed(mayBe);
      },
    });
  } finally {
    await rm(metaRoot, { recursive: true, force: true });
  }
}

describe('files that could not be uploaded', () => {
  it('count once each as long as they wait, whatever their names', () =>
    inRoom(async ({ put, look, lines }) => {
      await put('a/照片: 1.raw', true);
      await put('b', true);
      lines.push(
        line('a/照片: 1.raw', 'permission denied'),
        line('b', 'permission denied'),
        line('b', 'permission denied'),
      );
      assert.equal((await look()).count, 2);
      await put('b', false);
      assert.equal((await look()).count, 1);
      assert.deepEqual(await look(false), { count: 0, reason: undefined });
    }));

  it('do not count when they were changed since, or never tried', () =>
    inRoom(async ({ put, look, lines }) => {
      await put('changed', true, after);
      await put('new', true);
      lines.push(line('changed', 'permission denied'), line('gone', 'permission denied'));
      assert.equal((await look()).count, 0);
    }));

  it('tell why, unless the remote is away', () =>
    inRoom(async ({ put, look, lines }) => {
      await put('a', true);
      lines.push(line('a', 'dial tcp 127.0.0.1:22: connect: connection refused'));
      const away = await look();
      assert.deepEqual([away.count, failedUploadsTrouble(away)], [1, undefined]);
      lines.push(line('a', 'Update Create failed: sftp: "disk quota exceeded" (SSH_FX_FAILURE)'));
      assert.match(
        failedUploadsTrouble(await look()) ?? '',
        /^1 file could not be uploaded so far: there is no space left/,
      );
    }));
});
