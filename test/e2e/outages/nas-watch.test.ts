// @load quiet
// @start 3
/**
 * A NAS goes away and comes back: noticed by evidence, told in the status, welcomed with probes and fresh
 * listings.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import type { StatusJson } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';

describe('the NAS watch', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;
  let files: Files;
  const offline = async (): Promise<boolean> =>
    ((await daemon.status()) as StatusJson & { nas_offline: boolean }).nas_offline;
  const noticed = async (what: string, wanted: boolean, withinMs: number): Promise<number> => {
    const begin = performance.now();
    await until(what, async () => (await offline()) === wanted, { timeoutMs: withinMs });
    return Math.round(performance.now() - begin);
  };

  before(async () => {
    scratch = await createScratch('nas-watch');
    nas = await Nas.create(scratch, { files: { 'a/x.bin': 100, 'b/x.bin': 100 } });
    relay = await Relay.start(scratch, { targetPort: nas.port });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('far', relay.port), nas.connection('near')],
      shares: [
        { name: 'work', connection: 'far', remote_path: 'a' },
        { name: 'other', connection: 'near', remote_path: 'b' },
      ],
      sections: { mount: { dir_cache_time: '12h' } },
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('notices a NAS that falls silent within 15 s, and its first answer at once', async (t) => {
    assert.equal(await offline(), false);
    await files.ask({ op: 'list', path: daemon.mountPoint('work') });
    await relay.blackHole();
    const silentAfter = await noticed('offline', true, 15_000);
    assert.match(await daemon.log(), /NAS offline.*far/);
    await nas.put('a/meanwhile.bin', 10);
    await relay.restore();
    const backAfter = await noticed('back', false, 15_000);
    t.diagnostic(`offline after ${silentAfter} ms, back after ${backAfter} ms`);
    const listed = async (): Promise<boolean> =>
      (await files.ask<string[]>({ op: 'list', path: daemon.mountPoint('work') })).includes('meanwhile.bin');
    await until('what came to the NAS meanwhile shows', listed, { timeoutMs: 30_000 });
  });

  it('notices a NAS that refuses connections, and probes its failed share as soon as it is back', async (t) => {
    await relay.cut();
    const cutAfter = await noticed('offline', true, 15_000);
    await daemon.request('POST', '/api/reconnect/work');
    await until('the share has failed', async () => (await daemon.share('work')).health === 'failed', {
      timeoutMs: 20_000,
    });
    assert.equal(await offline(), true);
    assert.equal((await daemon.share('other')).health, 'healthy');
    await relay.restore();
    const begin = performance.now();
    await daemon.healthy(['work'], 13_000);
    t.diagnostic(
      `offline after ${cutAfter} ms, share mounted ${Math.round(performance.now() - begin)} ms after the return`,
    );
    // The share is probed first, and the watch is told of it.
    await noticed('back', false, 5_000);
  });
});
