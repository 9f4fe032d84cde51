import { stat } from 'node:fs/promises';
import type { FileMeta } from './cache-meta.ts';

const MILLISECOND_NS = 1_000_000n;

/**
 * Nothing was written to the file since rclone closed it: it gives the content the record's time then, to the nanosecond, which the
 * kernel's clock for writes never hits. A time without so fine a part proves nothing: a disk may keep no finer ones.
 */
export async function isAtRest(meta: FileMeta, file: string): Promise<boolean> {
  const time = nanoseconds(meta.ModTime);
  if (time === undefined || time % MILLISECOND_NS === 0n) return false;
  const { mtimeNs } = await stat(file, { bigint: true });
  return mtimeNs === time;
}

/** Since 1970. */
export function nanoseconds(time: string): bigint | undefined {
  const [, whole = '', fraction = '', zone = ''] = /^(.*?)(?:\.(\d+))?(Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  const seconds = Date.parse(`${whole}${zone}`) / 1000;
  return Number.isInteger(seconds) ? BigInt(seconds) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0').slice(0, 9)) : undefined;
}
