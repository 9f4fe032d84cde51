import { statfs } from 'node:fs/promises';

/** What a program may still write to the file system that holds the path. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(path);
  return bavail * bsize;
}
