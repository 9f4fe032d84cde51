import { spawn } from 'node:child_process';
import { join } from 'node:path';
import type { IncomingMessage } from 'node:http';
import { clock } from '../clock.ts';
import type { ProxyShare } from '../state.ts';

const SET_MS = 3_000;
const SECONDS = /^\d{1,11}(?:\.\d{1,9})?$/;

/** The modification time that a client sets for its file, in seconds since the epoch. */
export function wantedTime({ headers }: IncomingMessage): string | undefined {
  const wanted = headers['x-oc-mtime'] ?? headers['oc-mtime'];
  return typeof wanted === 'string' && SECONDS.test(wanted) ? wanted : undefined;
}

/**
 * True when the file has that time now. Older backends ignore the header: then a child process sets the
 * time in the mounted folder, because any call into a mount may hang.
 */
export async function keepTime(
  { backend, path }: ProxyShare,
  parts: readonly string[],
  seconds: string,
): Promise<boolean> {
  if (backend.overlooksTimes !== true) return true;
  const child = spawn('touch', ['--no-create', '-m', `--date=@${seconds}`, '--', join(path, ...parts)], {
    stdio: 'ignore',
  });
  return new Promise((resolve) => {
    const cancel = clock.after(SET_MS, () => {
      child.kill('SIGKILL');
      resolve(false);
    });
    const end = (isSet: boolean): void => {
      cancel();
      resolve(isSet);
    };
    child.once('error', () => end(false)).once('exit', (code) => end(code === 0));
  });
}
