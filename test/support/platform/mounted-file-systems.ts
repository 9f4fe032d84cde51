/** What is mounted below a folder, by the kernel's own list; the mounts themselves are never touched. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';

export interface SeenMount {
  readonly mountPoint: string;
  readonly fsType: string;
  readonly source: string;
}

/** Mounts at the folder or below it, in the order in which they were made. */
export async function mountsBelow(folder: string): Promise<SeenMount[]> {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).split('\n').filter((line) => line !== '');
  const mounts = lines.map((line) => ({
    mountPoint: (line.split(' ')[4] ?? '').replace(/\\(\d{3})/g, (_, octal: string) =>
      String.fromCharCode(Number.parseInt(octal, 8)),
    ),
    fsType: / - (\S+)/.exec(line)?.[1] ?? '',
    source: / - \S+ (\S+)/.exec(line)?.[1] ?? '',
  }));
  return mounts.filter((mount) => mount.mountPoint === folder || mount.mountPoint.startsWith(`${folder}/`));
}

/** True when something is mounted at just this path. */
export async function isMounted(mountPoint: string): Promise<boolean> {
  return (await mountsBelow(mountPoint)).some((mount) => mount.mountPoint === mountPoint);
}

/** Lazy unmounts, newest first. */
export async function detachAll(mounts: readonly SeenMount[]): Promise<void> {
  for (const mount of [...mounts].reverse()) {
    const [command, ...args] =
      process.getuid?.() === 0
        ? ['umount', '-l', mount.mountPoint]
        : ['fusermount3', '-uz', mount.mountPoint];
    await once(spawn(command ?? 'umount', args, { stdio: 'ignore' }), 'exit');
  }
}
