import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { after, before, describe, it } from 'node:test';
import type { Daemon } from '../../support/daemon/daemon.ts';
import type { Nas } from '../../support/nas/nas.ts';
import { allProcesses } from '../../support/platform/processes.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { openWebdavShare } from '../../support/exports/webdav-share.ts';
import type { WebdavShare } from '../../support/exports/webdav-share.ts';
import { localFile, runClient, sumOf } from '../../support/exports/client-programs.ts';

const BYTES = 24_000_000;
const UPLOADED = /^(?:kept\.bin(?:\.[0-9a-f]+\.mk[0-9a-f]{8})?|\.mountkeeper-upload-.*)$/;

describe('a file that is moved over while something is killed, over WebDAV', () => {
  let scratch: Scratch;
  let nas: Nas;
  let daemon: Daemon;
  let url: WebdavShare['url'];
  let dav: WebdavShare['dav'];

  const get = async (name: string): Promise<string> => {
    const { code, output } = await runClient(
      'curl',
      ['-sS', '--fail', '-o', scratch.path('seen'), '-u', 'alice:wonder', url(name)],
      45_000,
    );
    assert.equal(code, 0, output);
    return sumOf(scratch.path('seen'));
  };
  /** Sent until it is answered at all: the front may be away for a moment. */
  const wasPut = (from: string, name: string) =>
    until(`${name} is taken`, async () => [201, 204].includes(await dav('-T', from, url(name))), {
      timeoutMs: 30_000,
      everyMs: 200,
    });
  const pidOf = async (isIt: (command: string) => boolean): Promise<number> => {
    const found = await until(
      'it runs',
      async () => (await allProcesses()).find(({ command }) => isIt(command)),
      { timeoutMs: 30_000 },
    );
    return found.pid;
  };

  /**
   * Whether the NAS has neither the target nor the upload that takes its place. This NAS cannot rename over a
   * file, so the old one is taken away when the new one is there to its last byte: `.mountkeeper-upload-…`, or
   * `kept.bin.1a2b3c4d.mk5e6f7a8b` of rclone's own. One listing shows both or either.
   */
  const isGone = async (): Promise<boolean> =>
    !(await readdir(nas.path('team'))).some((name) => UPLOADED.test(name));

  before(async () => {
    ({ scratch, nas, daemon, url, dav } = await openWebdavShare('dav-over'));
  });
  after(() => scratch.close());

  it('has the old or the new content of a file that is moved over, whatever is killed meanwhile', async () => {
    const old = await localFile(scratch, 'old', BYTES);
    const fresh = await localFile(scratch, 'fresh', BYTES + 1);
    const victims = {
      'the process behind the mount': () => daemon.rclonePid('team'),
      'the front': () =>
        pidOf((command) => command.includes('/webdav/proxy/main.js') && command.includes(daemon.stateDir)),
    };
    for (const [who, find] of Object.entries(victims)) {
      await wasPut(old.path, 'kept.bin');
      await until(
        'the old one is on the NAS',
        async () => (await nas.has('team/kept.bin')) && (await nas.checksum('team/kept.bin')) === old.sum,
        { timeoutMs: 40_000, everyMs: 100 },
      );
      await wasPut(fresh.path, 'fresh.bin');
      const victim = await find();
      const absences: string[] = [];
      const stop = new AbortController();
      const watching = (async () => {
        for (; !stop.signal.aborted; await sleep(5)) if (await isGone()) absences.push(who);
      })();
      const moving = dav('-X', 'MOVE', '-H', `Destination: ${url('kept.bin')}`, url('fresh.bin'));
      // Reading the source takes some 50 ms, writing over the target as long again.
      await sleep(90);
      process.kill(victim, 'SIGKILL');
      const status = await moving;
      const sums = [old.sum, fresh.sum];
      try {
        const found = await until(
          `${who} is back, and the file whole`,
          async () => {
            const sum = await get('kept.bin');
            return sums.includes(sum) && sum;
          },
          { timeoutMs: 20_000, everyMs: 100 },
        );
        if (status === 204) assert.equal(found, fresh.sum, who);
        // The move may be carried to its end just now: then it is here first, and there a moment later.
        else
          await until(
            `${who}: the new content is somewhere`,
            async () => (await get('kept.bin')) === fresh.sum || (await get('fresh.bin')) === fresh.sum,
            { timeoutMs: 20_000, everyMs: 100 },
          );
        await until(
          `${who}: it is whole on the NAS`,
          async () => sums.includes(await nas.checksum('team/kept.bin')),
          { timeoutMs: 40_000, everyMs: 200 },
        );
      } finally {
        stop.abort();
        await watching;
      }
      assert.deepEqual(absences, [], 'the target was taken away from the NAS for a moment');
      await dav('-X', 'DELETE', url('fresh.bin'));
    }
  });

  it('keeps the file when the move is asked for once more, or there is nothing to move', async () => {
    const kept = await localFile(scratch, 'kept', 3_000);
    await wasPut(kept.path, 'once.bin');
    await wasPut(kept.path, 'target.bin');
    const move = (from: string) => dav('-X', 'MOVE', '-H', `Destination: ${url('target.bin')}`, url(from));
    assert.deepEqual(
      [await move('once.bin'), await move('once.bin'), await move('never.bin')],
      [204, 404, 404],
    );
    assert.equal(await get('target.bin'), kept.sum);
  });
});
