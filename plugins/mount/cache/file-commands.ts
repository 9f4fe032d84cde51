import type { MountTools } from '../lifecycle/tools.ts';

/** File operations run as child processes, because the daemon must not wait for them itself. */
type Tools = Pick<MountTools, 'processes'>;

const TIME_TIMEOUT_MS = 10_000;
const COPY_TIMEOUT_MS = 600_000;

/** For a file below a mount. rclone saves its metadata of the file before it asks the remote. */
export async function setTime(file: string, modifiedMs: number, { processes }: Tools): Promise<void> {
  await processes.run({
    command: 'touch',
    args: ['-c', '-m', '-d', new Date(modifiedMs).toISOString(), '--', file],
    timeoutMs: TIME_TIMEOUT_MS,
  });
}

/** For a file below a mount; one that is already shorter stays as it is. */
export async function cutTo(file: string, bytes: number, { processes }: Tools): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'truncate',
    args: ['-c', '-s', `<${bytes}`, '--', file],
    timeoutMs: TIME_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`a file could not be made shorter: ${stderr.trim()}`);
}

/** Keeps holes. */
export async function copySparse(from: string, to: string, { processes }: Tools): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'cp',
    args: ['--sparse=always', '--', from, to],
    timeoutMs: COPY_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`a file could not be copied: ${stderr.trim()}`);
}
