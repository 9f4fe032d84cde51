/**
 * A child that works below a mount as a user's program would, and tells how long each piece took and what it
 * was told.
 */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';
import { timedWork } from '../platform/run-queue.ts';

export interface Task {
  /** `…-now`: in one go, so that what it takes is the mount's time alone; for what cannot hang. */
  readonly op: 'read' | 'read-now' | 'head' | 'list' | 'list-now' | 'write' | 'edit';
  readonly path: string;
  /**
   * The rclone's process, for `…-now`: what it and the hand stood in the queue for a processor is told, too.
   */
  readonly server?: number;
  readonly at?: number;
  /** base64 */
  readonly content?: string;
}

export interface Outcome {
  readonly ms: number;
  /** Of that, in the queue for the processor. */
  readonly queuedMs?: number;
  /** Checksum of what was read, or names of what was listed. */
  readonly seen?: string;
  /** Code of the error of whichever call came back with one. */
  readonly error?: string;
}

async function perform({ op, path, at = 0, content = '' }: Task): Promise<string | undefined> {
  if (op === 'read')
    return createHash('sha256')
      .update(await readFile(path))
      .digest('hex');
  if (op === 'list') return (await readdir(path)).sort().join(' ');
  if (op === 'write') {
    await writeFile(path, Buffer.from(content, 'base64'));
    return undefined;
  }
  const handle = await open(path, op === 'head' ? 'r' : 'r+');
  try {
    if (op === 'head') await handle.read(Buffer.alloc(4_096), 0, 4_096, 0);
    else await handle.write(Buffer.from(content, 'base64'), 0, undefined, at);
  } finally {
    await handle.close();
  }
  return undefined;
}

function performNow({ op, path, server = process.pid }: Task): Outcome {
  let error: string | undefined;
  const took = timedWork(server, () => {
    try {
      if (op === 'read-now') readFileSync(path);
      else readdirSync(path);
    } catch (caught) {
      error = (caught as NodeJS.ErrnoException).code ?? String(caught);
    }
  });
  return error === undefined ? took : { ...took, error };
}

process.on('message', ({ id, task }: { readonly id: number; readonly task: Task }) => {
  if (task.op === 'read-now' || task.op === 'list-now') {
    process.send?.({ id, outcome: performNow(task) });
    return;
  }
  const begun = performance.now();
  void perform(task)
    .then(
      (seen) => ({ seen }),
      (error: NodeJS.ErrnoException) => ({
        error: error.code ?? error.message,
      }),
    )
    .then((result) =>
      process.send?.({
        id,
        outcome: { ms: performance.now() - begun, ...result },
      }),
    );
});
