/**
 * One limit for the whole daemon, as the NAS sees it: divided by demand, kept over reconnects and restarts of
 * a mount.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { mountedAnew } from '../../support/config/applied-config.ts';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const MIB = 1_048_576;
const LIMIT = 8 * MIB;
const MOST_STANDSTILL_MS = 250;

interface BandwidthJson {
  readonly limit: { readonly up: number };
  readonly shares: readonly { readonly share: string; readonly up: number }[];
}

describe('the bandwidth limit of the whole daemon', () => {
  let scratch: Scratch;
  let relay: Relay;
  let daemon: Daemon;
  let files: Files;

  /**
   * Bytes per second that have come to the NAS in so long. The relay runs in this process: a span in which
   * that stood still says nothing.
   */
  const received = async (ms: number): Promise<number> => {
    for (let tries = 1; ; tries += 1) {
      const begin = { at: performance.now(), bytes: relay.passed.up };
      let standstillMs = 0;
      for (let at = begin.at; at - begin.at < ms;) {
        const last = at;
        await sleep(20);
        at = performance.now();
        standstillMs = Math.max(standstillMs, at - last);
      }
      if (standstillMs < MOST_STANDSTILL_MS || tries === 4)
        return ((relay.passed.up - begin.bytes) * 1000) / (performance.now() - begin.at);
    }
  };
  const assertWhole = (rate: number, what: string): void => {
    assert.ok(rate > LIMIT * 0.9 && rate < LIMIT * 1.1, `${what}: ${(rate / MIB).toFixed(2)} MiB/s`);
  };
  /** The first of three spans in which all of the limit is used, or more; on a busy machine it may take a while. */
  const inUse = async (): Promise<number> => {
    for (let tries = 1; ; tries += 1) {
      const rate = await received(3_000);
      if (rate > LIMIT * 0.9 || tries === 3) return rate;
    }
  };
  const speeds = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      (await daemon.status()).shares.map((share) => [
        share.name,
        (share as unknown as { speed: number }).speed,
      ]),
    );
  const uploading = (...names: readonly string[]): Promise<unknown> =>
    until(
      `${names.join(' and ')} upload, and nobody else`,
      async () => {
        const now = await speeds();
        return Object.keys(now).every((name) => names.includes(name) === (now[name] ?? 0) > MIB / 2);
      },
      { timeoutMs: 60_000, everyMs: 200 },
    );

  before(async () => {
    scratch = await createScratch('bandwidth');
    const nas = await Nas.create(scratch, { files: { 'a/x.bin': 10, 'b/x.bin': 10 } });
    relay = await Relay.start(scratch, { targetPort: nas.port });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas', relay.port)],
      shares: [
        { name: 'left', connection: 'nas', remote_path: 'a' },
        { name: 'right', connection: 'nas', remote_path: 'b' },
      ],
      sections: { bandwidth: { up: '8M' } },
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('is what the NAS receives from two busy shares together', async (t) => {
    // One after the other: the small one must not be up before the big one is there.
    await files.write(`${daemon.mountPoint('left')}/big.bin`, 240 * MIB, 120_000);
    await files.write(`${daemon.mountPoint('right')}/small.bin`, 90 * MIB, 120_000);
    await uploading('left', 'right');
    await sleep(1_500);
    const rate = await received(5_000);
    t.diagnostic(`${(rate / MIB).toFixed(2)} MiB/s together`);
    assertWhole(rate, 'together');
  });

  it('goes to the busy share while the other idles', async (t) => {
    await files.ask({ op: 'unlink', path: `${daemon.mountPoint('right')}/small.bin` });
    await uploading('left');
    await sleep(1_500);
    const rate = await received(4_000);
    t.diagnostic(`${(rate / MIB).toFixed(2)} MiB/s alone`);
    assertWhole(rate, 'alone');
  });

  it('stays as it is when a value cannot be read, which the log says', async () => {
    const held = async (): Promise<BandwidthJson> => (await daemon.get<BandwidthJson>('/api/bwlimit')).body;
    const before = await held();
    assert.equal(
      (await daemon.request<{ ok: boolean }>('POST', '/api/bwlimit', { up: 'fast', down: '0' })).body.ok,
      true,
    );
    await until(
      'the log says so',
      async () => /bandwidth limit not understood, nothing changed.*fast/.test(await daemon.log()),
      { timeoutMs: 20_000 },
    );
    assert.deepEqual((await held()).limit, before.limit);
    assert.equal(before.limit.up, LIMIT);
    await until(
      'the busy share has all but what idle ones keep',
      async () => (await held()).shares.some(({ share, up }) => share === 'left' && up > LIMIT * 0.9),
      { timeoutMs: 20_000 },
    );
    const shown = (await daemon.cli('bwlimit')).stdout;
    assert.match(shown, /limit +8\.0 MiB\/s +unlimited/);
    assert.match(shown, /left +7\.6 MiB\/s/);
  });

  it('holds after a reconnect, and after the death of an rclone', async (t) => {
    const first = await daemon.rclonePid('left');
    await daemon.request('POST', '/api/reconnect/left');
    await mountedAnew(daemon, 'left', first);
    await uploading('left');
    await sleep(1_500);
    const anew = await inUse();
    const killed = await daemon.rclonePid('left');
    process.kill(killed, 'SIGKILL');
    await mountedAnew(daemon, 'left', killed);
    await uploading('left');
    await sleep(1_500);
    const again = await inUse();
    t.diagnostic(
      `${(anew / MIB).toFixed(2)} MiB/s after a reconnect, ${(again / MIB).toFixed(2)} MiB/s after a restart`,
    );
    assertWhole(anew, 'after a reconnect');
    assertWhole(again, 'after a restart');
  });
});
