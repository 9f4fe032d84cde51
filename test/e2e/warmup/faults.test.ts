// @load quiet
// @start 4
/** A warmup that is interrupted ends in a true state and goes on; one that must not go on stops at once. */
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Daemon } from '../../support/daemon/daemon.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { helpersOf, inState, ruleOf } from '../../support/warmup/warmup-status.ts';

const FILES = 40;
const FILE_BYTES = 256 * 1024;
/**
 * A current rclone writes down what it holds 5 s after the last reader: there must be something to read for
 * longer.
 */
const LONGER_BYTES = 640 * 1024;
const FOLDERS = ['killed', 'cut', 'silent', 'stopped', 'crashed', 'removed', 'cancelled'];
/**
 * The line, and what is left of it from the middle of a warmup on, so that it is not over before it is
 * interrupted.
 */
const [LINE, THIN_LINE] = [2_500_000, 400_000];
const LIMIT_BYTES = 6 * 2 ** 20;

/** Slow lines are what is waited for: one for each. */
describe('a warmup', { concurrency: true }, () => {
  const rclone = currentRclone();

  describe('with rclone', { concurrency: 1 }, () => {
    let scratch: Scratch;
    let nas: Nas;
    let relay: Relay;
    let daemon: Daemon;
    const text = (auto: boolean, ...paths: string[]): string =>
      daemon.text({ sections: { warmup: { auto, rules: paths.map((path) => ({ share: 'work', path })) } } });
    /** A new rule runs at once where `auto` says so; resolves in the middle of it. */
    const begin = async (auto: boolean, path: string): Promise<void> => {
      relay.setRate(LINE);
      const answer = await daemon.submit(text(auto, path));
      assert.equal(answer.body.ok, true, answer.text);
      if (!auto) {
        // A document that is accepted is not carried out yet.
        await until(`there is a rule for ${path}`, () => ruleOf(daemon, path), { timeoutMs: 20_000 });
        await daemon.request('POST', '/api/warmup/work');
      }
      const rule = await until(
        `the warmup of ${path} is in its middle`,
        async () => {
          const now = await ruleOf(daemon, path);
          return now && now.cached >= 5 ? now : undefined;
        },
        { timeoutMs: 30_000 },
      );
      relay.setRate(THIN_LINE);
      assert.equal(rule.state, 'caching');
    };
    const whole = async (path: string): Promise<void> => {
      relay.setRate(LINE);
      const { total_files: total, skipped, cached, errors } = await inState(daemon, path, 'complete', 60_000);
      assert.deepEqual([total, skipped + cached, errors], [FILES, FILES, 0]);
      assert.ok(skipped > 0, 'it began from nothing');
    };

    before(async () => {
      scratch = await createScratch('warmup-faults');
      nas = await Nas.create(scratch, {
        files: Object.fromEntries(
          FOLDERS.flatMap((folder) =>
            Array.from({ length: FILES }, (_, index) => [`${folder}/${index}.bin`, LONGER_BYTES]),
          ),
        ),
      });
      relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: LINE });
      daemon = await Daemon.create(scratch, {
        rclone,
        connections: [nas.connection('nas', relay.port)],
        shares: [{ name: 'work', connection: 'nas' }],
      });
      await daemon.start();
      await daemon.healthy();
    });
    after(() => scratch.close());

    it('goes on after its mount was killed', async () => {
      await begin(true, 'killed');
      process.kill(await daemon.rclonePid('work'), 'SIGKILL');
      await whole('killed');
    });

    it('waits while the NAS is away, blames no file for it, and goes on', async () => {
      await begin(true, 'cut');
      await relay.cut();
      const { errors, cached, total_files: total } = await inState(daemon, 'cut', 'pending', 30_000);
      assert.deepEqual([errors, cached < total], [0, true]);
      await until('no helper is left', async () => (await helpersOf(daemon)).length === 0, {
        timeoutMs: 20_000,
      });
      await relay.restore();
      await whole('cut');
    });

    it('stops when its NAS falls silent, blames no file for it, and goes on when it speaks again', async (t) => {
      await begin(true, 'silent');
      await relay.blackHole();
      const silentMs = performance.now();
      const { errors, cached, total_files: total } = await inState(daemon, 'silent', 'pending', 40_000);
      t.diagnostic(`stopped ${Math.round(performance.now() - silentMs)} ms after the NAS fell silent`);
      assert.deepEqual([errors, cached < total], [0, true]);
      await relay.restore();
      await whole('silent');
      await until(
        'no helper is left hanging in the mount',
        async () => (await helpersOf(daemon)).length === 0,
        { timeoutMs: 20_000 },
      );
    });

    it('is no obstacle to a stop, and the next daemon goes on where it was', async () => {
      await begin(false, 'stopped');
      const end = await daemon.stop('SIGTERM', 30_000);
      assert.equal(end.code, 0);
      await daemon.start();
      await whole('stopped');
    });

    it('ends with a daemon that was killed, and the next one goes on', async () => {
      await begin(false, 'crashed');
      await daemon.stop('SIGKILL');
      await until('no helper is left', async () => (await helpersOf(daemon)).length === 0, {
        timeoutMs: 20_000,
      });
      await daemon.start();
      await whole('crashed');
    });

    it('stops at once when its rule is taken out', async () => {
      await begin(true, 'removed');
      // What is left would take longer than is waited for here.
      relay.setRate(THIN_LINE / 4);
      await daemon.submit(text(true));
      await until('its helper has ended', async () => (await helpersOf(daemon)).length === 0, {
        timeoutMs: 15_000,
      });
      await until('the rule is gone', async () => (await ruleOf(daemon, 'removed')) === undefined, {
        timeoutMs: 20_000,
      });
    });

    it('ends when it is cancelled, and is not taken up by itself', async () => {
      await begin(true, 'cancelled');
      const { code, stdout } = await daemon.cli('warmup', 'work', '--cancel');
      assert.deepEqual([code, /cancelled/.test(stdout)], [0, true], stdout);
      const { cached } = await inState(daemon, 'cancelled', 'pending', 20_000);
      await sleep(3_000);
      const rule = await ruleOf(daemon, 'cancelled');
      assert.deepEqual([rule?.state, rule?.cached, (await helpersOf(daemon)).length], ['pending', cached, 0]);
    });
  });
});

