import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { LoadedConfig } from '../../../../core/contract/config.ts';
import type { DiscoveryRequest } from '../../../../core/plugins/discovery/discover.ts';
import { discoverBy, isolationsOf, Rediscovery } from '../../../../core/plugins/discovery/rediscovery.ts';
import { createManualClock } from '../../../../core/testing/manual-clock.ts';
import { collectLog } from '../../../support/platform/collected-log.ts';

/** A folder whose content is read slowly: what was `seen` lasts until `finish` is called. */
function slowFolder() {
  const seen: string[] = [];
  let running = 0;
  const ends: (() => void)[] = [];
  const folder = {
    content: 'first',
    seen,
    most: 0,
    run: async (): Promise<void> => {
      running += 1;
      folder.most = Math.max(folder.most, running);
      const { content } = folder;
      await new Promise<void>((resolve) => ends.push(resolve));
      seen.push(content);
      running -= 1;
    },
    finish: (): void => ends.shift()?.(),
  };
  return folder;
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('reading the plugin folders again', () => {
  it('goes one after the other: what changes during one is seen by one more, however often it was asked', async () => {
    const folder = slowFolder();
    const { log } = collectLog();
    const rediscovery = new Rediscovery({ clock: createManualClock(), log, run: folder.run });
    const first = rediscovery.ask();
    folder.content = 'second';
    const asked = [rediscovery.ask(), rediscovery.ask()];
    folder.content = 'third';
    asked.push(rediscovery.ask());
    folder.finish();
    await first;
    await turn();
    folder.finish();
    await Promise.all(asked);
    assert.deepEqual(folder.seen, ['first', 'third']);
    assert.equal(folder.most, 1);
  });

  it('is tried again after a failure, until it succeeds; not once it is closed', async () => {
    const clock = createManualClock();
    const { log, entries } = collectLog();
    let runs = 0;
    const run = (): Promise<void> =>
      (runs += 1) < 3 ? Promise.reject(new Error('the routes were not ready')) : Promise.resolve();
    const rediscovery = new Rediscovery({ clock, log, run });
    rediscovery.noticed();
    await clock.advance(30_000);
    await clock.advance(30_000);
    assert.equal(runs, 3);
    assert.equal(entries.filter(({ msg }) => msg === 'plugin folders not read').length, 2);
    runs = 0;
    rediscovery.noticed();
    await turn();
    rediscovery.close();
    await clock.advance(60_000);
    assert.equal(runs, 1);
  });

  it('looks by the configuration that is in force when it begins, not by one that came before', async (t) => {
    const stateDir = await mkdtemp(path.join(tmpdir(), 'mountkeeper-rediscovery-'));
    t.after(() => rm(stateDir, { recursive: true, force: true }));
    const loaded = (enabled: boolean, dir: string): LoadedConfig =>
      ({
        // As a schema of its own would have it: that does not decide where its code runs.
        config: {
          plugins: { dirs: [dir], garden: { enabled, isolation: 'none' }, pond: { isolation: 'own' } },
          supervisor: { state_dir: stateDir },
        },
        document: { plugins: { garden: { enabled }, pond: { isolation: 'shared' } } },
      }) as never;
    let current = loaded(false, '/before');
    const requests: DiscoveryRequest[] = [];
    const looking = discoverBy(
      () => current,
      (request) => Promise.resolve(void requests.push(request)),
    );
    // Comes while the names in the folder of installed plugins are read.
    const next = (current = loaded(true, '/after'));
    assert.equal(await looking, next);
    assert.deepEqual(
      requests.map(({ thirdPartyDirs, enabled }) => [thirdPartyDirs, [...enabled]]),
      [[['/after'], ['garden']]],
    );
    assert.deepEqual([...(requests[0]?.isolation ?? [])], [['pond', 'shared']]);
    assert.deepEqual([...isolationsOf(next)], [['pond', 'shared']]);
  });
});
