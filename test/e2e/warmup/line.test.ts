/** A warmup and the users of another share want the same line. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Files } from '../../support/platform/file-worker.ts';
import { Nas } from '../../support/nas/nas.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until } from '../../support/platform/wait.ts';
import { ruleOf } from '../../support/warmup/warmup-status.ts';

const MIB = 2 ** 20;
const LINE = 12 * MIB;
const FILM_BYTES = 32 * MIB;
/** What is under way when a user comes cannot be called back: little of it where files are small. */
const MANY = 400;
const MANY_BYTES = MIB / 2;

const rclone = currentRclone();

describe('the line of a warmup', () => {
  let scratch: Scratch;
  let nas: Nas;
  let relay: Relay;
  let daemon: Daemon;
  let files: Files;
  const text = (share: string, path: string): string =>
    daemon.text({ sections: { warmup: { rules: [{ share, path }] } } });
  const begin = async (share: string, path: string, cached: number): Promise<void> => {
    const answer = await daemon.submit(text(share, path));
    assert.equal(answer.body.ok, true, answer.text);
    await until(
      `the warmup of ${path} is under way`,
      async () => {
        const rule = await ruleOf(daemon, path);
        return rule?.state === 'caching' && rule.cached >= cached;
      },
      { timeoutMs: 40_000, everyMs: 100 },
    );
  };
  /** Milliseconds that a user waits for all of a file that is not in the cache. */
  const read = async (name: string): Promise<number> => {
    const begun = performance.now();
    assert.equal(
      await files.checksum(`${daemon.mountPoint('users')}/${name}`, 60_000),
      await nas.checksum(`users/${name}`),
    );
    return performance.now() - begun;
  };

  before(async () => {
    scratch = await createScratch('warmup-line');
    const many = Array.from({ length: MANY }, (_, index) => [`warm/many/${index}.bin`, MANY_BYTES] as const);
    nas = await Nas.create(scratch, {
      files: { ...Object.fromEntries(many), 'users/idle.bin': FILM_BYTES, 'users/busy.bin': FILM_BYTES },
    });
    relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: LINE, delayMs: 5 });
    files = new Files(scratch);
    daemon = await Daemon.create(scratch, {
      rclone,
      connections: [nas.connection('nas', relay.port)],
      shares: [
        { name: 'warm', connection: 'nas', remote_path: 'warm' },
        { name: 'users', connection: 'nas', remote_path: 'users' },
      ],
    });
    await daemon.start();
    await daemon.healthy();
  });
  after(() => scratch.close());

  it('is given way on to a user of another share: half the idle speed or better', async (t) => {
    const idleMs = await read('idle.bin');
    await begin('warm', 'many', 0);
    const beside = relay.passed.down;
    await until('the warmup uses the line', () => relay.passed.down - beside > LINE / 2, {
      timeoutMs: 30_000,
    });
    const before = relay.passed.down;
    const busyMs = await read('busy.bin');
    const part = FILM_BYTES / (relay.passed.down - before);
    t.diagnostic(
      `${Math.round(idleMs)} ms idle, ${Math.round(busyMs)} ms beside the warmup, ` +
        `with ${Math.round(part * 100)} % of what came over the line`,
    );
    assert.equal(
      (await ruleOf(daemon, 'many'))?.state,
      'caching',
      'it was through before it could be in the way',
    );
    // Where the machine has become somewhat slower meanwhile, what came over the line tells who was given
    // way.
    assert.ok(
      busyMs <= 2 * idleMs || (part >= 0.5 && busyMs <= 4 * idleMs),
      `${busyMs} ms beside ${idleMs} ms, ${part} of the line`,
    );
  });
});
