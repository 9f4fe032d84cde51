import { readFile } from 'node:fs/promises';

/**
 * Bytes that a process has ever written to files; counted when they are written, not when they are on the
 * disk. Undefined where the kernel does not report it.
 */
export async function writtenBytes(pid: number): Promise<number | undefined> {
  // Gone, or another user's.
  const text = await readFile(`/proc/${pid}/io`, 'utf8').catch(() => '');
  const bytes = /^write_bytes: (\d+)$/m.exec(text)?.[1];
  return bytes === undefined ? undefined : Number(bytes);
}
