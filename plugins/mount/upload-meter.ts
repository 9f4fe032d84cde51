/** One entry of rclone's list of transfers. Current ones say where from and where to; 1.60 does not. */
export interface Transfer {
  readonly name: string;
  readonly bytes: number;
  readonly srcFs?: string;
  readonly dstFs?: string;
}

/**
 * Bytes that have gone up so far. rclone counts both directions in one sum, so what came down is taken off: seen on the
 * transfers themselves, where they tell their direction. Undefined while a transfer may be one or the other.
 */
export function createUploadMeter(): (core: { readonly bytes: number; readonly transferring: readonly Transfer[] }, uploads: number) => number | undefined {
  let uploadedBytes = 0;
  let lastBytes = 0;
  let lastDown: ReadonlyMap<string, number> = new Map();
  return ({ bytes, transferring }, uploads) => {
    const isMixed = transferring.length > uploads;
    const areTold = transferring.every(({ srcFs, dstFs }) => srcFs !== undefined || dstFs !== undefined);
    const down = sums(transferring.filter(({ dstFs }) => dstFs === undefined));
    const came = isMixed ? [...down].reduce((sum, [name, now]) => sum + Math.max(0, now - (lastDown.get(name) ?? 0)), 0) : 0;
    if (!isMixed || areTold) uploadedBytes += Math.max(0, bytes - lastBytes - came);
    lastBytes = bytes;
    lastDown = down;
    return isMixed && !areTold ? undefined : uploadedBytes;
  };
}

/** One file may be read by several transfers. */
function sums(transfers: readonly Transfer[]): ReadonlyMap<string, number> {
  const byName = new Map<string, number>();
  for (const { name, bytes } of transfers) byName.set(name, (byName.get(name) ?? 0) + bytes);
  return byName;
}
