// @load quiet
// @start 2
/** A NAS that refuses connections or says nothing at all, while somebody goes on working. */
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { after, afterEach, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { createOfflineShare, goAway, lookAfter } from '../../support/mount/offline-share.ts';
import type { Outcome } from '../../support/mount/user-program.ts';
import type { OfflineShare } from '../../support/mount/offline-share.ts';

const OUTAGES = [
  ['refuses connections', 'cut'],
  ['is silent', 'blackHole'],
] as const;
const sum = (content: Buffer): string => createHash('sha256').update(content).digest('hex');
const base64 = (content: Buffer): string => content.toString('base64');

const rclone = currentRclone();

const protocol = 'sftp';
for (const [what, how] of OUTAGES) {
  describe(`a NAS that ${what}, over ${protocol}`, () => {
    let scratch: Scratch;
    let room: OfflineShare;
    let stopLooking: () => Promise<void>;
    const onNas = (name: string): Promise<Buffer> => readFile(room.nas.path('d', name));
    const allUp = (wanted: ReadonlyMap<string, Buffer>): Promise<boolean> =>
      Promise.all([...wanted].map(async ([name, content]) => sum(await onNas(name)) === sum(content))).then(
        (all) => all.every(Boolean),
      );

    /** Somebody reads when the NAS falls silent, and somebody else is connected to it. */
    const goAwayMeanwhile = async (t: TestContext): Promise<void> => {
      const others = connect({ port: room.relay.port, host: '127.0.0.1' });
      others.on('error', () => undefined);
      t.after(() => others.destroy());
      await once(others, 'connect');
      let reading: Promise<Outcome> | undefined;
      await goAway(room, how, () => {
        reading = room.hands.do({ op: 'read', path: room.path('begun.bin') });
      });
      const knownAt = performance.now();
      assert.equal((await reading)?.error, 'EIO');
      t.diagnostic(
        `a read that was begun before failed ${Math.round(performance.now() - knownAt)} ms after it was known`,
      );
      assert.ok(performance.now() - knownAt < 5_000, `${performance.now() - knownAt} ms`);
      assert.equal(others.destroyed, false, 'a connection of somebody else lives on');
    };

    before(async () => {
      scratch = await createScratch('offline');
      room = await createOfflineShare(scratch, { rclone, protocol });
      stopLooking = lookAfter(room);
      await until(
        'the remote has answered',
        () => room.mount.checkRemote(AbortSignal.timeout(5_000)).then(() => true),
        { timeoutMs: 20_000 },
      );
    });
    afterEach(() => room.relay.restore());
    after(async () => {
      await stopLooking();
      await room.mount.kill();
      await scratch.close();
    });

    it(
      'fails uncached reads within 5 s, serves the cache as before, and recovers on its return',
      { timeout: 200_000 },
      async (t) => {
        const wanted = new Map<string, Buffer>();
        const { hands, path } = room;
        if (how === 'blackHole') await goAwayMeanwhile(t);
        else await goAway(room, how);
        // The first may meet the pauses that former failures left.
        for (const name of ['never1.bin', 'never2.bin']) {
          const { ms, error } = await hands.do({
            op: 'read',
            path: path(name),
          });
          t.diagnostic(`${name} failed after ${Math.round(ms)} ms`);
          assert.equal(error, 'EIO');
          assert.ok(ms < 5_000, `${name} took ${ms} ms`);
        }
        for (const task of [
          { op: 'read-now', path: path('cached.bin'), server: room.mount.pid },
          { op: 'list-now', path: path(''), server: room.mount.pid },
        ] as const) {
          const { ms, queuedMs = 0, error } = await hands.do(task);
          assert.equal(error, undefined);
          assert.ok(
            ms - queuedMs < 50 && ms < 500,
            `${task.op} took ${ms} ms, ${queuedMs} of it in the queue for the processor`,
          );
        }
        for (const name of ['new.bin', 'whole.bin', 'never3.bin']) {
          wanted.set(name, randomBytes(300_000));
          assert.equal(
            (
              await hands.do({
                op: 'write',
                path: path(name),
                content: base64(wanted.get(name) ?? Buffer.alloc(0)),
              })
            ).error,
            undefined,
          );
        }
        await room.relay.restore();
        const backAt = performance.now();
        await until('what was written is up', () => allUp(wanted), {
          timeoutMs: 40_000,
          everyMs: 200,
        });
        t.diagnostic(`all up ${Math.round(performance.now() - backAt)} ms after the return`);
        const { ms, error, seen } = await hands.do({
          op: 'read',
          path: path('never1.bin'),
        });
        assert.deepEqual(
          { error, seen },
          { error: undefined, seen: await room.nas.checksum('d/never1.bin') },
        );
        assert.ok(ms < 5_000);
      },
    );
  });
}
