import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { open, readFile, stat } from 'node:fs/promises';
import { createInterface } from 'node:readline';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Mount, ShareSpec } from 'mountkeeper';
import { readMeta } from '../../plugins/mount/cache-meta.ts';
import { Nas, checksumOf } from '../support/nas.ts';
import { rclones } from '../support/rclones.ts';
import { createScratch } from '../support/scratch.ts';
import { until } from '../support/until.ts';
import { createWorkbench } from '../support/mount/workbench.ts';
import type { Workbench } from '../support/mount/workbench.ts';

const WRITER = fileURLToPath(new URL('../support/mount/writer.js', import.meta.url));
const KILLS = Number(process.env['MOUNTKEEPER_KILLS'] ?? 12);

/** Path → what must be on the NAS: a checksum, `-` for nothing, undefined when the last operation on it failed. */
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

/** Files whose content on the NAS is not what their writer was told. A file that was removed may come back, which loses nothing. */
async function lostFiles(journal: Journal, nas: Nas): Promise<string[]> {
  const lost: string[] = [];
  for (const [path, sum] of journal.known) {
    if (sum === undefined || sum === '-') continue;
    const found = (await nas.has(path)) ? await checksumOf(nas.path(path)) : 'nothing';
    if (found !== sum) lost.push(`${path}: ${found} instead of ${sum} after ${journal.of(path).slice(-14).join(' | ')}`);
  }
  return lost;
}

async function killAtRandom(bench: Workbench, spec: ShareSpec, first: Mount): Promise<{ mount: Mount; slowestMs: number }> {
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

const SHORT_BYTES = 700_000;
/** Makes files shorter, and closes them when its input ends. */
const SHORTENER = `const fs = require('node:fs');
const files = process.argv.slice(1).map((path) => fs.openSync(path, 'r+'));
for (const file of files) fs.ftruncateSync(file, ${SHORT_BYTES});
console.log('made shorter');
process.stdin.resume().on('end', () => files.forEach((file) => fs.closeSync(file)));`;

/** Files of a NAS that are made shorter through a mount by which nothing of them was read. */
class Shortened {
  readonly cache: string;
  readonly #nas: Nas;

  constructor(nas: Nas, cache: string) {
    this.cache = cache;
    this.#nas = nas;
  }

  async shorten(mount: Mount, ...names: string[]): Promise<void> {
    const child = spawn(process.execPath, ['-e', SHORTENER, ...names.map((name) => `${mount.plan.mountPoint}/${name}`)], { stdio: ['pipe', 'pipe', 'inherit'] });
    const ended = once(child, 'exit');
    await once(child.stdout, 'data');
    await look(mount);
    child.stdin.end();
    assert.deepEqual(await ended, [0, null]);
    for (const name of names) await until(`${name} is closed by rclone and has its old end again`, async () => (await this.recordedBytes(name)) === SHORT_BYTES && (await this.bytes(name)) > SHORT_BYTES, { timeoutMs: 20_000, everyMs: 10 });
  }

  async recordedBytes(name: string): Promise<number> {
    const meta = await readMeta(`${this.cache}/vfsMeta/nas/${name}`);
    return meta === undefined || meta === 'torn' || meta.Rs === null ? -1 : meta.Size;
  }

  async bytes(name: string): Promise<number> {
    return (await stat(`${this.cache}/vfs/nas/${name}`)).size;
  }

  content(name: string): Promise<Buffer> {
    return readFile(this.#nas.path(name));
  }
}

function look(mount: Mount): ReturnType<Mount['stats']> {
  return mount.stats(AbortSignal.timeout(5_000));
}

for (const { label, command } of rclones()) {
  describe(`files that are made shorter through ${label}`, () => {
    it('are as short on the NAS, though rclone is killed or they are read meanwhile, and keep what somebody appends', { timeout: 120_000 }, async () => {
      const scratch = await createScratch('shorter');
      try {
        const nas = await Nas.create(scratch, { files: { killed: 3_000_000, cached: 3_000_000, read: 3_000_000, 'appended to': 3_000_000 } });
        const bench = createWorkbench(scratch, { rclone: command, nas, mount: { write_back: '2s' } });
        const spec = bench.spec('short');
        const short = new Shortened(nas, `${scratch.path('bench')}/cache/short`);
        const former = await bench.mount(spec);
        const wanted = new Map<string, Buffer>();
        for (const name of ['killed', 'cached', 'read']) wanted.set(name, (await short.content(name)).subarray(0, SHORT_BYTES));
        await short.shorten(former, 'killed');
        process.kill(former.pid, 'SIGKILL');
        await former.exited;
        await former.kill();
        const mount = await bench.mount(spec);
        await short.shorten(mount, 'cached', 'read', 'appended to');
        // Whoever has them open in the cache keeps them from being cut there.
        const held = await Promise.all(['read', 'appended to'].map((name) => open(`${short.cache}/vfs/nas/${name}`, 'r')));
        await look(mount);
        const others = spawn('sh', ['-c', 'head -c 1 "$1/read" > "$1/../read"; printf "by somebody else" >> "$1/appended to"', 'sh', mount.plan.mountPoint], { stdio: 'inherit' });
        assert.deepEqual(await once(others, 'exit'), [0, null]);
        await Promise.all(held.map((handle) => handle.close()));
        await until('nothing is dirty', async () => (await look(mount)).dirtyFiles === 0, { timeoutMs: 60_000, everyMs: 200 });
        for (const [name, content] of wanted) assert.ok((await short.content(name)).equals(content), `${name} has ${(await short.content(name)).length} bytes`);
        assert.ok((await short.content('appended to')).includes('by somebody else'));
        assert.match(await bench.log(), /had its old end again, it is cut anew/);
        await mount.unmount();
      } finally {
        await scratch.close();
      }
    });
  });

  describe(`kill -9 of ${label} while files are written`, () => {
    it('brings every file whose writer saw close succeed to the NAS', { timeout: 240_000 }, async () => {
      const scratch = await createScratch('kill');
      try {
        const nas = await Nas.create(scratch);
        const bench = createWorkbench(scratch, { rclone: command, nas, mount: { write_back: '500ms' } });
        const spec = bench.spec('photos');
        const first = await bench.mount(spec);
        const journal = new Journal();
        const writer = spawn(process.execPath, [WRITER, first.plan.mountPoint, '0.3'], { stdio: ['pipe', 'pipe', 'inherit'] });
        scratch.defer(() => writer.kill('SIGKILL'));
        const lines = createInterface({ input: writer.stdout });
        lines.on('line', (line) => journal.take(line));
        const { mount, slowestMs } = await killAtRandom(bench, spec, first);
        const closed = once(lines, 'close');
        writer.stdin.end();
        await Promise.all([once(writer, 'exit'), closed]);
        // A file that was opened and closed since the last look is not in the figures yet.
        await until('nothing waits', async () => (await mount.stats(AbortSignal.timeout(5_000))).dirtyFiles === 0 && (await mount.pending()).count === 0, { timeoutMs: 60_000, everyMs: 200 });
        await mount.unmount();
        assert.equal((await mount.pending()).count, 0);
        assert.deepEqual(await lostFiles(journal, nas), []);
        assert.ok(journal.operations > KILLS * 5, `operations: ${journal.operations}`);
        assert.ok(slowestMs < 3_000, `the mount was back after ${Math.round(slowestMs)} ms`);
      } finally {
        await scratch.close();
      }
    });
  });
}
