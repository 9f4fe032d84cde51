/**
 * The only way to a path below a mount: in child processes, with a deadline, never waiting for a child that
 * hangs. A call into a hung mount cannot even be killed; its child is abandoned and reaped when the mount
 * is freed.
 */
import type { Clock, Logger, MountReader } from '../../contract/platform.ts';
import { createMountProbe } from './mount-probe.ts';
import { createMountTable } from './mount-table.ts';
import { runShortCommand } from '../processes/short-command.ts';
import { timeoutError } from '../timeout-error.ts';

export interface MountReaderOptions {
  readonly clock: Clock;
  readonly log: Logger;
}

const CONTROL_TIMEOUT_MS = 5_000;
const MAX_LISTING_BYTES = 64 * 1_048_576;
/**
 * The kernel's control files may not be mounted: then this shell mounts them in its own mount namespace,
 * which ends with it. A connection that is not listed has already ended.
 */
function onConnection(file: 'abort' | 'waiting', work: string): string {
  return `
dir=/sys/fs/fuse/connections
if [ -e "$dir/$1/${file}" ]; then file="$dir/$1/${file}"; ${work}; exit; fi
if mountpoint -q "$dir"; then exit 0; fi
exec unshare -m sh -c '
  mount -t fusectl none "$1" && { file="$1/$2/${file}"; [ ! -e "$file" ] || ${work}; }
' sh "$dir" "$1"`;
}
const ABORT = onConnection('abort', 'echo 1 > "$file"');
const WAITING = onConnection('waiting', 'cat "$file"');

export function createMountReader({ clock, log }: MountReaderOptions): MountReader & { close(): void } {
  const probe = createMountProbe({ clock, log });
  const run = (command: string, args: readonly string[], timeoutMs: number) =>
    runShortCommand(
      { command, args, timeoutMs, env: { LC_ALL: 'C' }, maxOutputBytes: MAX_LISTING_BYTES },
      clock,
    );
  return {
    touch: (path, { timeoutMs }) => probe.touch(path, timeoutMs),
    list: async (path, { timeoutMs }) => {
      const { code, stdout, stderr } = await run(
        'find',
        ['-H', path, '-mindepth', '1', '-maxdepth', '1', '-print0'],
        timeoutMs,
      ).catch((error: unknown) => Promise.reject(inPlainWords(error, path, timeoutMs)));
      if (code !== 0) throw new Error(`list ${path}: ${lastLine(stderr)}`);
      return stdout
        .split('\0')
        .slice(0, -1)
        .map((entry) => entry.slice(entry.lastIndexOf('/') + 1));
    },
    detach: (path, { timeoutMs }) => detach(path, timeoutMs, run),
    abort: async (deviceMinor) => {
      const { code, stderr } = await run('sh', ['-c', ABORT, 'sh', String(deviceMinor)], CONTROL_TIMEOUT_MS);
      if (code !== 0) throw new Error(`abort FUSE connection ${deviceMinor}: ${lastLine(stderr)}`);
    },
    waiting: async (deviceMinor) => {
      const { code, stdout, stderr } = await run(
        'sh',
        ['-c', WAITING, 'sh', String(deviceMinor)],
        CONTROL_TIMEOUT_MS,
      );
      if (code !== 0) throw new Error(`calls in FUSE connection ${deviceMinor}: ${lastLine(stderr)}`);
      return Number(stdout);
    },
    close: () => probe.close(),
  };
}

type Run = (
  command: string,
  args: readonly string[],
  timeoutMs: number,
) => ReturnType<typeof runShortCommand>;

async function detach(path: string, timeoutMs: number, run: Run): Promise<void> {
  const table = createMountTable();
  const before = await table.find(path);
  if (before === undefined) return;
  if (!before.fsType.startsWith('fuse'))
    throw new Error(`${path} holds a ${before.fsType} file system that is not ours; it is left as it is`);
  const problems: string[] = [];
  for (const [command, ...args] of [
    ['umount', '-l', path],
    ['fusermount3', '-uz', path],
    ['fusermount', '-uz', path],
  ] as const) {
    const result = await run(command, args, timeoutMs).catch((error: unknown) => ({
      code: -1,
      stderr: (error as Error).message,
    }));
    if (result.code === 0 || (await table.find(path)) === undefined) return;
    problems.push(lastLine(result.stderr));
  }
  throw new Error(`detach ${path}: ${problems.join('; ')}`);
}

function inPlainWords(error: unknown, path: string, timeoutMs: number): unknown {
  return error instanceof Error && error.name === 'TimeoutError'
    ? timeoutError(`${path} did not answer within ${timeoutMs} ms`)
    : error;
}

function lastLine(text: string): string {
  return text.trim().split('\n').at(-1) ?? '';
}
