/** The power goes while files wait in the upper folder, and while rclone's cache has what was read. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createHash, randomBytes } from 'node:crypto';
import { mkdir, open, rename, stat, unlink, utimes, writeFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import type { Mount, MountStats } from 'mountkeeper';
import { Nas } from '../../support/nas/nas.ts';
import { currentRclone } from '../../support/nas/rclone-binaries.ts';
import { createScratch } from '../../support/platform/scratch-folder.ts';
import type { Scratch } from '../../support/platform/scratch-folder.ts';
import { sleep, until } from '../../support/platform/wait.ts';
import { JOURNAL_EVERY_S, LoopDisk, NoLoopDevice } from '../../support/mount/loop-disk.ts';
import { createWorkbench } from '../../support/mount/workbench.ts';
import type { Workbench } from '../../support/mount/workbench.ts';
import { SKIPS, unlessRoot } from '../../runner/skips.ts';

const MB = 1_048_576;
/** Files may seem that much older than they are. */
const STAMPS_LAG_MS = 100;

async function run(command: string, ...args: string[]): Promise<string> {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (text += piece));
  const [code] = (await once(child, 'close')) as [number];
  assert.equal(code, 0, `${command} ${args.join(' ').slice(0, 80)}`);
  return text;
}

const stats = (mount: Mount): Promise<MountStats> => mount.stats(AbortSignal.timeout(4_000));
const at = (mount: Mount, name: string): string => `${mount.plan.mountPoint}/${name}`;
const seen = async (mount: Mount, name: string): Promise<string> =>
  (await run('sha256sum', at(mount, name))).split(' ')[0] ?? '';

/** Writes a file of random bytes and gives its checksum, once it is closed. Nobody asks for it to be on the disk. */
async function save(mount: Mount, name: string, bytes: number): Promise<[string, string]> {
  const content = randomBytes(bytes);
  await writeFile(at(mount, name), content);
  return [name, createHash('sha256').update(content).digest('hex')];
}

/** From now on the program that has the disk written out does nothing, and ends with this code. */
async function playSync(scratch: Scratch, code: number): Promise<void> {
  const [folder, former] = [scratch.path('bin'), process.env['PATH']];
  await mkdir(folder);
  await writeFile(`${folder}/sync`, `#!/bin/sh\nexit ${code}\n`, { mode: 0o755 });
  process.env['PATH'] = `${folder}:${former}`;
  scratch.defer(() => (process.env['PATH'] = former));
}

/** As another boot of the machine finds the cache. */
async function rebooted(disk: LoopDisk): Promise<void> {
  await disk.bringBack();
  await noteOtherBoot(`${disk.folder}/photos/boot`);
}

async function noteOtherBoot(note: string): Promise<void> {
  const { atime, mtime } = await stat(note);
  await writeFile(note, 'another boot\n');
  await utimes(note, atime, mtime);
}

describe('a power cut', { skip: unlessRoot }, () => {
  it(
    'takes nothing that was closed before the last write-out, and nothing that was written later goes up by itself',
    { timeout: 120_000 },
    async (t) => {
      const scratch = await createScratch('power-cut');
      try {
        const nas = await Nas.create(scratch, {
          files: { 'old.bin': 200_000, 'young.bin': 300_000, 'moved.bin': 50_000, 'read.bin': 3 * MB },
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
        await until(
          'all of that is said to be on the disk',
          async () => {
            // Always something new, so that there is another write-out.
            await save(mount, 'news', 1);
            return (await stat(`${disk.folder}/photos/boot`)).mtimeMs >= closedAtMs + STAMPS_LAG_MS;
          },
          { timeoutMs: 30_000, everyMs: 200 },
        );
        await unlink(at(mount, 'news'));
        // The names and sizes of these reach the disk with the journal, what is in them does not.
        await playSync(scratch, 1);
        const late = new Map([
          await save(mount, 'late.bin', 2 * MB),
          await save(mount, 'young.bin', 350_000),
        ]);
        const [, moved] = await save(mount, 'moved.tmp', 60_000);
        await rename(at(mount, 'moved.tmp'), at(mount, 'moved.bin'));
        late.set('moved.bin', moved);
        await seen(mount, 'read.bin');
        await sleep(3 * JOURNAL_EVERY_S * 1_000);
        await disk.cutPower();
        await mount.kill();
        await rebooted(disk);

        const second = createWorkbench(scratch, {
          rclone: currentRclone(),
          nas,
          mount: { write_back: '200ms' },
        });
        const next = await second.mount(second.spec('photos'));
        const { trouble } = await until(
          'only what was written late waits',
          async () => {
            const now = await stats(next);
            return now.dirtyFiles === late.size && now.erroredFiles === late.size ? now : undefined;
          },
          { timeoutMs: 40_000, everyMs: 100 },
        );
        assert.match(trouble ?? '', /The power went while this was being written/);
        const arrived = await nas.checksums();
        for (const [name, sum] of closed) assert.equal(arrived.get(name), sum, `${name} arrived whole`);
        const lost: string[] = [];
        for (const [name, sum] of late) {
          assert.equal(arrived.get(name), before.get(name), `the NAS keeps what it had of ${name}`);
          if ((await seen(next, name)) !== sum) lost.push(name);
        }
        assert.ok(lost.length > 0, 'the power cut took content');
        assert.equal(await seen(next, 'read.bin'), before.get('read.bin'));

        const [, again] = await save(next, 'young.bin', 360_000);
        await until(
          'what is written again goes up',
          async () => (await nas.checksum('young.bin')) === again,
          {
            timeoutMs: 40_000,
            everyMs: 200,
          },
        );
        await next.kill();
      } finally {
        await scratch.close();
      }
    },
  );

  it(
    'is looked for as long as a program writes through a mount that was taken off its path',
    { timeout: 120_000 },
    async () => {
      const scratch = await createScratch('power-cut-held');
      try {
        const nas = await Nas.create(scratch, { files: { 'held.bin': 200_000 } });
        const before = await nas.checksums();
        const bench = (write_back: string): Workbench =>
          createWorkbench(scratch, { rclone: currentRclone(), nas, mount: { write_back } });
        const first = bench('1h');
        const note = scratch.path('bench', 'cache', 'photos', 'boot');
        const mount = await first.mount(first.spec('photos'));
        const held = await open(at(mount, 'held.bin'), 'r+');
        await held.write('first');
        await mount.unmount();
        await held.write('second');
        await held.close();
        // As another boot of the machine finds it.
        await noteOtherBoot(note);

        const second = bench('200ms');
        const next = await second.mount(second.spec('photos'));
        const { trouble } = await until(
          'what was written last waits',
          async () => {
            const now = await stats(next);
            return now.erroredFiles === 1 ? now : undefined;
          },
          { timeoutMs: 40_000, everyMs: 100 },
        );
        assert.match(trouble ?? '', /The power went while this was being written/);
        assert.deepEqual(await nas.checksums(), before);
        // A busy disk may take longer than an unmount waits.
        await playSync(scratch, 0);
        await next.unmount();
        await assert.rejects(stat(note), { code: 'ENOENT' });
      } finally {
        await scratch.close();
      }
    },
  );
});
