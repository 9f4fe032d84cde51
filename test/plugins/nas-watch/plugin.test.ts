import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { createTestHost } from 'mountkeeper/testing';
import type { RefreshResult } from 'mountkeeper';
import nasWatch from '../../../plugins/nas-watch/index.ts';
import { readOutages, writeOutages } from '../../../plugins/nas-watch/outage-file.ts';
import { testShare } from '../dir-refresh/fixture.ts';
import { sharesOf } from '../../support/shares/fake-shares.ts';

async function start(t: TestContext) {
  // An address that refuses at once: a name would be looked up anew at every knock, hundreds of times.
  const shares = [
    testShare('photos', { host: '127.0.0.1', port: '1' }),
    testShare('video', { host: '127.0.0.1', port: '1' }),
  ];
  const refreshed: string[] = [];
  const refresher = {
    refresh: async (name: string): Promise<RefreshResult> => {
      refreshed.push(name);
      return { ok: 1, failed: [] };
    },
  };
  const live = () =>
    shares.map((share) =>
      share.mount ? share.live : { ...share.live, health: 'failed' as const, remoteAnswers: undefined },
    );
  const host = await createTestHost({
    plugins: [nasWatch],
    config: {},
    services: { shares: sharesOf(live), directoryRefresher: refresher },
  });
  t.after(() => host.close());
  return { host, shares, refreshed };
}

describe('nas-watch', () => {
  it('shows an outage in the status and in a notice, tells, and welcomes the NAS back', async (t) => {
    const { host, shares, refreshed } = await start(t);
    const [photos, video] = shares;
    assert.ok(photos && video);
    await host.advance(5_000);
    assert.equal(host.status().nasOffline, false);
    photos.remoteAnswers = false;
    photos.made.remoteProblem = 'no answer';
    video.mount = undefined;
    await host.advance(6_000);
    assert.equal(host.status().nasOffline, true);
    const notice = async (): Promise<string> =>
      (await host.hooks.collect('collectNotices'))[0]?.message ?? '';
    assert.match(
      await notice(),
      /connection nas has been offline for \ds; .* listed in video; in its other shares, cached files stay/,
    );
    Object.assign(photos.mount ?? {}, { isUnreadable: true });
    assert.match(await notice(), /nothing can be listed in photos, video; what was written there is kept\.$/);
    Object.assign(photos.mount ?? {}, { isUnreadable: false });
    video.mount = photos.mount;
    assert.match(await notice(), /offline for \ds; cached files stay readable, writes wait\.$/);
    Object.assign(photos.mount ?? {}, { hasUnreadFolders: true });
    assert.match(
      await notice(),
      /; cached files stay readable in folders whose listings are at hand, writes/,
    );
    Object.assign(photos.mount ?? {}, { hasUnreadFolders: false });
    video.mount = undefined;
    await host.advance(5 * 60_000);
    assert.deepEqual(
      host.sent.map(({ command }) => command),
      ['notify'],
    );
    photos.remoteAnswers = true;
    await host.advance(2_000);
    assert.equal(host.status().nasOffline, false);
    assert.deepEqual(refreshed, ['photos']);
    assert.deepEqual(
      host.sent.map(({ command, args }) =>
        command === 'notify' ? (args[0] as { type: string }).type : [command, ...args],
      ),
      ['nas.offline', ['reconnect', 'video'], 'nas.back'],
    );
    assert.deepEqual(await host.hooks.collect('collectNotices'), []);
  });
});

describe('a NAS that is back', () => {
  it('has its folders read anew once the mount itself reaches it', async (t) => {
    const { host, shares, refreshed } = await start(t);
    const [photos, video] = shares;
    assert.ok(photos && video);
    photos.remoteAnswers = false;
    photos.made.remoteProblem = 'no answer';
    video.mount = undefined;
    await host.advance(6_000);
    assert.equal(host.status().nasOffline, true);
    await host.hooks.observe('shareHealthChanged', {
      share: 'video',
      from: 'probing',
      to: 'healthy',
      reason: null,
    });
    assert.equal(host.status().nasOffline, false);
    await host.advance(3_000);
    assert.deepEqual(refreshed, []);
    photos.remoteAnswers = true;
    await host.advance(1_000);
    assert.deepEqual(refreshed, ['photos']);
  });
});

describe('the file of outages', () => {
  it('reads back what was written, and nothing from one that is damaged or missing', async (t) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'mk-outages-'));
    t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 5 }));
    const file = path.join(folder, 'deep', 'outages.json');
    assert.deepEqual(await readOutages(file), {});
    await writeOutages(file, { nas: { since: 5, isTold: true } });
    assert.deepEqual(await readOutages(file), { nas: { since: 5, isTold: true } });
    await writeFile(file, (await readFile(file, 'utf8')).slice(0, 9));
    assert.deepEqual(await readOutages(file), {});
    await writeFile(file, '{"nas":{"since":"x"},"b":{"since":7}}');
    assert.deepEqual(await readOutages(file), { b: { since: 7, isTold: false } });
  });
});
