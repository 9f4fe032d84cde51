import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { pino } from 'pino';
import type { ShortCommand, ShortCommandResult } from 'mountkeeper';
import { createManualClock } from 'mountkeeper/testing';
import { endsWithin } from 'mountkeeper';
import { WriteOut } from '../../../../plugins/mount/recovery/cache-sync.ts';

/**
 * What docs/operations.md promises, in figures of its own: a longer interval in the code has to fail here.
 */
const EVERY_MS = 5_000;

interface Run {
  readonly folder: string;
  end(code?: number): void;
}

/** Two disks: what begins with `/a` lies on one, all else on the other. */
function bench() {
  const clock = createManualClock();
  const startMs = clock.now();
  const runs: Run[] = [];
  const said: string[] = [];
  const written = new Map<number, number | undefined>();
  const notes: string[] = [];
  const run = (spec: ShortCommand): Promise<ShortCommandResult> =>
    new Promise((resolve, reject) => {
      assert.deepEqual([spec.command, ...spec.args.slice(0, 2)], ['sync', '-f', '--']);
      spec.signal?.addEventListener('abort', () => reject(new Error('given up')), { once: true });
      runs.push({
        folder: spec.args[2] ?? '',
        end: (code = 0) =>
          resolve({
            code,
            signal: null,
            stdout: '',
            stderr: code === 0 ? '' : 'sync: error syncing: Input/output error\n',
          }),
      });
    });
  const log = pino(
    { level: 'info' },
    {
      write: (line: string) => void said.push((JSON.parse(line) as { msg: string }).msg),
    },
  );
  const onDisk = async (folder: string, untilMs: number): Promise<void> =>
    void notes.push(`${folder} ${untilMs - startMs}`);
  const asked: string[] = [];
  const moved = new Map<string, string>();
  const writeOut = new WriteOut({
    clock,
    log,
    processes: { run },
    diskOf: (folder) => Promise.resolve(moved.get(folder) ?? folder.slice(0, 2)),
    onDisk,
    notLater: (folder, nowMs) => Promise.resolve(void asked.push(`${folder} ${nowMs - startMs}`)),
  });
  return {
    asked,
    clock,
    moved,
    notes,
    runs,
    said,
    written,
    writeOut,
    due: () => clock.advance(EVERY_MS),
    watch: (pid: number, cacheDir: string) => writeOut.watch({ cacheDir, written: () => written.get(pid) }),
  };
}

const settled = (): Promise<unknown> => new Promise((resolve) => setImmediate(resolve));

