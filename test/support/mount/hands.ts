/** A child that works below a mount as a user's program would, and tells how long each piece took and what it was told. */
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { open, readdir, readFile, writeFile } from 'node:fs/promises';

export interface Task {
  /** `…-now`: in one go, so that what it takes is the mount's time alone; for what cannot hang. */
  readonly op: 'read' | 'read-now' | 'head' | 'list' | 'list-now' | 'write' | 'edit';
  readonly path: string;
  readonly at?: number;
  /** base64 */
  readonly content?: string;
}

export interface Outcome {
  readonly ms: number;
  /** Checksum of what was read, or names of what was listed. */
  readonly seen?: string;
  /** Code of the error of whichever call came back with one. */
  readonly error?: string;
}

async function perform({ op, path, at = 0, content = '' }: Task): Promise<string | undefined> {
  if (op === 'read-now') return String(readFileSync(path).length);
  if (op === 'list-now') return readdirSync(path).sort().join(' ');
  if (op === 'read') return createHash('sha256').update(await readFile(path)).digest('hex');
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

process.on('message', ({ id, task }: { readonly id: number; readonly task: Task }) => {
  const begun = performance.now();
  void perform(task).then((seen) => ({ seen }), (error: NodeJS.ErrnoException) => ({ error: error.code ?? error.message }))
    .then((result) => process.send?.({ id, outcome: { ms: performance.now() - begun, ...result } }));
});