describe('a warmup into a cache that is too small', () => {
  it('takes what fits, keeps it, and says that the rest does not', async (t) => {
    const scratch = await createScratch('warmup-full');
    t.after(() => scratch.close());
    const nas = await Nas.create(scratch, {
      files: Object.fromEntries(Array.from({ length: 40 }, (_, index) => [`all/${index}.bin`, FILE_BYTES])),
    });
    const daemon = await Daemon.create(scratch, {
      connections: [nas.connection('nas')],
      shares: [{ name: 'work', connection: 'nas' }],
      sections: { cache: { max_size: '6M' }, warmup: { rules: [{ share: 'work', path: 'all' }] } },
    });
    await daemon.start();
    const { total_files: total, cached, errors } = await inState(daemon, 'all', 'failed', 30_000);
    assert.deepEqual([total, errors], [40, 0]);
    assert.ok(cached >= 15 && cached * FILE_BYTES <= LIMIT_BYTES, `${cached} files`);
    const answers = (await daemon.get('/api/status')).text + (await daemon.get('/api/warmup/work')).text;
    assert.doesNotMatch(answers, /fit into/);
    assert.match(await daemon.log(), /warmup failed.*fit into the cache/);
    await until(
      'a notice says so',
      async () => /do not fit into its cache/.test((await daemon.get('/api/notices')).text),
      { timeoutMs: 20_000 },
    );
    const { stdout } = await daemon.cli('warmup', 'work', 'all', '--dry-run', '--json');
    assert.match(stdout, new RegExp(`"skipped":${cached}\\b`), 'what was fetched is no longer there');
  });
});
