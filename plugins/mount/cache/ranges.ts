import { open, stat } from 'node:fs/promises';
import type { FileMeta } from './metadata.ts';

export interface ByteRange {
  readonly Pos: number;
  readonly Size: number;
}

/** Finds zeros that were written; `content` is the part of the file that is not zero. */
export type FindZeros = (file: string, content: readonly ByteRange[]) => Promise<readonly ByteRange[]>;

export const BLOCK = 4_096;
const PIECE = 256 * BLOCK;
/** Node sets file times with no more precision. */
const SAME_TIME_NS = 1_000n;

/** Sorted, without overlaps, within the file. */
export function unite(ranges: readonly ByteRange[], fileBytes: number): readonly ByteRange[] {
  const united: { Pos: number; Size: number }[] = [];
  for (const { Pos, Size } of [...ranges].sort((a, b) => a.Pos - b.Pos)) {
    const end = Math.min(Pos + Size, fileBytes);
    if (end <= Pos) continue;
    const last = united.at(-1);
    if (last && Pos <= last.Pos + last.Size) last.Size = Math.max(last.Size, end - last.Pos);
    else united.push({ Pos, Size: end - Pos });
  }
  return united;
}

export function covers(ranges: readonly ByteRange[] | null, fileBytes: number): boolean {
  const [first, ...rest] = unite(ranges ?? [], fileBytes);
  return fileBytes === 0 || (first?.Pos === 0 && first.Size === fileBytes && rest.length === 0);
}

/** The parts of `ranges` that `covered` does not contain. */
export function missingRanges(
  ranges: readonly ByteRange[],
  covered: readonly ByteRange[],
): readonly ByteRange[] {
  let left: readonly ByteRange[] = ranges;
  for (const { Pos, Size } of covered) {
    left = left.flatMap((range) =>
      [
        {
          Pos: range.Pos,
          Size: Math.min(range.Pos + range.Size, Pos) - range.Pos,
        },
        {
          Pos: Math.max(range.Pos, Pos + Size),
          Size: range.Pos + range.Size - Math.max(range.Pos, Pos + Size),
        },
      ].filter((piece) => piece.Size > 0),
    );
  }
  return left;
}

/**
 * Byte ranges that a dirty file's content holds. While a file is open, or was just closed, its metadata
 * lists only what was present before its first change. Everything beyond that size was written since, and
 * so was everything beyond the remote's size; in between, whatever is not zero, and zeros that are known to
 * have been written. Metadata that was saved after the last change is complete: rclone then gives the
 * content the metadata's time.
 */
export async function presentRanges(
  meta: FileMeta,
  file: string,
  fileBytes: number,
  zeros: FindZeros = async () => [],
): Promise<readonly ByteRange[]> {
  const own = meta.Rs ?? [];
  if (await isExact(meta, file)) return unite(own, fileBytes);
  const ownFrom = Math.min(meta.Size, remoteBytes(meta));
  const known = [...own, { Pos: ownFrom, Size: Math.max(0, fileBytes - ownFrom) }];
  if (covers(known, fileBytes)) return unite(known, fileBytes);
  const content = await contentRanges(file, fileBytes);
  return unite([...known, ...joinAdjacent([...content, ...(await zeros(file, content))])], fileBytes);
}

/** True when nothing was written to the file since its metadata was saved. */
export async function isExact(meta: FileMeta, file: string): Promise<boolean> {
  const { mtimeNs } = await stat(file, { bigint: true });
  const apart = mtimeNs - nanoseconds(meta.ModTime);
  return apart < SAME_TIME_NS && apart > -SAME_TIME_NS;
}

function nanoseconds(time: string): bigint {
  const [, whole = '', fraction = '', zone = ''] = /^(.*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  const seconds = Date.parse(`${whole}${zone}`) / 1000;
  return Number.isInteger(seconds)
    ? BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0').slice(0, 9))
    : -1n;
}

/**
 * Size of the remote file when it was last seen, from the start of its fingerprint. Without a fingerprint
 * there was no such file: 0.
 */
export function remoteBytes(meta: FileMeta): number {
  const size = Number.parseInt(meta.Fingerprint, 10);
  return Number.isNaN(size) ? 0 : size;
}

/**
 * Ranges of a sparse file that are not zero, block by block with the zeros at both ends cut off: what was
 * never written or fetched reads as zeros.
 */
export async function contentRanges(file: string, fileBytes: number): Promise<readonly ByteRange[]> {
  const ranges: ByteRange[] = [];
  const handle = await open(file, 'r');
  try {
    const buffer = Buffer.alloc(PIECE);
    for (let position = 0; position < fileBytes; position += PIECE) {
      const { bytesRead } = await handle.read(buffer, 0, PIECE, position);
      ranges.push(...nonZeroBlocks(buffer.subarray(0, bytesRead), position));
    }
  } finally {
    await handle.close();
  }
  return joinAdjacent(ranges);
}

function nonZeroBlocks(piece: Buffer, position: number): readonly ByteRange[] {
  const ranges: ByteRange[] = [];
  for (let start = 0; start < piece.length; start += BLOCK) {
    const range = nonZero(piece.subarray(start, start + BLOCK), position + start);
    if (range) ranges.push(range);
  }
  return ranges;
}

function nonZero(block: Buffer, position: number): ByteRange | undefined {
  const first = block.findIndex((byte) => byte !== 0);
  if (first < 0) return undefined;
  const last = block.findLastIndex((byte) => byte !== 0);
  return { Pos: position + first, Size: last - first + 1 };
}

/** Zeros between two adjacent blocks that both contain data are content, not a hole. */
export function joinAdjacent(ranges: readonly ByteRange[]): readonly ByteRange[] {
  const merged: { Pos: number; Size: number }[] = [];
  for (const range of [...ranges].sort((a, b) => a.Pos - b.Pos)) {
    const last = merged.at(-1);
    const isNext =
      last !== undefined &&
      Math.floor(range.Pos / BLOCK) - Math.floor((last.Pos + last.Size - 1) / BLOCK) <= 1;
    if (isNext) last.Size = Math.max(last.Size, range.Pos + range.Size - last.Pos);
    else merged.push({ ...range });
  }
  return merged;
}
