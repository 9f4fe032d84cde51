// @load quiet
// @start 3
/**
 * A share's rclone is another one than the one that filled the cache, its NAS goes away, and somebody reads a cached
 * file in a folder that nobody has listed since.
 */
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { readMeta, treesOf } from '../../../plugins/mount/cache/metadata.ts';
import { covers } from '../../../plugins/mount/cache/ranges.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { timed, until } from '../../support/platform/wait.ts';

const WARMED = 'films/old/deep/a.bin';
const BYTES = 3_000_000;
const LISTED = /folders with cached files listed/g;
const AT_HAND = 'in folders whose listings are at hand';
const sum = (content: Buffer): string => createHash('sha256').update(content).digest('hex');

describe('a file that another rclone has cached', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;

  const read = (): Promise<Buffer> => readFile(join(daemon.mountPoint('work'), WARMED));
  const listed = async (): Promise<number> => (await daemon.log()).match(LISTED)?.length ?? 0;
  const isAway = (): Promise<unknown> =>
    until(
      'it is known',
      async () => /does not answer/.test((await daemon.share('work')).health_message ?? ''),
      {
        timeoutMs: 30_000,
      },
    );
  const isThere = (): Promise<unknown> =>
    until('the outage is over', async () => (await daemon.share('work')).health_message === null, {
      timeoutMs: 60_000,
    });
  /** `renew` puts another rclone in the place of the one that has the listings. */
  const isRead = async (t: TestContext, renew: () => Promise<void>): Promise<void> => {
    const before = await listed();
    const ms = await timed(
      renew().then(() =>
        until('its folders are listed', async () => (await listed()) > before, { timeoutMs: 30_000 }),
      ),
    );
    t.diagnostic(`listed after ${Math.round(ms)} ms`);
    await relay.cut();
    await isAway();
    const { health_message: said } = await daemon.share('work');
    assert.match(said ?? '', /cached files stay readable, writes wait/);
    assert.equal(sum(await read()), await nas.checksum(`work/${WARMED}`));
  };

  before(async () => {
    scratch = await createScratch('renewed-reader');
    nas = await Nas.create(scratch, {
      files: { [`work/${WARMED}`]: BYTES, 'work/films/new/b.bin': 5_000, 'work/c.bin': 10 },
    });
    relay = await Relay.start(scratch, { targetPort: nas.port });
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas', relay.port)],
      shares: [{ name: 'work', connection: 'nas', remote_path: 'work' }],
      // At the return of a NAS it has all folders listed.
      sections: { 'plugins.nas-watch': { enabled: false } },
    });
    await daemon.start();
    await daemon.healthy();
    assert.equal((await read()).length, BYTES);
    // rclone notes it some seconds later only; what is not noted then is fetched again.
    const { meta } = treesOf(scratch.path('keeper/cache/work'));
    await until(
      'rclone has noted what it has',
      async () => {
        const noted = await readMeta(join(meta, 'work', WARMED));
        return noted !== undefined && noted !== 'torn' && covers(noted.Rs, BYTES);
      },
      { timeoutMs: 30_000 },
    );
  });
  afterEach(async () => {
    await relay.restore();
    await isThere();
  });
  after(() => scratch.close());

  it('is read whole after the daemon was started again', { timeout: 120_000 }, (t) =>
    isRead(t, async () => {
      await daemon.stop();
      await daemon.start();
      await daemon.healthy();
    }),
  );

  it('is read whole after rclone was killed', { timeout: 120_000 }, (t) =>
    isRead(t, async () => void process.kill(await daemon.rclonePid('work'), 'SIGKILL')),
  );

  it('is promised only where it was listed, when the NAS leaves first', { timeout: 120_000 }, async () => {
    await daemon.stop();
    await relay.cut();
    await daemon.start();
    await until('it is up', async () => (await daemon.share('work')).mounted, { timeoutMs: 30_000 });
    await isAway();
    const { health_message: said } = await daemon.share('work');
    assert.doesNotMatch(said ?? '', /cached files stay readable, writes/, said ?? '');
    await relay.restore();
    const before = await listed();
    await until('its folders are listed', async () => (await listed()) > before, { timeoutMs: 60_000 });
    await isThere();
    await relay.cut();
    await isAway();
    assert.doesNotMatch((await daemon.share('work')).health_message ?? '', new RegExp(AT_HAND));
    assert.equal(sum(await read()), await nas.checksum(`work/${WARMED}`));
  });
});
