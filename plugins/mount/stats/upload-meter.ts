/** One entry of rclone's list of transfers: source, and destination once the transfer has begun. */
export interface Transfer {
  readonly name: string;
  readonly bytes: number;
  readonly srcFs?: string;
  readonly dstFs?: string;
}

type Sums = ReadonlyMap<string, number>;
interface Look {
  readonly bytes: number;
  readonly up: Sums;
  readonly down: Sums;
}

const NONE: Sums = new Map();

/**
 * Counts the bytes uploaded so far. rclone counts both directions in one sum, so they are told apart by the
 * single transfers. Undefined while a transfer's direction is unknown, or while transfers of both
 * directions begin and end.
 */
export function createUploadMeter(): (
  core: { readonly bytes: number; readonly transferring: readonly Transfer[] },
  uploads: number,
) => number | undefined {
  let uploadedBytes = 0;
  let last: Look = { bytes: 0, up: NONE, down: NONE };
  return ({ bytes, transferring }, uploads) => {
    const isMixed = transferring.length > uploads;
    const areTold =
      !isMixed || transferring.every(({ srcFs, dstFs }) => srcFs !== undefined || dstFs !== undefined);
    const isUp = ({ dstFs }: Transfer): boolean => !isMixed || dstFs !== undefined;
    const now: Look = areTold
      ? { bytes, up: sums(transferring.filter(isUp)), down: sums(transferring.filter((one) => !isUp(one))) }
      : { bytes, up: NONE, down: NONE };
    const sent = areTold ? sentBetween(last, now) : undefined;
    last = now;
    if (sent === undefined) return undefined;
    uploadedBytes += sent;
    return uploadedBytes;
  };
}

function sentBetween(last: Look, now: Look): number | undefined {
  const moved = Math.max(0, now.bytes - last.bytes);
  if (last.down.size === 0 && now.down.size === 0) return moved;
  if (now.up.size === last.up.size && hasAll(now.up, last.up))
    return Math.min(moved, growth(last.up, now.up));
  // All other downloads were observed to their end.
  return hasAll(now.down, last.down) ? Math.max(0, moved - growth(last.down, now.down)) : undefined;
}

function hasAll(sums: Sums, names: Sums): boolean {
  return [...names.keys()].every((name) => sums.has(name));
}

function growth(last: Sums, now: Sums): number {
  return [...now].reduce((sum, [name, bytes]) => sum + Math.max(0, bytes - (last.get(name) ?? 0)), 0);
}

/** Several transfers may read one file. */
function sums(transfers: readonly Transfer[]): Sums {
  const byName = new Map<string, number>();
  for (const { name, bytes } of transfers) byName.set(name, (byName.get(name) ?? 0) + bytes);
  return byName;
}
