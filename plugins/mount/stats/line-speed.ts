/** Measures the line to a remote by listing and reading, with short-lived rclones past any cache. */
import type { LineFigures, ShareSpec } from 'mountkeeper';
import { remotePath } from '../rclone/arguments.ts';
import { askOnce } from '../lifecycle/probe.ts';
import type { MountTools } from '../lifecycle/tools.ts';

const LISTINGS = 3;
const DEPTH = 3;
const OUTPUT_BYTES = 512 * 1024;
const MIB = 1_048_576;
/** Below this, the time that a connection takes says more than the line. */
const LEAST_BYTES = 4 * MIB;
const MOST_BYTES = 64 * MIB;
/** A first read that was faster than this is too short to tell. */
const SHORT_MS = 2_000;

interface Found {
  readonly bytes: number;
  readonly path: string;
}

/** Rejects as `RemoteFailure`. */
export async function measureLine(
  spec: ShareSpec,
  tools: MountTools,
  signal: AbortSignal,
): Promise<LineFigures> {
  const ask = (args: readonly string[]): Promise<string> =>
    askOnce(spec, tools, { signal, args, maxOutputBytes: OUTPUT_BYTES });
  const timed = async (args: readonly string[]): Promise<number> => {
    const began = tools.clock.monotonic();
    await ask(args);
    return tools.clock.monotonic() - began;
  };
  let listingMs = Infinity;
  for (let count = 0; count < LISTINGS; count += 1)
    listingMs = Math.min(listingMs, await timed(['lsf', remotePath(spec), '--max-depth=1']));
  const files = filesIn(
    await ask(['lsf', remotePath(spec), '-R', '--files-only', '--format=sp', `--max-depth=${DEPTH}`]),
  );
  const largest = files.reduce<Found | undefined>(
    (found, one) => (one.bytes > (found?.bytes ?? LEAST_BYTES - 1) ? one : found),
    undefined,
  );
  const read = async ({ path, bytes: size }: Found, most: number): Promise<{ bytes: number; ms: number }> => {
    const bytes = Math.min(size, most);
    const spent = await timed(['cat', below(remotePath(spec), path), `--count=${bytes}`, '--discard']);
    return { bytes, ms: Math.max(1, spent - listingMs) };
  };
  let speed: { bytes: number; ms: number } | undefined;
  if (largest) speed = await read(largest, LEAST_BYTES);
  if (largest && speed && speed.ms < SHORT_MS) speed = await read(largest, MOST_BYTES);
  return {
    listingMs,
    sizes: files.map(({ bytes }) => bytes),
    ...(speed && { bytesPerSecond: (speed.bytes * 1_000) / speed.ms }),
  };
}

/** `nas:/a` is another file than `nas:a` where a login begins in a folder of its own. */
function below(remote: string, path: string): string {
  return remote.endsWith(':') || remote.endsWith('/') ? remote + path : `${remote}/${path}`;
}

/** Of lines such as `1234;folder/name`; one that was cut off is left out. */
function filesIn(listed: string): readonly Found[] {
  return listed.split('\n').flatMap((line) => {
    const [, size, path] = /^(\d{1,15});(.+)$/.exec(line) ?? [];
    return size === undefined || path === undefined ? [] : [{ bytes: Number(size), path }];
  });
}
