/** Looks at what lies below an overlay, by child processes with a deadline. Paths are relative to a root. */
import { join } from 'node:path';
import type { LookBelow, Processes, RemoteEntry } from 'mountkeeper';
import { findMany } from './find-many.ts';
import type { FoundAt, Seen } from './find-many.ts';

/** A lookup in the lower layer may wait for a listing of the remote, never for content. */
const TIMEOUT_MS = 30_000;

export interface LookOptions {
  readonly root: string;
  readonly processes: Pick<Processes, 'run'>;
  readonly signal?: AbortSignal;
}

export function lookBelow(paths: readonly string[], options: LookOptions): Promise<LookBelow<RemoteEntry>> {
  return look(paths, options, { isInside: false, read: ({ self }) => entryOf(self) });
}

/** The entries of these folders. */
export function listBelow(
  folders: readonly string[],
  options: LookOptions,
): Promise<LookBelow<readonly RemoteEntry[]>> {
  return look(folders, options, { isInside: true, read: entriesOf });
}

async function look<T>(
  paths: readonly string[],
  { root, processes, signal }: LookOptions,
  { isInside, read }: { readonly isInside: boolean; readonly read: (at: FoundAt) => T | undefined },
): Promise<LookBelow<T>> {
  const whole = new Map(paths.map((path) => [path, path === '' ? root : join(root, path)]));
  const looked = await findMany([...whole.values()], {
    processes,
    isInside,
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  const found = new Map<string, T | undefined>();
  const failed = new Map<string, string>();
  for (const [path, one] of whole) {
    const reason = looked.failed.get(one);
    const at = looked.found.get(one);
    if (reason === undefined) found.set(path, at && read(at));
    else failed.set(path, `what lies below cannot be looked at: ${reason}`);
  }
  return { found, failed };
}

function entriesOf({ self, inside }: FoundAt): readonly RemoteEntry[] | undefined {
  return self.type === 'd' ? inside.map(entryOf).filter((entry) => entry !== undefined) : undefined;
}

function entryOf({ type, bytes, modified, name }: Seen): RemoteEntry | undefined {
  if (type === 'd') return { name, kind: 'folder' };
  return type === 'f'
    ? { name, kind: 'file', version: { bytes, modifiedMs: Number(modified) * 1000 } }
    : undefined;
}
