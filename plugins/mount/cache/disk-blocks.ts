import type { Processes } from 'mountkeeper';
import { BLOCK, joinAdjacent } from './ranges.ts';
import type { ByteRange } from './ranges.ts';

const TIMEOUT_MS = 20_000;
/** `   0:  1998848.. 2101247: 69530976256..69531078655: 102400:    1998848: last,eof` */
const EXTENT = /^\s*\d+:\s+(\d+)\.\.\s*(\d+):\s+\d+\.\.\s*\d+:\s+\d+:(.*)$/;

/**
 * The byte ranges of a file that have blocks on the disk. Empty where the file system does not report them.
 */
export async function blocksOf(
  file: string,
  processes: Pick<Processes, 'run'>,
): Promise<readonly ByteRange[]> {
  // The output contains the file's name, which could look like one of its lines.
  if (file.includes('\n')) return [];
  // Not installed, or late: no blocks are known then.
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
      // Preallocated, but never written.
      return first === undefined || rest.includes('unwritten')
        ? []
        : [{ Pos: Number(first), Size: Number(last) - Number(first) + 1 }];
    }),
  );
}

/**
 * Byte ranges that read as zeros although somebody wrote them: holes have no blocks on the disk. The first
 * and the last block of a run may have been written only in part, so the rest of them must be fetched,
 * unless the whole run is zeros, because long runs of zeros are written in whole blocks. A single block of
 * zeros may be a few cleared bytes: taking it whole would overwrite unwritten bytes next to them.
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