describe('the writing out of what lies in memory', () => {
  it('begins 5 s after a write at the latest, again and again', async () => {
    const { clock, runs, written, watch } = bench();
    watch(1, '/a/photos');
    const begun: number[] = [];
    for (let second = 1; second <= 30; second += 1) {
      written.set(1, second);
      await clock.advance(1_000);
      if (runs.length > begun.length) begun.push(second);
      runs.at(-1)?.end();
    }
    assert.deepEqual(begun, [5, 10, 15, 20, 25, 30]);
  });

  it('begins at once where somebody tells of a write and none was begun for 5 s, else with the next', async () => {
    const { clock, runs, watch, written } = bench();
    const writer = watch(1, '/a/photos');
    const begun: number[] = [];
    for (let second = 1; second <= 26; second += 1) {
      if ([7, 8, 22].includes(second)) {
        written.set(1, second);
        writer.wrote();
      }
      await clock.advance(1_000);
      if (runs.length > begun.length) begun.push(second);
      runs.at(-1)?.end();
      await settled();
    }
    // The first one knows of no former; that of 7 is seen at 10; 22 is told while none was begun for long.
    assert.deepEqual(begun, [5, 10, 22]);
  });

  it('asks in each interval whether the clock was set back, also where nothing is written', async () => {
    const { asked, due, runs, watch, written } = bench();
    written.set(1, 1);
    const writer = watch(1, '/a/photos');
    watch(2, '/a/photos');
    await due();
    runs[0]?.end();
    await due();
    void writer.leave();
    assert.deepEqual(asked, [`/a/photos ${EVERY_MS}`, `/a/photos ${2 * EVERY_MS}`]);
  });

  it('begins when a writer has written something since the last one began, and only then', async () => {
    const { due, runs, written, watch } = bench();
    written.set(1, 100);
    watch(1, '/a/photos');
    await due();
    assert.deepEqual(
      runs.map(({ folder }) => folder),
      ['/a/photos'],
    );
    // While it is under way it may be passed by.
    written.set(1, 200);
    runs[0]?.end();
    await due();
    runs[1]?.end();
    await due();
    await due();
    assert.equal(runs.length, 2);
  });

  it('takes a writer that nobody can look into for one that always writes', async () => {
    const { due, runs, written, watch } = bench();
    written.set(1, undefined);
    watch(1, '/a/photos');
    for (const index of [0, 1, 2]) {
      await due();
      runs[index]?.end();
      await settled();
    }
    assert.equal(runs.length, 3);
  });

  it('is done once for all shares of a file system, and for each file system by itself', async () => {
    const { due, runs, written, watch } = bench();
    for (const [pid, cacheDir] of [
      [1, '/a/photos'],
      [2, '/a/music'],
      [3, '/b/films'],
    ] as const) {
      written.set(pid, 1);
      watch(pid, cacheDir);
    }
    await due();
    assert.equal(runs.length, 2);
    for (const run of runs) run.end();
    await due();
    assert.equal(runs.length, 2);
  });

  it('is noted with the time at which it began, once it is over and unless it failed', async () => {
    const { due, notes, runs, written, watch } = bench();
    written.set(1, 1);
    for (const cacheDir of ['/a/photos', '/a/music']) watch(1, cacheDir);
    await due();
    runs[0]?.end(1);
    await due();
    await due();
    assert.deepEqual(notes, []);
    runs[1]?.end();
    await settled();
    assert.deepEqual(notes, [`/a/photos ${2 * EVERY_MS}`, `/a/music ${2 * EVERY_MS}`]);
  });

  it('is tried again as long as it fails, and told once', async () => {
    const { due, runs, said, written, writeOut, watch } = bench();
    written.set(1, 1);
    watch(1, '/a/photos');
    for (const index of [0, 1]) {
      await due();
      runs[index]?.end(1);
      await settled();
    }
    assert.equal(said.length, 1);
    assert.match(
      writeOut.troubles.join(),
      /^The disk that holds \/a\/photos cannot be written out .*Input\/output error.*power cut/,
    );
    await due();
    runs[2]?.end();
    await settled();
    assert.deepEqual([writeOut.troubles.length, said.at(-1)], [0, 'disk of the cache is written out again']);
  });

  it('is no trouble of a disk that nobody writes to any more, as when the folder lies on another one', async () => {
    const { due, moved, runs, written, writeOut, watch } = bench();
    written.set(1, 1);
    const writer = watch(1, '/a/photos');
    await due();
    runs[0]?.end(1);
    await settled();
    assert.equal(writeOut.troubles.length, 1);
    moved.set('/a/photos', 'another disk');
    await due();
    runs[1]?.end();
    await settled();
    assert.deepEqual(writeOut.troubles, []);
    written.set(1, 2);
    await due();
    runs[2]?.end(1);
    await settled();
    assert.equal(writeOut.troubles.length, 1);
    void writer.leave();
    assert.deepEqual(writeOut.troubles, []);
  });

  it('is begun no second time while it hangs, which is told once, and goes on afterwards', async () => {
    const { due, runs, said, written, writeOut, watch } = bench();
    written.set(1, 1);
    watch(1, '/a/photos');
    for (let round = 0; round < 30; round += 1) await due();
    assert.deepEqual([runs.length, said.length], [1, 1]);
    assert.match(writeOut.troubles.join(), /does not finish writing/);
    runs[0]?.end();
    written.set(1, 2);
    await due();
    assert.deepEqual([runs.length, writeOut.troubles.length], [2, 0]);
  });

  it('is done a last time for what a writer leaves, after what was under way before', async () => {
    const { due, runs, written, watch } = bench();
    written.set(1, 1);
    const { leave } = watch(1, '/a/photos');
    await due();
    const last = leave();
    await settled();
    assert.equal(runs.length, 1);
    runs[0]?.end();
    await settled();
    assert.equal(runs.length, 2);
    runs[1]?.end();
    assert.equal(await last, true);
    assert.equal(leave(), last);
    await due();
    assert.equal(runs.length, 2);
  });

  it('lets the daemon end though a disk hangs', async () => {
    const { clock, due, runs, written, writeOut, watch } = bench();
    written.set(1, 1);
    const { leave } = watch(1, '/a/photos');
    await due();
    const isDone = endsWithin(clock, 1_000, leave());
    const end = writeOut.letGo(5_000);
    await clock.advance(1_000);
    assert.equal(await isDone, false);
    await clock.advance(4_000);
    await end;
    assert.equal(runs.length, 1);
    assert.deepEqual(writeOut.troubles, []);
  });
});
