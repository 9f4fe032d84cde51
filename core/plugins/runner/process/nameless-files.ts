/**
 * Files that processes hold open and that have no name any more: they take room on a disk, and no folder shows them.
 * Nothing but the disks that are asked about is touched: a mount that hangs would hold up who asks it for a size.
 */
import { open, readFile, readdir, readlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { openedFolder } from '../../../platform/files/give-tree.ts';
import type { ProcessIdentity } from '../../../platform/processes/proc-stat.ts';

export interface Nameless {
  /** Where it was. */
  readonly file: string;
  readonly bytes: number;
}

/** Of Linux: the file is named, not opened, so that nobody is asked for it. `node:fs` does not tell of it. */
const O_PATH = 0o10_000_000;
/** As /proc shows it; also a file that is called so. */
const GONE = ' (deleted)';
/** What `stat` counts blocks in. */
const BLOCK_BYTES = 512;

/** Disks by the ids of the mounts that show them. */
type Mounts = ReadonlyMap<string, string>;

/** On the disks that the folders are on. What goes meanwhile counts for nothing. */
export async function namelessFiles(
  folders: readonly string[],
  processes: readonly Pick<ProcessIdentity, 'pid'>[],
): Promise<readonly Nameless[]> {
  const disks = await disksOf(folders);
  if (disks.size === 0) return [];
  const found = new Map<string, Nameless>();
  for (const { pid } of processes) {
    const gone = await goneIn(pid);
    if (gone.length === 0) continue;
    const mounts = await mountsOf(pid);
    for (const { link, file } of gone) {
      // It is closed by now.
      const seen = await sizeOf(link, (id) => disks.has(mounts.get(id) ?? '')).catch(() => undefined);
      // Several may hold the same.
      if (seen) found.set(seen.id, { file, bytes: seen.bytes });
    }
  }
  return [...found.values()];
}

async function goneIn(pid: number): Promise<readonly { readonly link: string; readonly file: string }[]> {
  const folder = `/proc/${String(pid)}/fd`;
  const gone = [];
  // The process has ended.
  for (const name of await readdir(folder).catch(() => [])) {
    const link = `${folder}/${name}`;
    // It is closed by now.
    const target = await readlink(link).catch(() => '');
    if (target.endsWith(GONE)) gone.push({ link, file: target.slice(0, -GONE.length) });
  }
  return gone;
}

async function sizeOf(
  link: string,
  isAsked: (mountId: string) => boolean,
): Promise<{ readonly id: string; readonly bytes: number } | undefined> {
  const handle = await open(link, O_PATH);
  try {
    // By our own descriptor: behind the link there may be another file by now.
    if (!isAsked(await mountOf(handle))) return undefined;
    const { dev, ino, nlink, blocks } = await handle.stat();
    return nlink === 0 ? { id: `${String(dev)} ${String(ino)}`, bytes: blocks * BLOCK_BYTES } : undefined;
  } finally {
    await handle.close();
  }
}

async function disksOf(folders: readonly string[]): Promise<ReadonlySet<string>> {
  const mounts = await mountsOf('self');
  const disks = new Set<string>();
  for (const folder of folders) {
    const add = async (handle: FileHandle): Promise<void> =>
      void disks.add(mounts.get(await mountOf(handle)) ?? 'unknown');
    // There is no such folder.
    await openedFolder(folder, add).catch(() => undefined);
  }
  return disks;
}

async function mountOf({ fd }: FileHandle): Promise<string> {
  const text = await readFile(`/proc/self/fdinfo/${String(fd)}`, 'latin1');
  return /^mnt_id:\s*(\d+)$/m.exec(text)?.[1] ?? '';
}

/** The numbers of a disk are the same in all views of the machine; `stat` has others on some file systems. */
async function mountsOf(pid: number | 'self'): Promise<Mounts> {
  // The process has ended.
  const text = await readFile(`/proc/${String(pid)}/mountinfo`, 'latin1').catch(() => '');
  return new Map([...text.matchAll(/^(\d+) \d+ (\d+:\d+) /gm)].map(([, id = '', disk = '']) => [id, disk]));
}
