/**
 * The upload limit follows a real line: steady on a good one, settled soon after the line has fallen to a
 * third.
 */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';

const MIB = 1_048_576;
const WINDOW_MS = 12_000;
/**
 * With exactly a third of the limit, uploads would be at the edge of the rule's "near the limit" (0.8) after
 * the third lowering (0.75³): a line that carries three tenths is clearly below it.
 */
const FALLEN = 1.8 * MIB;

interface BandwidthJson {
  readonly limit: { readonly up: number };
  readonly effective: { readonly up: number };
}

describe('adaptive bandwidth', () => {
  let scratch: Scratch;
  let relay: Relay;
  let daemon: Daemon;

  before(async () => {
    scratch = await createScratch('adaptive');
    const nas = await Nas.create(scratch);
    relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: 20 * MIB });
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: [nas.connection('nas', relay.port)],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: {
        bandwidth: { up: '6M', adaptive: true, adaptive_interval: '2s' },
        supervisor: { poll_interval: '500ms' },
      },
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  const inForce = async (): Promise<number> =>
    (await daemon.get<BandwidthJson>('/api/bwlimit')).body.effective.up;
  /** The limits in force over a span, each once in a row. */
  const limits = async (ms: number): Promise<number[]> => {
    const seen: number[] = [];
    for (const end = performance.now() + ms; performance.now() < end; await sleep(150)) {
      const up = await inForce();
      if (seen.at(-1) !== up) seen.push(up);
    }
    return seen;
  };
  const inMib = (rates: readonly number[]): string => rates.map((rate) => (rate / MIB).toFixed(2)).join(', ');

  it('keeps its limit on a steady line, and settles within two windows after the line slows down', async (t) => {
    const files = new Files(scratch);
    await files.write(`${daemon.mountPoint('work')}/big.bin`, 240 * MIB, 120_000);
    await sleep(2_000);
    const steady = await limits(1.5 * WINDOW_MS);
    relay.setRate(FALLEN);
    const falling = await limits(2 * WINDOW_MS);
    const settled = await limits(1.5 * WINDOW_MS);
    t.diagnostic(`steady ${inMib(steady)}; falling ${inMib(falling)}; settled ${inMib(settled)} MiB/s`);
    assert.deepEqual(steady, [6 * MIB]);
    assert.equal(settled.length, 1, `still moving: ${inMib(settled)}`);
    const [limit = 0] = settled;
    assert.ok(limit >= MIB && limit <= 2.5 * MIB, `${limit}`);
    assert.deepEqual(
      falling,
      [...falling].sort((a, b) => b - a),
      'only downwards',
    );
    const notices = (await daemon.get<readonly { message: string }[]>('/api/notices')).body;
    assert.ok(
      notices.some(({ message }) => /uploads are held to/.test(message)),
      JSON.stringify(notices),
    );
    assert.match(await daemon.log(), /upload limit lowered, the line is congested/);
  });

  it('gives the limit back when it is switched off', async () => {
    const answer = await daemon.submit(
      daemon.text({ sections: { bandwidth: { up: '6M', adaptive: false } } }),
    );
    assert.equal(answer.body.ok, true, answer.text);
    await until('the configured limit is in force', async () => (await inForce()) === 6 * MIB, {
      timeoutMs: 20_000,
    });
  });
});
