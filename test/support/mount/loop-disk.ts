/**
 * A small ext4 in a file, whose power can be cut: what the file holds then is all that the disk was ever
 * given.
 */
import { randomUUID } from 'node:crypto';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { detachAll, mountsBelow } from '../platform/mounted-file-systems.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { until } from '../platform/wait.ts';

/** The ioctl that shuts a file system down at once, without giving its journal to the disk. */
const SHUT_DOWN =
  'open(my $folder, "<", $ARGV[0]) or die $!; my $how = pack("L", 2); ioctl($folder, 0x8004587d, $how) or die $!;';

/** How often its journal, with the names and sizes of files, reaches the disk by itself. */
export const JOURNAL_EVERY_S = 1;

async function run(command: string, ...args: string[]): Promise<void> {
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (piece: string) => (said += piece));
  const [code] = (await once(child, 'close')) as [number];
  if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${said.trim()}`);
}

/** This machine lends no loop devices. */
export class NoLoopDevice extends Error {}

/** A mounted ext4 on a loop device. Unmounted with the scratch folder. */
export class LoopDisk {
  readonly folder: string;
  private image: string;

  private constructor(image: string, folder: string) {
    this.image = image;
    this.folder = folder;
  }

  /** Rejects with NoLoopDevice where none is to be had. */
  static async create(scratch: Scratch, folder: string, megabytes = 256): Promise<LoopDisk> {
    const disk = new LoopDisk(scratch.path(`disk-${randomUUID()}.img`), folder);
    await mkdir(folder, { recursive: true });
    await run('truncate', '-s', `${megabytes}M`, disk.image);
    scratch.defer(async () =>
      detachAll((await mountsBelow(folder)).filter(({ fsType }) => fsType === 'ext4')),
    );
    await run('mkfs.ext4', '-q', '-F', disk.image);
    await disk.attach().catch((error: Error) => {
      throw new NoLoopDevice(error.message);
    });
    return disk;
  }

  /** From now on nothing reaches the disk. Whoever uses it must end before `bringBack`. */
  cutPower(): Promise<void> {
    return run('perl', '-e', SHUT_DOWN, this.folder);
  }

  /** As after an error of the disk: it takes no more writes, whoever has files open there. */
  async turnReadOnly(): Promise<void> {
    const device = (await mountsBelow(this.folder)).find(({ fsType }) => fsType === 'ext4')?.source ?? '';
    await writeFile(`/sys/fs/ext4/${basename(device)}/trigger_fs_error`, 'a test');
  }

  /** Nothing is mounted there any more. Whoever uses it must have ended. */
  async unplug(): Promise<void> {
    await this.unmounted();
  }

  plug(): Promise<void> {
    return this.attach();
  }

  /** Checks it and mounts it again. Whoever uses it must have ended. */
  async mend(): Promise<void> {
    await this.unmounted();
    await this.copy();
    // 1: it has mended something.
    await run('sh', '-c', 'e2fsck -fy "$1" >&2 || [ $? = 1 ]', 'sh', this.image);
    await this.attach();
  }

  /** As the next boot finds it. */
  async bringBack(): Promise<void> {
    await this.unmounted();
    await this.copy();
    await this.attach();
  }

  /**
   * Of what the disk was given: where somebody still holds the old one, in a mount namespace of another program
   * perhaps, the kernel would show that again, shut down or read-only as it is.
   */
  private async copy(): Promise<void> {
    const former = this.image;
    this.image = `${former}.next`;
    await run('cp', '--sparse=always', '--', former, this.image);
  }

  private unmounted(): Promise<boolean> {
    return until('nobody holds the disk', () => run('umount', this.folder).then(() => true), {
      timeoutMs: 20_000,
      everyMs: 100,
    });
  }

  private attach(): Promise<void> {
    return run('mount', '-o', `loop,errors=remount-ro,commit=${JOURNAL_EVERY_S}`, this.image, this.folder);
  }
}
