/**
 * Sends one file of a mount: what it is on descriptor 3, its content on standard output. A process of its own,
 * because any call into a mount may hang. Takes one request on standard input.
 */
import { createReadStream, writeSync } from 'node:fs';
import { open, readFile, readlink } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { text } from 'node:stream/consumers';
import { constants } from 'node:fs';

export interface SendRequest {
  /** Where the share is mounted. Without a mount there, nothing is sent. */
  readonly root: string;
  /** Names from the root to the file; none is empty, `.` or `..`, and none holds a slash. */
  readonly names: readonly string[];
}

export type SendAnswer =
  | { readonly ok: true; readonly bytes: number; readonly modifiedMs: number }
  | { readonly ok: false; readonly reason: 'missing' | 'not-a-file' };

const ANSWER_FD = 3;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Opening a named pipe would wait for a writer. */
const FILE = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/** Steps from folder to folder by descriptor: no symbolic link leads out, whoever puts one there meanwhile. */
async function openBelow({ root, names }: SendRequest): Promise<FileHandle> {
  let at = await open(root, constants.O_RDONLY | constants.O_DIRECTORY);
  if (!(await isRootOfMount(at))) throw new Error('the share is not mounted any more');
  for (const [index, name] of names.entries()) {
    const next = await open(`/proc/self/fd/${at.fd}/${name}`, index === names.length - 1 ? FILE : FOLDER);
    await at.close();
    at = next;
  }
  return at;
}

/** False where the mount has gone: the folder that was below it belongs to this machine. */
async function isRootOfMount({ fd }: FileHandle): Promise<boolean> {
  const [path, about, mounts] = await Promise.all([
    readlink(`/proc/self/fd/${fd}`, 'buffer'),
    readFile(`/proc/self/fdinfo/${fd}`, 'latin1'),
    readFile('/proc/self/mountinfo', 'latin1'),
  ]);
  const id = /^mnt_id:\s*(\d+)$/m.exec(about)?.[1];
  // As the kernel writes it there.
  const written = path
    .toString('latin1')
    .replaceAll(/[ \t\n\\]/g, (character) => `\\0${character.charCodeAt(0).toString(8).padStart(2, '0')}`);
  return mounts.split('\n').some((line) => {
    const [lineId, , , , mountPoint] = line.split(' ');
    return lineId === id && mountPoint === written;
  });
}

function answer(given: SendAnswer): void {
  writeSync(ANSWER_FD, `${JSON.stringify(given)}\n`);
}

const request = JSON.parse(await text(process.stdin)) as SendRequest;
try {
  const file = await openBelow(request);
  const stats = await file.stat();
  if (stats.isFile()) {
    answer({ ok: true, bytes: stats.size, modifiedMs: stats.mtimeMs });
    // Not beyond the size that was said: a file that grows would break the answer's length.
    if (stats.size > 0)
      await pipeline(createReadStream('', { fd: file, start: 0, end: stats.size - 1 }), process.stdout);
  } else answer({ ok: false, reason: 'not-a-file' });
} catch (error) {
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT' || code === 'ENOTDIR') answer({ ok: false, reason: 'missing' });
  else if (code === 'ELOOP' || code === 'ENXIO') answer({ ok: false, reason: 'not-a-file' });
  else {
    process.stderr.write(error instanceof Error ? error.message : String(error));
    process.exitCode = 1;
  }
}
