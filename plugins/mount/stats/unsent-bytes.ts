import { readFileSync } from 'node:fs';
import { socketsOf } from '../outage/tcp-connections.ts';

const TABLES = ['tcp', 'tcp6'];

/**
 * Bytes that a process has written to its connections, and that the other side has not acknowledged yet. rclone counts
 * them as sent; the kernel takes some MiB at once, which on a slow line are many seconds. 0 where it does not say.
 */
export function unsentBytes(pid: number): number {
  try {
    const waiting = TABLES.flatMap((table) => waitingIn(readFileSync(`/proc/${pid}/net/${table}`, 'latin1')));
    if (waiting.length === 0) return 0;
    // The tables are those of all processes.
    const own = socketsOf(pid);
    return waiting.reduce((sum, { inode, bytes }) => sum + (own.has(inode) ? bytes : 0), 0);
  } catch {
    // Gone, or another user's.
    return 0;
  }
}

/** Of each connection with something to send. */
function waitingIn(table: string): readonly { readonly inode: string; readonly bytes: number }[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, , , , queues, , , , , inode] = line.trim().split(/\s+/);
      const bytes = Number.parseInt(queues?.split(':')[0] ?? '', 16);
      return inode !== undefined && bytes > 0 ? [{ inode, bytes }] : [];
    });
}
