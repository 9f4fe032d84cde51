// @load alone
/** A share's NAS is away and comes back: seen by clients of that share alone. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { pressure, tooLong } from '../../support/platform/cpu-pressure.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { CLIENTS } from '../../support/clients/protocols.ts';
import { startWithExports, shownToAll } from '../../support/clients/daemon-with-exports.ts';
import type { DaemonWithExports } from '../../support/clients/daemon-with-exports.ts';
import { pauses, transfersOf } from '../../support/clients/transfers.ts';

/** Read throughout by three clients, which take the processors from the daemon on a slow machine. */
const FILM_BYTES = 320_000_000;
const BYTES_PER_SECOND = 8_000_000;
const RETURN_MS = 5_000;

describe('a share whose NAS is away', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let house: DaemonWithExports;
  let sum: string;

  before(async () => {
    scratch = await createScratch('cross-outage');
    nas = await Nas.create(scratch, { files: { 'steady/film.mov': FILM_BYTES, 'frail/x.bin': 5_000 } });
    sum = await nas.checksum('steady/film.mov');
    relay = await Relay.start(scratch, { targetPort: nas.port });
    await relay.cut();
    house = await startWithExports(scratch, {
      connections: [nas.connection('near'), nas.connection('far', relay.port)],
      shares: [
        { name: 'steady', connection: 'near', remote_path: 'steady' },
        { name: 'frail', connection: 'far', remote_path: 'frail' },
      ],
    });
    await house.daemon.healthy(['steady']);
    await shownToAll(house.access, 'steady');
  });
  after(() => scratch.close());

  it('leaves every server, and is on all of them within 5 s of its return; other shares go on', async (t) => {
    await until('its probe has failed', async () => (await house.daemon.share('frail')).health === 'failed', {
      timeoutMs: 30_000,
    });
    const transfers = await transfersOf(house.access, {
      share: 'steady',
      path: 'film.mov',
      sha256: sum,
      bytesPerSecond: BYTES_PER_SECOND,
    });
    for (const returns of ['after a while', 'once more']) {
      for (const { label, isShown } of CLIENTS)
        assert.equal(await isShown(house.access, 'frail'), false, label);
      // Its own probes are rare by then.
      await sleep(6_000 + Math.random() * 3_000);
      await relay.restore();
      const shown = await shownToAll(house.access, 'frail');
      t.diagnostic(
        `shown ${returns}: ${[...shown].map(([label, ms]) => `${label} ${ms} ms`).join(', ')} after the return`,
      );
      for (const [label, ms] of shown)
        assert.deepEqual(tooLong([{ ms, pressure: pressure() }], RETURN_MS), [], label);
      if (returns === 'once more') break;
      await relay.cut();
      await house.daemon.request('POST', '/api/reconnect/frail');
      await until(
        'its probe has failed again',
        async () => (await house.daemon.share('frail')).health === 'failed',
        { timeoutMs: 30_000 },
      );
      for (const { label, isShown } of CLIENTS)
        await until(`${label} shows it no more`, async () => !(await isShown(house.access, 'frail')), {
          timeoutMs: 20_000,
        });
    }
    for (const { label, transfer } of await transfers()) {
      t.diagnostic(`${label}: ${transfer.whole} times the film, longest pause ${transfer.longestMs} ms`);
      assert.deepEqual(transfer.failures, [], label);
      assert.ok(transfer.whole > 0, label);
    }
    assert.deepEqual(pauses(await transfers(), 500), []);
  });
});
