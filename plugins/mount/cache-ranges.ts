import { open } from 'node:fs/promises';

export interface ByteRange { readonly Pos: number; readonly Size: number }

const BLOCK = 4_096;
const PIECE = 256 * BLOCK;

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

/**
 * Where a sparse file holds bytes that are not zero, a block at a time with the zeros at both ends cut off: what was never
 * written or fetched reads as zeros.
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
  return mergeBlocks(ranges);
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

/** Zeros between two neighbouring blocks that both hold bytes are content, not a hole. */
function mergeBlocks(ranges: readonly ByteRange[]): readonly ByteRange[] {
  const merged: { Pos: number; Size: number }[] = [];
  for (const range of ranges) {
    const last = merged.at(-1);
    const isNext = last !== undefined && Math.floor(range.Pos / BLOCK) - Math.floor((last.Pos + last.Size - 1) / BLOCK) <= 1;
    if (isNext) last.Size = range.Pos + range.Size - last.Pos;
    else merged.push({ ...range });
  }
  return merged;
}
