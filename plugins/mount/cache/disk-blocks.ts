import type { Processes } from 'mountkeeper';
import { BLOCK, joinAdjacent } from './ranges.ts';
import type { ByteRange } from './ranges.ts';

const TIMEOUT_MS = 20_000;
/** `   0:  1998848.. 2101247: 69530976256..69531078655: 102400:    1998848: last,eof` */
const EXTENT = /^\s*\d+:\s+(\d+)\.\.\s*(\d+):\s+\d+\.\.\s*\d+:\s+\d+:(.*)$/;

/** Where a file has blocks on the disk. Empty where the file system does not tell. */
export async function blocksOf(
  file: string,
  processes: Pick<Processes, 'run'>,
): Promise<readonly ByteRange[]> {
  // Its name stands in the output, and may look like a line of it.
  if (file.includes('\n')) return [];
  const { code, stdout } = await processes
    .run({
      command: 'filefrag',
      args: ['-v', '-s', '-b1', '--', file],
      env: { LC_ALL: 'C' },
      timeoutMs: TIMEOUT_MS,
    })
    .catch(() => ({ code: null, stdout: '' }));
  if (code !== 0) return [];
  return joinAdjacent(
    stdout.split('\n').flatMap((line) => {
      const [, first, last, rest = ''] = EXTENT.exec(line) ?? [];
      // Set aside, but never written.
      return first === undefined || rest.includes('unwritten')
        ? []
        : [{ Pos: Number(first), Size: Number(last) - Number(first) + 1 }];
    }),
  );
}

/**
 * What somebody wrote though it reads as zeros: a hole has no blocks. The first and the last block of a run
 * may have been written in part, and the rest of them is to be fetched, unless nothing but zeros is in the
 * run: many zeros come in whole blocks. A single block of them may be a few bytes that were cleared: taken
 * whole, it would wipe out what nobody wrote beside them.
 */
export function writtenZeros(
  blocks: readonly ByteRange[],
  content: readonly ByteRange[],
): readonly ByteRange[] {
  return blocks.flatMap(({ Pos, Size }) => {
    const isZero = !content.some((range) => range.Pos < Pos + Size && Pos < range.Pos + range.Size);
    if (isZero) return Size > BLOCK ? [{ Pos, Size }] : [];
    return Size > 2 * BLOCK ? [{ Pos: Pos + BLOCK, Size: Size - 2 * BLOCK }] : [];
  });
}
