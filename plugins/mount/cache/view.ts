/**
 * Lets another process look into a mount's cache and at the remote behind it. This module is loaded by that
 * process.
 */
import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import type { RequestOptions } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { sizeBytes } from 'mountkeeper';
import type { CacheView } from 'mountkeeper';
import { freeBytes } from './free-bytes.ts';
import { treesOf } from './metadata.ts';
import type { CacheTrees } from './metadata.ts';
import { bytesInCache, holdsContent, isWholeInCache } from './completeness.ts';
import { inPlainWords } from '../rclone/error-messages.ts';
import { unsavedIn } from './unsaved.ts';
import type { QueuedFile } from './unsaved.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { request } = process.getBuiltinModule('node:http');

/** Requested by name, so that the answer never comes from a cached listing; no real file has this name. */
const CHECKED_NAME = '.mountkeeper-reachable';
/** Files read in parallel ranges have all of their ranges under way at once, even if their reader stops. */
const AHEAD_OF_RANGES_BYTES = 48 * 1_048_576;
/** A single stream ends with its reader. */
const AHEAD_OF_STREAMS_BYTES = 256 * 1_048_576;
/**
 * Part of a limit that is left unused: others read and write meanwhile, and rclone checks only every 15 s.
 */
const SPARE_PART = 0.02;

/** What `cacheAccess` of the active mount gives. */
export interface CacheViewParameters {
  readonly port: number;
  readonly socket?: string;
  readonly user: string;
  readonly password: string;
  readonly fs: string;
  readonly cacheDir: string;
  readonly remotePath: string;
  readonly pid: number;
  /** The upper folder of a share with a write layer: files in it are read from there. */
  readonly upper?: string;
}

interface RawEntry {
  Name: string;
  Size: number;
  ModTime: string;
  IsDir: boolean;
}
type Ask = <T>(call: string, parameters: object) => Promise<T>;

export function openCacheView(given: Readonly<Record<string, string | number>>): CacheView {
  const at = given as unknown as CacheViewParameters;
  const ask = asker(at);
  const all = treesOf(at.cacheDir);
  const trees: CacheTrees = {
    data: join(all.data, at.remotePath),
    meta: join(all.meta, at.remotePath),
  };
  const flags = flagsOf(at.pid);
  const isWhole: CacheView['isWhole'] = (path, file) =>
    (at.upper !== undefined && isFile(join(at.upper, path))) || isWholeInCache(trees, path, file);
  return {
    aheadBytes:
      Number(flags.get('vfs-read-chunk-streams') ?? 0) > 1 ? AHEAD_OF_RANGES_BYTES : AHEAD_OF_STREAMS_BYTES,
    isWhole,
    holds: (path, bytes) => holdsContent(trees, path, bytes),
    list: async (folder) => {
      const { list } = await ask<{ list?: RawEntry[] | null }>('operations/list', {
        fs: at.fs,
        remote: folder,
        opt: { noMimeType: true },
      });
      const entries = list ?? [];
      return {
        folders: entries.filter((entry) => entry.IsDir).map((entry) => entry.Name),
        // Entries without a size, such as documents of some clouds, are generated when they are read.
        files: entries
          .filter((entry) => !entry.IsDir && entry.Size >= 0)
          .map((entry) => {
            const file = {
              name: entry.Name,
              bytes: entry.Size,
              modifiedMs: Date.parse(entry.ModTime),
            };
            const path = folder === '' ? entry.Name : `${folder}/${entry.Name}`;
            if (isWhole(path, file)) return { ...file, isCached: true };
            const cachedBytes = bytesInCache(trees, path, file);
            return {
              ...file,
              isCached: false,
              ...(cachedBytes > 0 && { cachedBytes }),
            };
          }),
      };
    },
    // What is clean stays in an upper folder, too, and the uploader's records are not at hand here.
    ...(at.upper === undefined && {
      unsaved: async (folder: string) => unsavedIn(trees.meta, folder, await queueOf(ask, at.fs)),
    }),
    roomBytes: () => roomBytes(at.cacheDir, all, flags),
    transfers: async () => {
      const { transferring } = await ask<{
        transferring?: { name: string; bytes?: number; dstFs?: string }[] | null;
      }>('core/stats', {});
      return (transferring ?? []).map(({ name, bytes, dstFs }) => ({
        path: name,
        bytes: bytes ?? 0,
        ...(dstFs !== undefined && { isUpload: true }),
      }));
    },
    answers: () =>
      ask('operations/stat', {
        fs: at.fs,
        remote: CHECKED_NAME,
        opt: { filesOnly: true },
      }).then(
        () => true,
        () => false,
      ),
  };
}

/** Empty where this rclone is too old to show its queue (before 1.68), or does not answer. */
async function queueOf(ask: Ask, fs: string): Promise<readonly QueuedFile[]> {
  try {
    return (await ask<{ queue?: readonly QueuedFile[] | null }>('vfs/queue', { fs })).queue ?? [];
  } catch {
    // What the cache records on the disk stays true.
    return [];
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

/**
 * Uses node:http, because listings may be far longer than the daemon's own client allows, and fetch()
 * cannot use unix sockets.
 */
function asker({ port, socket, user, password }: CacheViewParameters): Ask {
  const headers = { 'content-type': 'application/json' };
  const target = {
    ...(socket === undefined ? { host: '127.0.0.1', port } : { socketPath: socket }),
    auth: `${user}:${password}`,
    method: 'POST',
    headers,
  };
  return async <T>(call: string, parameters: object) => {
    const { status, body } = await post({ ...target, path: `/${call}` }, JSON.stringify(parameters)).catch(
      (cause: unknown) => Promise.reject(new Error('the mount does not answer', { cause })),
    );
    const answer = JSON.parse(body) as T & { error?: string };
    if (status !== 200) throw new Error(inPlainWords([answer.error ?? ''], 'the folder cannot be read'));
    return answer;
  };
}

function post(
  target: RequestOptions,
  content: string,
): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const asked = request(target, (answer) => {
      text(answer).then((body) => resolve({ status: answer.statusCode, body }), reject);
    });
    asked.on('error', reject);
    asked.end(content);
  });
}

/** Flags of the running rclone: its limits may be older than the configuration. */
function flagsOf(pid: number): ReadonlyMap<string, string> {
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  return new Map(
    words
      .filter((word) => word.startsWith('--'))
      .map((word) => {
        const [name = '', ...value] = word.slice(2).split('=');
        return [name, value.join('=')] as const;
      }),
  );
}

async function roomBytes(
  cacheDir: string,
  trees: CacheTrees,
  flags: ReadonlyMap<string, string>,
): Promise<number> {
  const limit = limitBytes(flags.get('vfs-cache-max-size'));
  const onDisk = (await freeBytes(cacheDir)) - limitBytes(flags.get('vfs-cache-min-free-space'));
  if (limit === 0) return Math.max(0, onDisk);
  return Math.max(0, Math.min(onDisk, limit * (1 - SPARE_PART) - (await usedBytes(trees.data))));
}

/** 0 for none. */
function limitBytes(text = 'off'): number {
  return text === 'off' ? 0 : sizeBytes(text);
}

async function usedBytes(folder: string): Promise<number> {
  // Files vanish while du runs; it then exits with an error, but counts the others.
  const { stdout } = await promisify(execFile)('du', ['-s', '-B1', '--', folder]).catch(
    (error: { stdout?: string }) => ({ stdout: error.stdout ?? '' }),
  );
  return Number.parseInt(stdout, 10) || 0;
}
