import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Mount, ShareSpec } from 'mountkeeper';
import { Nas, checksumOf } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import { SLOW_MACHINE } from '../../support/platform/cpu-pressure.ts';
import { until } from '../../support/platform/wait.ts';
import { createWorkbench } from '../../support/mount/workbench.ts';
import type { Workbench } from '../../support/mount/workbench.ts';

const WRITER = fileURLToPath(new URL('../../support/mount/random-writer.js', import.meta.url));
const KILLS = Number(process.env['MOUNTKEEPER_KILLS'] ?? 12);

/**
 * Path → what must be on the NAS: a checksum, `-` for nothing, undefined when the last operation on it
 * failed.
 */
class Journal {
  readonly known = new Map<string, string | undefined>();
  private readonly history: string[] = [];
  operations = 0;

  take(line: string): void {
    const [what, path = '', rest] = line.split(' ');
    this.history.push(line);
    if (what === 'begin') this.known.set(path, undefined);
    if (what === 'done') {
      this.known.set(path, rest);
      this.operations += 1;
    }
  }

  of(path: string): readonly string[] {
    return this.history.filter((line) => line.split(' ')[1] === path);
  }
}

/** What the NAS has by names that begin alike: a conflict's copy, or what has not got its name yet. */
async function beside(path: string, nas: Nas): Promise<readonly string[]> {
  return [...(await nas.checksums())]
    .filter(([name]) => name.startsWith(path) && name !== path)
    .map(([name, sum]) => `${name} ${sum}`);
}

/**
 * Files whose content on the NAS is not what their writer was told. A file that was removed may come back,
 * which loses nothing.
 */
async function lostFiles(journal: Journal, nas: Nas): Promise<string[]> {
  const lost: string[] = [];
  for (const [path, sum] of journal.known) {
    if (sum === undefined || sum === '-') continue;
    const found = (await nas.has(path)) ? await checksumOf(nas.path(path)) : 'nothing';
    if (found !== sum)
      lost.push(
        `${path}: ${found} instead of ${sum} after ${journal.of(path).slice(-14).join(' | ')}; ` +
          `beside it: ${JSON.stringify(await beside(path, nas))}`,
      );
  }
  return lost;
}

async function killAtRandom(
  bench: Workbench,
  spec: ShareSpec,
  first: Mount,
): Promise<{ mount: Mount; slowestMs: number }> {
  let [mount, slowestMs] = [first, 0];
  for (let kill = 0; kill < KILLS; kill += 1) {
    await sleep(300 + randomInt(1_500));
    const at = performance.now();
    process.kill(mount.pid, 'SIGKILL');
    await mount.exited;
    await mount.kill();
    mount = await bench.mount(spec);
    slowestMs = Math.max(slowestMs, performance.now() - at);
  }
  return { mount, slowestMs };
}

const rclone = currentRclone();

describe('kill -9 of rclone while files are written', () => {
  it('brings every file whose writer saw close succeed to the NAS', { timeout: 240_000 }, async () => {
    const scratch = await createScratch('kill');
    try {
      const nas = await Nas.create(scratch);
      const bench = createWorkbench(scratch, { rclone, nas, mount: { write_back: '500ms' } });
      const spec = bench.spec('photos');
      const first = await bench.mount(spec);
      const journal = new Journal();
      const writer = spawn(process.execPath, [WRITER, first.plan.mountPoint, '0.3'], {
        stdio: ['pipe', 'pipe', 'inherit'],
      });
      scratch.defer(() => writer.kill('SIGKILL'));
      const lines = createInterface({ input: writer.stdout });
      lines.on('line', (line) => journal.take(line));
      const { mount, slowestMs } = await killAtRandom(bench, spec, first);
      const closed = once(lines, 'close');
      writer.stdin.end();
      await Promise.all([once(writer, 'exit'), closed]);
      // A file that was opened and closed since the last look is not in the figures yet.
      await until(
        'nothing waits',
        async () =>
          (await mount.stats(AbortSignal.timeout(5_000))).dirtyFiles === 0 &&
          (await mount.pending()).count === 0,
        { timeoutMs: 60_000, everyMs: 200 },
      );
      await mount.unmount();
      assert.equal((await mount.pending()).count, 0);
      assert.deepEqual(await lostFiles(journal, nas), []);
      assert.ok(journal.operations > KILLS * 5, `operations: ${journal.operations}`);
      assert.ok(slowestMs < 3_000 * SLOW_MACHINE, `the mount was back after ${Math.round(slowestMs)} ms`);
    } finally {
      await scratch.close();
    }
  });
});
