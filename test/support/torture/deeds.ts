/** What a writer's action does to a plain folder: on the model, and, by the local writer's child, on the share. */
import { Buffer } from 'node:buffer';
import {
  appendFileSync,
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  rmdirSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { join } from 'node:path';
import type { Action, Way } from './plan.ts';

const PATCH_AT = 300;
const PATCH_BYTES = 500;

/** What an action writes: no two are alike. */
export function contentOf({ seed, bytes }: Pick<Action, 'seed' | 'bytes'>): Buffer {
  const piece = `${seed}:`.padEnd(11, '.');
  return Buffer.from(piece.repeat(Math.ceil(bytes / piece.length)).slice(0, bytes));
}

/** In this writer's folder, as its protocol does it. Undefined when it was done, else the error's code. */
export function carryOut(folder: string, way: Way, action: Action): string | undefined {
  try {
    deed(folder, way, action);
    return undefined;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? (error as Error).message;
  }
}

function deed(folder: string, way: Way, action: Action): void {
  const path = join(folder, action.path);
  const content = contentOf(action);
  if (action.deed === 'write') return writeFileSync(path, content);
  if (action.deed === 'append') return appendFileSync(path, content);
  if (action.deed === 'patch') return patch(path, action);
  if (action.deed === 'make') return make(path, way);
  if (action.deed === 'rename') return rename(path, join(folder, action.to ?? ''), way);
  remove(path, way, action.deed);
}

function patch(path: string, { seed }: Action): void {
  const fd = openSync(path, 'r+');
  try {
    writeSync(fd, contentOf({ seed, bytes: PATCH_BYTES }), 0, PATCH_BYTES, PATCH_AT);
  } finally {
    closeSync(fd);
  }
}

function make(path: string, way: Way): void {
  // The NFS client asks for what it may have already.
  if (way === 'nfs' && lstatSync(path, { throwIfNoEntry: false }) !== undefined) return;
  mkdirSync(path);
}

function rename(from: string, to: string, way: Way): void {
  // `Overwrite: T` removes what is there, a folder with all in it, if there is something to move.
  lstatSync(from);
  if (way === 'webdav') rmSync(to, { recursive: true, force: true });
  renameSync(from, to);
}

function remove(path: string, way: Way, how: 'delete' | 'remove'): void {
  if (way === 'webdav') return rmSync(path, { recursive: true });
  const isFolder = way === 'nfs' ? lstatSync(path).isDirectory() : how === 'remove';
  if (isFolder) rmdirSync(path);
  else unlinkSync(path);
}

/** To be read by the NFS client. */
export function sourceOf(content: Buffer): {
  read(buffer: Buffer, offset: number, length: number, position: number): Promise<{ bytesRead: number }>;
} {
  return {
    read: (buffer, offset, length, position) =>
      Promise.resolve({ bytesRead: content.copy(buffer, offset, position, position + length) }),
  };
}
