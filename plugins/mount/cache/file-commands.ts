import type { MountTools } from '../lifecycle/tools.ts';

/** What programs beside the daemon do with files, since it must not wait for them itself. */
type Tools = Pick<MountTools, 'processes'>;

const TIME_TIMEOUT_MS = 10_000;
const COPY_TIMEOUT_MS = 600_000;

/** Of a file below a mount. rclone saves what it knows of the file before it asks the remote. */
export async function setTime(file: string, modifiedMs: number, { processes }: Tools): Promise<void> {
  await processes.run({
    command: 'touch',
    args: ['-c', '-m', '-d', new Date(modifiedMs).toISOString(), '--', file],
    timeoutMs: TIME_TIMEOUT_MS,
  });
}

/** Of a file below a mount: one that is shorter stays as it is. */
export async function cutTo(file: string, bytes: number, { processes }: Tools): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'truncate',
    args: ['-c', '-s', `<${bytes}`, '--', file],
    timeoutMs: TIME_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`a file could not be made shorter: ${stderr.trim()}`);
}

/** Leaves holes as they are. */
export async function copySparse(from: string, to: string, { processes }: Tools): Promise<void> {
  const { code, stderr } = await processes.run({
    command: 'cp',
    args: ['--sparse=always', '--', from, to],
    timeoutMs: COPY_TIMEOUT_MS,
  });
  if (code !== 0) throw new Error(`a file could not be copied: ${stderr.trim()}`);
}
