/**
 * Names as the disk has them: bytes. Those that are no valid UTF-8 are no text either, and Node would give all of them
 * the same sign for what it cannot read. Here each byte of such a name becomes a lone surrogate, which is in no text:
 * so the entry can be told from all others and reached. No remote can be asked by such a path.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import type { FileHandle } from 'node:fs/promises';

const FIRST_BYTE = 0x80;
const LONE = 0xdc00;
const ALL_LONE = /\p{Surrogate}/gu;
const IS_LONE = /\p{Surrogate}/u;

/** True for a path of which each name is valid UTF-8. */
export function isText(path: string): boolean {
  return !IS_LONE.test(path);
}

export function textOf(name: Buffer): string {
  const text = name.toString('utf8');
  if (Buffer.from(text, 'utf8').equals(name)) return text;
  return [...name].map((byte) => String.fromCharCode(byte < FIRST_BYTE ? byte : LONE + byte)).join('');
}

/** What the disk has for a path. */
export function bytesOf(path: string): Buffer {
  if (isText(path)) return Buffer.from(path, 'utf8');
  return Buffer.concat(
    [...path].map((one) =>
      isText(one) ? Buffer.from(one, 'utf8') : Buffer.from([one.charCodeAt(0) - LONE]),
    ),
  );
}

/** For people: `caf\xe9`. */
export function shownPath(path: string): string {
  return path.replaceAll(ALL_LONE, (one) => `\\x${(one.charCodeAt(0) - LONE).toString(16)}`);
}

/** A file or folder, to be reached by its descriptor; never what a link leads to. */
export function openedEntry(path: string): Promise<FileHandle> {
  return open(bytesOf(path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
}
