import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { Mount, MountStats } from 'mountkeeper';
import { detachAll, mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { until, within } from '../../support/platform/wait.ts';
import { createWorkbench } from '../../support/mount/workbench.ts';
import { unlessRoot } from '../../runner/skips.ts';

const MB = 1_048_576;
/** More than the disk holds, also where some are up before the last one is written. */
const FILES = 60;

/**
 * Writes files of 4 MB until three have failed; tells `done NAME SHA256` of each that was closed without an
 * error, else `failed NAME CODE`.
 */
const WRITER = `
  const { createHash, randomBytes } = require('node:crypto');
  const { writeFileSync } = require('node:fs');
  let failed = 0;
  for (let n = Number(process.argv[2]); n < Number(process.argv[3]) && failed < 3; n += 1) {
    const bytes = randomBytes(${4 * MB});
    try {
      writeFileSync(process.argv[1] + '/f' + n, bytes);
      console.log('done f' + n + ' ' + createHash('sha256').update(bytes).digest('hex'));
    } catch (error) {
      failed += 1;
      console.log('failed f' + n + ' ' + error.code);
    }
  }`;

async function run(command: string, ...args: string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const [code] = (await once(child, 'close')) as [number];
  assert.equal(code, 0, `${command} ${args.join(' ').slice(0, 80)}`);
  return text;
}

interface Written {
  readonly done: ReadonlyMap<string, string>;
  readonly failed: readonly string[];
}

async function write(mount: Mount, from: number, to: number): Promise<Written> {
  const lines = (await run(process.execPath, '-e', WRITER, mount.plan.mountPoint, String(from), String(to)))
    .trim()
    .split('\n')
    .map((line) => line.split(' '));
  return {
    done: new Map(lines.filter(([what]) => what === 'done').map(([, name = '', sum = '']) => [name, sum])),
    failed: lines.filter(([what]) => what === 'failed').map(([, name = '', code = '']) => `${name} ${code}`),
  };
}

const stats = (mount: Mount): Promise<MountStats> => mount.stats(AbortSignal.timeout(4_000));

async function smallDisk(scratch: Scratch, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  await run('mount', '-t', 'tmpfs', '-o', 'size=64m', 'mountkeeper-test', folder);
  scratch.defer(async () =>
    detachAll((await mountsBelow(folder)).filter(({ fsType }) => fsType === 'tmpfs')),
  );
}

const rclone = currentRclone();

describe('a full cache disk, with rclone', { skip: unlessRoot }, () => {
  it(
    'fails writers instead of hanging, loses no closed file, and recovers by itself',
    { timeout: 180_000 },
    async () => {
      const scratch = await createScratch('full-disk');
      try {
        const nas = await Nas.create(scratch, { files: { 'old.bin': MB } });
        const relay = await Relay.start(scratch, { targetPort: nas.port, bytesPerSecond: 8 * MB });
        await smallDisk(scratch, scratch.path('bench', 'cache'));
        const bench = createWorkbench(scratch, { rclone, nas, cache: { min_free_space: '16M' } });
        const spec = bench.spec('photos', {}, relay.port);
        let mount = await bench.mount(spec);
        assert.equal((await stats(mount)).trouble, undefined);

        const { done, failed } = await within('the writer ends', 60_000, write(mount, 0, FILES));
        assert.ok(done.size >= 8 && failed.length === 3, `${done.size} done, failed: ${failed.join(', ')}`);
        const trouble = await until('the trouble is told', async () => (await stats(mount)).trouble, {
          timeoutMs: 20_000,
        });
        assert.match(trouble, /The disk was full when it was written/);
        const [read = ''] = (
          await within('a closed file is read', 20_000, run('sha256sum', `${mount.plan.mountPoint}/f0`))
        ).split(' ');
        assert.equal(read, done.get('f0'));

        process.kill(mount.pid, 'SIGKILL');
        await mount.exited;
        await mount.kill();
        mount = await bench.mount(spec);

        await run('mount', '-o', 'remount,size=128m', scratch.path('bench', 'cache'));
        const late = await within('the later writer ends', 30_000, write(mount, FILES, FILES + 2));
        assert.deepEqual(late.failed, []);
        await until(
          'all is clean',
          async () => (await stats(mount)).dirtyFiles === 0 && (await mount.pending()).count === 0,
          { timeoutMs: 60_000, everyMs: 250 },
        );
        await until('nothing is wrong any more', async () => (await stats(mount)).trouble === undefined, {
          timeoutMs: 20_000,
          everyMs: 250,
        });
        const arrived = await nas.checksums();
        for (const [name, sum] of [...done, ...late.done])
          assert.equal(arrived.get(name), sum, `${name} arrived whole`);
        await mount.unmount();
      } finally {
        await scratch.close();
      }
    },
  );
});
