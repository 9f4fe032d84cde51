import { posix } from 'node:path';
import { callFailure } from './error-messages.ts';
import { listAll } from './known-listings.ts';
import type { Call, KnownListings } from './known-listings.ts';
import { list, readOnce, refresh } from './refresh.ts';

const FORGOTTEN_AT_ONCE = 200;

export interface Renewing {
  /** Folders whose listings the mount has to hold; with each, all that it lies in. */
  readonly kept: ReadonlySet<string>;
  /** Nothing is in the mount that could be old. */
  readonly isEmpty: boolean;
  readonly known: KnownListings;
  /** Listings are compared: the backend lists the times of files at no further cost. */
  readonly isTimed: boolean;
  /** How many folders that are not kept may still be listed. Counted down. */
  readonly looks: { left: number };
  readonly call: Call;
}

/**
 * Has the mount's listing of a folder that is kept renewed; resolves with the folders in it that are kept, too. The
 * remote is asked first, beside the mount, so that nothing is dropped when it does not answer, nor where it lists what
 * the mount is known to hold.
 */
export async function renewFolder(folder: string, renewing: Renewing): Promise<readonly string[]> {
  const { call, isEmpty, isTimed, kept, known } = renewing;
  const { folders, digest } = await listAll(folder, call, isTimed);
  const ofThem = folders.filter((child) => kept.has(child));
  const others = folders.filter((child) => !kept.has(child));
  if (isEmpty) {
    // What a new rclone has read meanwhile, somebody has just asked for: before this listing, so it is not known.
    await readOnce(folder, call);
  } else if (known.holds(folder, digest) && hasLooks(others, renewing)) {
    // rclone may have dropped the listing since; where it has not, this asks nobody.
    await readOnce(folder, call);
    await forgetInPlace(others, call);
  } else {
    known.note(folder, digest);
    await forget(
      others.map((path) => ['dir', path]),
      call,
    );
    // rclone reads such a one before it drops what it has; any other is lost when the NAS goes away in between.
    await refresh(folder, call, folders.length === 0 ? { recursive: 'true' } : {});
  }
  return ofThem;
}

function hasLooks(others: readonly string[], { looks }: Renewing): boolean {
  if (others.length > looks.left) return false;
  looks.left -= others.length;
  return true;
}

/**
 * Forgets these folders and leaves alone the listing of the one that they lie in, which rclone drops with each folder
 * in it that it is to forget. So of these it drops the listings alone, by the name of a file in each, and forgets the
 * folders in them: their names it does not tell, but the remote does.
 */
async function forgetInPlace(folders: readonly string[], call: Call): Promise<void> {
  const going: Forgotten[] = [];
  for (const folder of folders) {
    const below = await list(folder, call).catch((error: unknown) => {
      // Nobody comes by it to what is in it, as long as it is gone or may not be read.
      if (call.end.aborted || callFailure(error as Error, call.end).remote === 'silent') throw error;
      return [];
    });
    going.push(['file', posix.join(folder, 'any')], ...below.map((path) => ['dir', path] as const));
  }
  await forget(going, call);
}

type Forgotten = readonly ['file' | 'dir', path: string];

async function forget(going: readonly Forgotten[], { rc, fs, end }: Call): Promise<void> {
  for (let start = 0; start < going.length; start += FORGOTTEN_AT_ONCE) {
    const named = going
      .slice(start, start + FORGOTTEN_AT_ONCE)
      .map(([kind, path], index) => [`${kind}${index}`, path] as const);
    await rc.call('vfs/forget', { fs, ...Object.fromEntries(named) }, end);
  }
}
