/** The speed shown for a share is its line's, whatever rclone counts and the kernel holds back. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { TestContext } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep } from '../../support/platform/wait.ts';

const MB = 1_000_000;
const WINDOW_MS = 3_000;
/** Until the first bytes go out, and the speed of some seconds is known. */
const FIRST_MS = 5_000;
const SAVED_FOR_MS = 6_000;
/** Bytes per second of each share's line. */
const LINES = { broad: 2 * MB, narrow: 0.4 * MB } as const;

type Name = keyof typeof LINES;

interface Sample {
  readonly at: number;
  /** Bytes that have come to the relay. */
  readonly passed: number;
  readonly speed: number;
  readonly isSaved: boolean;
  /** Bytes sent of what is on its way, as the queue tells. */
  readonly sent: number;
}

interface QueueJson {
  readonly entries: readonly { readonly sent_bytes: number | null }[];
}

/** Bytes that the shown speeds stand for. */
function integral(samples: readonly Sample[]): number {
  return samples.reduce((sum, { at, speed }, index) => {
    const next = samples[index + 1];
    return next === undefined ? sum : sum + (speed * (next.at - at)) / 1_000;
  }, 0);
}

/** Each stretch of samples that is so long or a little longer. */
function windows(samples: readonly Sample[]): readonly (readonly Sample[])[] {
  return samples.flatMap((first, index) => {
    const end = samples.findIndex(({ at }) => at - first.at >= WINDOW_MS);
    return end < 0 ? [] : [samples.slice(index, end + 1)];
  });
}

/** Bytes per second that passed the relay, and that were shown. */
function rates(samples: readonly Sample[]): { readonly passed: number; readonly shown: number } {
  const [first, last] = [samples[0]!, samples.at(-1)!];
  const seconds = (last.at - first.at) / 1_000;
  return { passed: (last.passed - first.passed) / seconds, shown: integral(samples) / seconds };
}

describe('the speed shown for a share behind a slow line', () => {
  let scratch: Scratch;
  const relays = {} as Record<Name, Relay>;
  let daemon: Daemon;
  let files: Files;

  before(async () => {
    scratch = await createScratch('speed');
    const nas = await Nas.create(scratch, { files: { 'broad/x.bin': 10, 'narrow/x.bin': 10 } });
    const names = Object.keys(LINES) as Name[];
    for (const name of names)
      relays[name] = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: LINES[name] });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      rclone: currentRclone(),
      connections: names.map((name) => nas.connection(name, relays[name].port)),
      shares: names.map((name) => ({ name, connection: name, remote_path: name })),
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  const sample = async (name: Name): Promise<Sample> => {
    const { body } = await daemon.get<QueueJson>(`/api/queue/${name}`);
    const share = (await daemon.status()).shares.find((one) => one.name === name);
    const { speed, dirty_count: waiting } = share as unknown as { speed: number; dirty_count: number };
    const sent = body.entries.reduce((sum, { sent_bytes: bytes }) => sum + (bytes ?? 0), 0);
    return { at: performance.now(), passed: relays[name].passed.up, speed, isSaved: waiting === 0, sent };
  };

  /** Until all was saved and some seconds after it. */
  const uploaded = async (name: Name, sizes: readonly number[]): Promise<readonly Sample[]> => {
    const samples: Sample[] = [await sample(name)];
    for (const bytes of sizes) await files.write(`${daemon.mountPoint(name)}/${bytes}.bin`, bytes, 60_000);
    let savedAt = Infinity;
    for (const end = performance.now() + 90_000; performance.now() < end; await sleep(200)) {
      const one = await sample(name);
      samples.push(one);
      const hasPassed = one.passed - samples[0]!.passed >= sizes.reduce((sum, bytes) => sum + bytes, 0);
      if (one.isSaved && hasPassed) savedAt = Math.min(savedAt, one.at);
      if (one.at - savedAt > SAVED_FOR_MS) return samples;
    }
    throw new Error('the files are not on the NAS after 90 s');
  };

  const assertTrue = (t: TestContext, samples: readonly Sample[], bytes: number): void => {
    const begin = samples.findIndex(({ passed }) => passed - samples[0]!.passed > 50_000);
    const moving = samples.slice(begin).filter(({ isSaved }) => !isSaved);
    const all = windows(samples);
    const passedAtMost = Math.max(...all.map((some) => rates(some).passed));
    const shownAtMost = Math.max(...all.map((some) => rates(some).shown));
    const later = rates(moving.filter(({ at }) => at - moving[0]!.at > FIRST_MS));
    const share = integral(samples) / bytes;
    t.diagnostic(
      `at most ${(passedAtMost / MB).toFixed(2)} MB/s passed and ${(shownAtMost / MB).toFixed(2)} MB/s were shown, ` +
        `later ${(later.passed / MB).toFixed(2)} and ${(later.shown / MB).toFixed(2)}; ` +
        `${Math.round(share * 100)} % of the bytes were shown`,
    );
    assert.ok(shownAtMost <= 2 * passedAtMost, 'more was shown than the line can carry');
    assert.ok(
      later.shown >= later.passed / 2 && later.shown <= later.passed * 2,
      'another speed than the line has',
    );
    assert.ok(share > 0.5 && share <= 1.25, 'not each byte was counted once');
    assert.equal(samples.at(-1)!.speed, 0);
  };

  it('is that of the line while a large file goes up, and counts each byte once', async (t) => {
    const bytes = 20 * MB;
    assertTrue(t, await uploaded('broad', [bytes]), bytes);
  });

  it('is that of the line with small files, too, whose progress the queue tells', async (t) => {
    const sizes = [2.9 * MB, 0.4 * MB];
    const samples = await uploaded('narrow', sizes);
    assertTrue(t, samples, 3.3 * MB);
    const early = samples.filter(({ sent, isSaved }) => sent > 0 && !isSaved)[0];
    assert.ok(early && early.passed - samples[0]!.passed < 2 * MB, 'nothing was told before most was sent');
  });
});
