import { posix } from 'node:path';
import { createSerialQueue, unlessAborted } from 'mountkeeper';
import type { RefreshResult } from 'mountkeeper';
import { createRcClient } from './control/remote-control.ts';
import type { RcAddress, RcClient } from './control/remote-control.ts';
import { inPlainWords } from './error-messages.ts';

/** Folders read in parallel, one call each, when reading all of them in one call failed. */
const AT_ONCE = 4;
export const NOT_THERE = /(directory|object) not found|file does not exist|no such file or directory/i;
/** What rclone says of a file. */
export const NO_FOLDER = 'invalid argument';
/** After so many failures in a row the remote itself must be failing, not its folders. */
const FAILURES_IN_A_ROW = 8;

export interface RefreshSource {
  readonly address: RcAddress;
  /** The remote in rclone's notation. */
  readonly fs: string;
  /** Aborted with the mount. */
  readonly end: AbortSignal;
  /** Wraps each refresh, of one folder or of any, until its real end; or rejects. */
  readonly around: <T>(refresh: () => Promise<T>, folder?: string) => Promise<T>;
}

export type Refresher = (
  path: string,
  options: { readonly recursive: boolean; readonly signal: AbortSignal },
) => Promise<RefreshResult>;

/** `end` aborts the calls; `signal` only keeps further ones from starting. */
export interface Call {
  readonly rc: RcClient;
  readonly fs: string;
  readonly end: AbortSignal;
  readonly signal: AbortSignal;
}
interface Failure {
  readonly path: string;
  readonly reason: string;
}

/**
 * Refreshes listings through `vfs/refresh`. A plain call holds the folder's lock while it asks the remote,
 * and `vfs/stats` waits for that lock: for the whole time-out when the NAS hangs. So each folder is first
 * listed without the mount, and the mount reads it only once the remote is known to answer; the recursive
 * form takes the lock only after it has listed. One unreadable folder makes the recursive form fail for all
 * of them (1.75 then refreshes none): in that case each folder is read on its own. rclone goes on with a
 * call whose client has gone: whoever gives up is let go at once, but the next refresh waits, and what
 * `around` guards stays guarded, until that call has ended.
 */
export function createRefresher(source: RefreshSource): Refresher {
  const turns = createSerialQueue();
  return (path, { recursive, signal }) => {
    const folder = path
      .split('/')
      .filter((name) => name !== '')
      .join('/');
    const refreshing = turns.run(async () => {
      // Given up while it waited.
      signal.throwIfAborted();
      return source.around(
        () => refreshed(folder, recursive, { ...source, signal }),
        recursive ? undefined : folder,
      );
    });
    return unlessAborted(signal, refreshing);
  };
}

async function refreshed(
  folder: string,
  isDeep: boolean,
  { address, ...call }: Omit<Call, 'rc'> & { readonly address: RcAddress },
): Promise<RefreshResult> {
  stopIfEnded(call);
  // Its own connection, so that the figures never wait behind it.
  const rc = createRcClient(address);
  try {
    return await (isDeep ? refreshTree : refreshOne)(folder, { ...call, rc });
  } finally {
    rc.close();
  }
}

async function refreshOne(folder: string, call: Call): Promise<RefreshResult> {
  try {
    await list(folder, untilGivenUp(call));
    stopIfEnded(call);
    await refresh(folder, call);
    return { ok: 1, failed: [] };
  } catch (error) {
    stopIfEnded(call);
    return { ok: 0, failed: [{ path: folder, reason: (error as Error).message }] };
  }
}

async function refreshTree(top: string, call: Call): Promise<RefreshResult> {
  try {
    const below = await list(top, untilGivenUp(call), { recurse: true });
    stopIfEnded(call);
    await refresh(top, call, { recursive: 'true' });
    return { ok: below.length + 1, failed: [] };
  } catch {
    // All at once does not work with every backend: folder by folder it says which ones fail.
    stopIfEnded(call);
    return walk(top, call);
  }
}

