/** Lists folders of a mounted share, with a helper process and a deadline. */
import { fileURLToPath } from 'node:url';
import type { Mount, PluginContext, UnsavedFile } from 'mountkeeper';
import type { ListAnswer, ListRequest } from './list-process.ts';

const HELPER = fileURLToPath(new URL('./list-process.js', import.meta.url));
/** An admin may have given a folder in the share to somebody. */
const READS_ALL = ['dac_read_search'];
const LONGEST_MS = 15_000;
const QUEUE_MS = 5_000;
const MOST_OUTPUT_BYTES = 4 * 1024 * 1024;

/** Thrown with words for the log; the page has its own. */
export class NotMounted extends Error {}

/** Rejects with a plain sentence, or NotMounted. */
export async function listFolder(ctx: PluginContext, share: string, folder: string): Promise<ListAnswer> {
  const live = ctx
    .use('shares')
    .list()
    .find(({ spec }) => spec.share.name === share);
  const access = live?.mount?.cacheAccess?.();
  if (!access) throw new NotMounted('the share is not mounted now');
  const request: ListRequest = { access, folder, queued: await queuedIn(ctx, live?.mount, folder) };
  // The request contains credentials, so it is passed through a pipe, never on the command line.
  const { code, stdout, stderr } = await ctx.use('processes').run({
    command: process.execPath,
    args: [HELPER],
    capabilities: READS_ALL,
    input: JSON.stringify(request),
    timeoutMs: LONGEST_MS,
    signal: ctx.signal,
    maxOutputBytes: MOST_OUTPUT_BYTES,
  });
  if (code !== 0) throw new Error(stderr.trim().slice(-500) || 'the folder could not be listed');
  return JSON.parse(stdout) as ListAnswer;
}

/** Files directly in the folder that are not on the remote; empty where nobody can tell. */
async function queuedIn(
  ctx: PluginContext,
  mount: Mount | undefined,
  folder: string,
): Promise<readonly UnsavedFile[]> {
  const clock = ctx.use('clock');
  const asked = mount?.uploadQueue?.(clock.deadline(QUEUE_MS));
  // Without it the badges say less, and nothing that is wrong about the remote.
  const queue = (await asked?.catch(() => undefined)) ?? [];
  const start = folder === '' ? '' : `${folder}/`;
  return queue
    .filter(({ path }) => path.startsWith(start) && !path.slice(start.length).includes('/'))
    .map(({ path, bytes, isUploading, failures, changedAt }) => ({
      name: path.slice(start.length),
      bytes,
      modifiedMs: changedAt ?? clock.now(),
      state: isUploading ? 'uploading' : failures > 0 ? 'failed' : 'waiting',
    }));
}

/** A normalised path below the share; undefined for an invalid one. */
export function folderOf(given: string | undefined): string | undefined {
  const path = given ?? '';
  if (path.includes('\0') || path.length > 4_096 || path.split('/').includes('..')) return undefined;
  return path
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/');
}
