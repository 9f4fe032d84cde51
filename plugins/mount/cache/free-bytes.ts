import { statfs } from 'node:fs/promises';

/** Bytes that a program may still write to the file system that contains the path. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
