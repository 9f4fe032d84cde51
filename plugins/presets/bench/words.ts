/** What was measured, and what follows from it, in sentences. */
import { formatBytes } from 'mountkeeper';
import type { LineFigures } from 'mountkeeper';
import type { ProfileName } from '../profiles.ts';
import type { DiskFigures } from './disk.ts';

export interface Measured {
  readonly share: string;
  readonly line: LineFigures;
  readonly cacheDir: string;
  readonly disk: DiskFigures;
}

const MIB = 1_048_576;
const LARGE_BYTES = 500 * MIB;
const PHOTOGRAPH_BYTES = 5 * MIB;
const FAR_MS = 500;
const SLOW_DISK_MS = 20;

/** Undefined where no files were found. */
export function proposal({ sizes }: Pick<LineFigures, 'sizes'>): ProfileName | undefined {
  const sum = (some: readonly number[]): number => some.reduce((all, bytes) => all + bytes, 0);
  const all = sum(sizes);
  if (all === 0) return undefined;
  if (sum(sizes.filter((bytes) => bytes >= LARGE_BYTES)) * 2 >= all) return 'video';
  return sum(sizes.filter((bytes) => bytes >= PHOTOGRAPH_BYTES)) * 2 >= all ? 'photographer' : 'office';
}

const REASONS: Readonly<Record<ProfileName, string>> = {
  video: `Most of what is there lies in files above ${formatBytes(LARGE_BYTES)}`,
  photographer: `Most of what is there lies in files above ${formatBytes(PHOTOGRAPH_BYTES)}`,
  office: 'Most of what is there lies in small files',
};

export function sentences(measured: Measured): readonly string[] {
  const { share, line, cacheDir, disk } = measured;
  return [
    `The line to ${share}: a listing over a new connection takes ${ms(line.listingMs)}, ` +
      (line.bytesPerSecond === undefined
        ? 'and no file near the top is large enough to tell how fast it reads.'
        : `and one file is read with ${rate(line.bytesPerSecond)}.`),
    `The cache disk (${cacheDir}): a large file is written with ${rate(disk.bytesPerSecond)}, ` +
      `a small one is safe after ${ms(disk.smallMs)}.`,
    ...troubles(measured),
    ...advice(line),
  ];
}

function troubles({ line, disk }: Measured): readonly string[] {
  const found: string[] = [];
  if (disk.bytesPerSecond < (line.bytesPerSecond ?? 0))
    found.push(
      'The cache disk is slower than the line, so the cache slows reading down: put cache.dir on an SSD.',
    );
  if (disk.smallMs > SLOW_DISK_MS)
    found.push('A program that saves many small files waits for the cache disk: an SSD would help it.');
  if (line.listingMs > FAR_MS)
    found.push(
      'The NAS is far away or slow to greet: let folders be listed ahead with [plugins.warmup], and listings be ' +
        'trusted longer with mount.dir_cache_time.',
    );
  return found;
}

function advice(line: LineFigures): readonly string[] {
  const preset = proposal(line);
  if (preset === undefined) return ['No files were found near the top, so no preset is proposed.'];
  return [
    `${REASONS[preset]} (${line.sizes.length} files near the top were counted): ` +
      `\`mountkeeper preset ${preset}\` suits that.`,
  ];
}

function rate(bytesPerSecond: number): string {
  return `${formatBytes(bytesPerSecond)}/s`;
}

function ms(value: number): string {
  return `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
}
