import { readFile } from 'node:fs/promises';

/**
 * Bytes that a process has ever left to the kernel for its disks; each counts when it is written, not when it
 * is on the disk. Undefined where nobody can tell.
 */
export async function writtenBytes(pid: number): Promise<number | undefined> {
  const text = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
  const bytes = /^write_bytes: (\d+)$/m.exec(text)?.[1];
  return bytes === undefined ? undefined : Number(bytes);
}
