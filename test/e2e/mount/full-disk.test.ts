import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, stat, utimes, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { Mount, MountStats } from 'mountkeeper';
import { detachAll, mountsBelow } from '../../support/platform/mounted-file-systems.ts';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { Relay } from '../../support/nas/tcp-relay.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until, within } from '../../support/platform/wait.ts';
import { JOURNAL_EVERY_S, LoopDisk, NoLoopDevice } from '../../support/mount/loop-disk.ts';
import { createWorkbench } from '../../support/mount/workbench.ts';
import { SKIPS, unlessRoot } from '../../runner/skips.ts';

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
        assert.match(trouble, /the disk of the cache is full/);
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

/** Writes a file of random bytes and gives its checksum, once it is closed. */
async function save(mount: Mount, name: string, bytes: number): Promise<[string, string]> {
  const content = randomBytes(bytes);
  await writeFile(`${mount.plan.mountPoint}/${name}`, content);
  return [name, createHash('sha256').update(content).digest('hex')];
}

/** From now on the program that has the disk written out fails. */
async function failSync(scratch: Scratch): Promise<void> {
  const [folder, former] = [scratch.path('bin'), process.env['PATH']];
  await mkdir(folder);
  await writeFile(`${folder}/sync`, '#!/bin/sh\nexit 1\n', { mode: 0o755 });
  process.env['PATH'] = `${folder}:${former}`;
  scratch.defer(() => (process.env['PATH'] = former));
}

/** As another boot of the machine finds the cache. */
async function rebooted(disk: LoopDisk): Promise<void> {
  await disk.bringBack();
  const note = `${disk.folder}/photos/boot`;
  const { atime, mtime } = await stat(note);
  await writeFile(note, 'another boot\n');
  await utimes(note, atime, mtime);
}

describe('a power cut', { skip: unlessRoot }, () => {
  it(
    'takes no file that was closed before the last write-out, and harms none on the NAS',
    { timeout: 120_000 },
    async (t) => {
      const scratch = await createScratch('power-cut');
      try {
        const nas = await Nas.create(scratch, {
          files: { 'old.bin': 200_000, 'young.bin': 300_000, 'read.bin': 3 * MB },
        });
        const before = await nas.checksums();
        const disk = await LoopDisk.create(scratch, scratch.path('bench', 'cache')).catch(
          (error: unknown) => {
            if (error instanceof NoLoopDevice) return error;
            throw error;
          },
        );
        if (disk instanceof NoLoopDevice) {
          t.diagnostic(disk.message);
          return t.skip(SKIPS.loopDevice.reason);
        }
        const first = createWorkbench(scratch, { rclone: currentRclone(), nas, mount: { write_back: '1h' } });
        const mount = await first.mount(first.spec('photos'));
        const closed = new Map([
          await save(mount, 'new.bin', 5 * MB),
          await save(mount, 'small.bin', 100),
          await save(mount, 'old.bin', 250_000),
        ]);
        const closedAtMs = Date.now();
        // Something new, so that another write-out begins.
        await save(mount, 'news', 1);
        await until(
          'all of that is said to be on the disk',
          async () => (await stat(`${disk.folder}/photos/boot`)).mtimeMs >= closedAtMs,
          { timeoutMs: 30_000 },
        );
        // The records of these reach the disk, what they tell of does not.
        await failSync(scratch);
        const late = new Map([
          await save(mount, 'late.bin', 2 * MB),
          await save(mount, 'young.bin', 350_000),
        ]);
        await run('sha256sum', `${mount.plan.mountPoint}/read.bin`);
        await sleep(3 * JOURNAL_EVERY_S * 1_000);
        await disk.cutPower();
        process.kill(mount.pid, 'SIGKILL');
        await mount.exited;
        await mount.kill();
        await rebooted(disk);

        const second = createWorkbench(scratch, {
          rclone: currentRclone(),
          nas,
          mount: { write_back: '200ms' },
        });
        const next = await second.mount(second.spec('photos'));
        await until(
          'all is up',
          async () => (await stats(next)).dirtyFiles === 0 && (await next.pending()).count === 0,
          { timeoutMs: 40_000, everyMs: 100 },
        );
        const arrived = await nas.checksums();
        for (const [name, sum] of closed) assert.equal(arrived.get(name), sum, `${name} arrived whole`);
        for (const [name, sum] of late)
          assert.ok([sum, before.get(name)].includes(arrived.get(name)), `${name} is whole, or what it was`);
        const [read = ''] = (await run('sha256sum', `${next.plan.mountPoint}/read.bin`)).split(' ');
        assert.equal(read, before.get('read.bin'));
        await next.unmount();
      } finally {
        await scratch.close();
      }
    },
  );
});
