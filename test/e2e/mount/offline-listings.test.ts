// @load quiet
// @start 3
/**
 * Folder listings in an outage that is longer than they are trusted, and how they are renewed while the NAS
 * is there.
 */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep } from '../../support/platform/wait.ts';
import { createOfflineShare, goAway, lookAfter } from '../../support/mount/offline-share.ts';
import type { OfflineShare } from '../../support/mount/offline-share.ts';

const TRUSTED_MS = 10_000;
const sum = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

describe('listings that are trusted for 10 s', { concurrency: true }, () => {
  const rclone = currentRclone();

  describe('by rclone', { concurrency: 1 }, () => {
    let scratch: Scratch;
    let room: OfflineShare;
    let stopLooking: () => Promise<void>;
    const names = async (folder = ''): Promise<readonly string[]> => {
      const { seen, error } = await room.hands.do({ op: 'list', path: room.path(folder) });
      assert.equal(error, undefined, folder);
      return (seen ?? '').split(' ');
    };
    /**
     * Put on the NAS by somebody else: a listing that is begun once the former one is trusted no longer shows
     * it, however late it is asked for.
     */
    const isSeen = async (name: string): Promise<number> => {
      await writeFile(room.nas.path('d', name), name);
      const start = performance.now();
      for (;;) {
        const begunMs = performance.now() - start;
        if ((await names()).includes(name)) return performance.now() - start;
        assert.ok(
          begunMs < TRUSTED_MS + 2_000,
          `${name} is not in a listing that was begun ${Math.round(begunMs)} ms after it was there`,
        );
        await sleep(200);
      }
    };
    const write = (name: string, content: Buffer): ReturnType<OfflineShare['hands']['do']> =>
      room.hands.do({ op: 'write', path: room.path(name), content: content.toString('base64') });

    before(async () => {
      scratch = await createScratch('listings');
      room = await createOfflineShare(scratch, {
        rclone,
        protocol: 'webdav',
        mount: { dir_cache_time: `${TRUSTED_MS / 1000}s`, write_back: '25s' },
      });
      stopLooking = lookAfter(room);
    });
    after(async () => {
      await stopLooking();
      await room.mount.kill();
      await scratch.close();
    });

    it(
      'are renewed within that time, and what has not gone up yet stays as it was written',
      { timeout: 150_000 },
      async (t) => {
        const [written, over] = [randomBytes(70_000), randomBytes(30_000)];
        assert.equal((await write('new.bin', written)).error, undefined);
        assert.equal((await write('whole.bin', over)).error, undefined);
        t.diagnostic(`seen after ${Math.round(await isSeen('others.bin'))} ms`);
        for (const [name, content] of [
          ['new.bin', written],
          ['whole.bin', over],
        ] as const) {
          assert.equal((await room.hands.do({ op: 'read', path: room.path(name) })).seen, sum(content), name);
          assert.notEqual(
            await room.nas.checksum(`d/${name}`).catch(() => undefined),
            sum(content),
            `${name} has not gone up yet`,
          );
        }
      },
    );

    it('outlast an outage, and are renewed when it is over', { timeout: 150_000 }, async (t) => {
      await goAway(room, 'cut');
      await sleep(TRUSTED_MS + 2_000);
      for (const task of [
        { op: 'list-now', path: room.path(''), server: room.mount.pid },
        { op: 'read-now', path: room.path('cached.bin'), server: room.mount.pid },
      ] as const) {
        const { ms, queuedMs = 0, error } = await room.hands.do(task);
        assert.equal(error, undefined, task.op);
        assert.ok(
          ms - queuedMs < 50 && ms < 500,
          `${task.op} took ${ms} ms, ${queuedMs} of it in the queue for the processor`,
        );
      }
      await room.relay.restore();
      t.diagnostic(`seen after ${Math.round(await isSeen('later.bin'))} ms`);
    });
  });
});