/** Parents before children: the mount learns of a new folder from its parent's listing. */
async function walk(top: string, call: Call): Promise<RefreshResult> {
  let ok = 0;
  let inARow = 0;
  const failed: Failure[] = [];
  const visit = async (folder: string): Promise<readonly string[]> => {
    const last = failed.at(-1);
    if (last && inARow >= FAILURES_IN_A_ROW) {
      failed.push({ path: folder, reason: last.reason });
      return [];
    }
    stopIfEnded(call);
    try {
      const children = await list(folder, untilGivenUp(call));
      stopIfEnded(call);
      await refresh(folder, call, children.length === 0 ? { recursive: 'true' } : {});
      ok += 1;
      inARow = 0;
      return children;
    } catch (error) {
      stopIfEnded(call);
      inARow += 1;
      failed.push({ path: folder, reason: (error as Error).message });
      return [];
    }
  };
  for (let level: readonly string[] = [top]; level.length > 0;) level = await mapSome(level, AT_ONCE, visit);
  return { ok, failed };
}

/** Rejects with the first failure, once no visit is under way any more. */
export async function mapSome(
  folders: readonly string[],
  atOnce: number,
  visit: (folder: string) => Promise<readonly string[]>,
): Promise<readonly string[]> {
  const found: string[] = [];
  const waiting = [...folders].reverse();
  const failures: unknown[] = [];
  const work = async (): Promise<void> => {
    try {
      for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop())
        found.push(...(await visit(folder)));
    } catch (error) {
      failures.push(error);
      waiting.length = 0;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  if (failures.length > 0) throw failures[0];
  return found;
}

/** A listing shows nothing in the mount: who gives up leaves nothing behind that the next one would wait for. */
function untilGivenUp(call: Call): Call {
  return { ...call, end: AbortSignal.any([call.end, call.signal]) };
}

function stopIfEnded({ end, signal }: Pick<Call, 'end' | 'signal'>): void {
  end.throwIfAborted();
  signal.throwIfAborted();
}

/** Paths of the folders in a folder, or of all folders below it; asked of the remote, not of the mount. */
export async function list(
  folder: string,
  { rc, fs, end }: Omit<Call, 'signal'>,
  options: { readonly recurse?: true } = {},
): Promise<readonly string[]> {
  const opt = { ...options, dirsOnly: true, noModTime: true, noMimeType: true };
  const answer = await rc
    .call<{ list?: { Path: string }[] | null }>('operations/list', { fs, remote: folder, opt }, end)
    .catch((error: unknown) => {
      throw inWords(error as Error);
    });
  return (answer.list ?? []).map((entry) => entry.Path);
}

/** Makes the mount read one folder again, or everything below it. */
export async function refresh(
  folder: string,
  call: Omit<Call, 'signal'>,
  options: { readonly recursive?: 'true' } = {},
): Promise<void> {
  const said = await saidOfRefresh(folder, call, options).catch((error: unknown) => {
    throw inWords(error as Error);
  });
  if (said !== 'OK') throw inWords(new Error(said));
}

/** No folder is likely to hold it, and nothing is amiss where one does. */
const NO_SUCH_NAME = '.mountkeeper-no-such-name';

/**
 * Makes the mount read one folder unless it has: rclone looks a name up in it. `refresh` drops the listing that is
 * there before it reads another, which is lost when the remote goes away in between.
 */
export async function readOnce(folder: string, call: Omit<Call, 'signal'>): Promise<void> {
  const said = await saidOfRefresh(posix.join(folder, NO_SUCH_NAME), call).catch((error: unknown) => {
    throw inWords(error as Error);
  });
  const isRead = said === 'OK' || said === NO_FOLDER || NOT_THERE.test(said);
  if (!isRead) throw inWords(new Error(said));
}

/** What rclone says of it: `OK`, or its error of this folder. */
export async function saidOfRefresh(
  folder: string,
  { rc, fs, end }: Omit<Call, 'signal'>,
  options: { readonly recursive?: 'true' } = {},
): Promise<string> {
  const parameters = { fs, ...(folder !== '' && { dir: folder }), ...options };
  const { result = {} } = await rc.call<{ result?: Record<string, string> }>('vfs/refresh', parameters, end);
  return Object.values(result)[0] ?? 'no answer';
}

export function inWords(error: Error): Error {
  return new Error(inPlainWords([error.message], 'the folder cannot be read'), { cause: error });
}
