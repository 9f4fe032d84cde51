import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Nas, checksumOf } from '../support/nas.ts';
import { rclones } from '../support/rclones.ts';
import { createScratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { createWorkbench } from './mount-support.ts';

const WRITER = fileURLToPath(new URL('./mount-writer.js', import.meta.url));
const LOCAL = process.env['KILL_LOCAL'] === '1';
const KILLS = Number(process.env['MOUNTKEEPER_KILLS'] ?? 12);

/** Path → what must be on the NAS: a checksum, `-` for nothing, undefined when the last operation on it failed. */
class Journal {
  readonly known = new Map<string, string | undefined>();
  readonly wrong: string[] = [];
  readonly history: string[] = [];
  operations = 0;

  take(line: string): void {
    const [what, path = '', rest] = line.split(' ');
    this.history.push(line);
    if (what === 'begin') this.known.set(path, undefined);
    if (what === 'done') {
      this.known.set(path, rest);
      this.operations += 1;
    }
    if (what === 'wrong') this.wrong.push(line);
  }
}

for (const { label, command } of rclones()) {
  describe(`kill -9 of ${label} while files are written`, () => {
    it('brings every file whose writer saw close succeed to the NAS', { timeout: 240_000 }, async () => {
      const scratch = await createScratch('kill');
      try {
        const nas = await Nas.create(scratch);
        const bench = createWorkbench(scratch, { rclone: command, nas, mount: { write_back: '500ms' } });
        const spec = LOCAL ? { ...bench.spec('photos', { remote_path: nas.dir }), connection: { name: 'l', type: 'local', options: {} } } : bench.spec('photos');
        let mount = await bench.mount(spec);
        const journal = new Journal();
        const writer = spawn(process.execPath, [WRITER, mount.plan.mountPoint, '0.3'], { stdio: ['pipe', 'pipe', 'inherit'] });
        scratch.defer(() => writer.kill('SIGKILL'));
        const lines = createInterface({ input: writer.stdout });
        lines.on('line', (line) => journal.take(line));
        const readAgain: number[] = [];
        for (let kill = 0; kill < KILLS; kill += 1) {
          await sleep(300 + randomInt(1_500));
          journal.history.push(`KILL ${kill}`);
          process.kill(mount.pid, 'SIGKILL');
          const at = performance.now();
          await mount.exited;
          await mount.kill();
          mount = await bench.mount(spec);
          readAgain.push(performance.now() - at);
        }
        const closed = once(lines, 'close');
        writer.stdin.end();
        await Promise.all([once(writer, 'exit'), closed]);
        await until('nothing is dirty', async () => (await mount.stats(AbortSignal.timeout(5_000))).dirtyFiles === 0, { timeoutMs: 60_000, everyMs: 200 });
        await mount.unmount();
        assert.equal((await mount.pending()).count, 0);
        const bad: string[] = [];
        for (const [path, sum] of journal.known) {
          if (sum === undefined || sum === '-') continue;
          const found = (await nas.has(path)) ? await checksumOf(nas.path(path)) : '-';
          const cached = scratch.path('bench', 'cache', 'photos', 'vfs', 'nas', ...(LOCAL ? [nas.dir] : []), path);
          if (found !== sum) bad.push(`in the cache: ${await checksumOf(cached).catch(() => '-')} ${(await stat(cached).catch(() => undefined))?.size}, NAS ${(await stat(nas.path(path)).catch(() => undefined))?.size}; `+`${path}: ${found} instead of ${sum}; ${journal.history.filter((line) => line.split(' ')[1] === path || line.startsWith('KILL')).slice(-14).join(' | ')}`);
        }
        assert.deepEqual({ bad, wrong: journal.wrong }, { bad: [], wrong: [] }, `${bad.join('\n')}\n${journal.wrong.join('\n')}\n${(await bench.log()).split('\n').filter((line) => / (WARN|ERROR|INFO) /.test(line)).slice(-40).join('\n')}`);
        assert.ok(journal.operations > KILLS * 5, `operations: ${journal.operations}`);
        assert.ok(Math.max(...readAgain) < 3_000, `the mount was back after ${readAgain.map(Math.round).join(', ')} ms`);
        process.stdout.write(`# ${journal.operations} operations, back after ${Math.round(Math.max(...readAgain))} ms at most\n`);
      } finally {
        await scratch.close();
      }
    });
  });
}
