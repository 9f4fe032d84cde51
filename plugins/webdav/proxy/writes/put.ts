import { mkdir, rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { answer } from '../answer.ts';
import { clock } from '../clock.ts';
import { Commit } from './commit.ts';
import { limitIdle, Refused } from '../exchange.ts';
import type { Exchange } from '../exchange.ts';
import { at } from '../places.ts';
import { announcedBytes, ofUpload } from '../requests/headers.ts';
import { pass } from './pass.ts';
import type { PutTools } from './put-tools.ts';
import { NO_ROOM, receive, roomIn } from './spool.ts';
import { SEEN_AFTER_MS, statOf } from '../requests/stat.ts';
import type { Found } from '../requests/stat.ts';
import { preconditionFails } from '../requests/conditions.ts';
import { timed } from '../requests/times.ts';

const CONDITIONS = ['if-match', 'if-none-match', 'if-unmodified-since'] as const;

/**
 * A new file is streamed to the backend and deleted again when the upload is interrupted. A body that would
 * overwrite a file with content is first received completely: a client that disconnects leaves the file as
 * it was.
 */
export async function put(exchange: Exchange, tools: PutTools): Promise<void> {
  const { request, response, upstream, parts, gone } = exchange;
  if (exchange.path.endsWith('/')) throw new Refused(405, 'A folder is no file.');
  if (request.headers['content-range'] !== undefined)
    throw new Refused(400, 'Parts of a file cannot be written; send the whole file.');
  const done = await upstream.alone(exchange.path);
  const atMs = clock.now();
  const { place } = upstream;
  try {
    const found = await statOf(upstream, parts, request.headers.host ?? '', gone);
    if (found?.isFolder === true) throw new Refused(405, 'There is a folder of that name.');
    const failed = preconditionFails(request.headers, found);
    if (failed) throw new Refused(412, 'The file is not in the state that was asked for.');
    await checkRoom(request, tools);
    gone.throwIfAborted();
    if (exchange.expectsContinue) response.writeContinue();
    limitIdle(request);
    if (found && found.bytes > 0) await overwrite(exchange, tools, { found, atMs, place });
    else await pass(exchange, tools, found);
  } finally {
    done();
  }
}

async function checkRoom(request: IncomingMessage, { spool }: PutTools): Promise<void> {
  const length = announcedBytes(request.headers) ?? 0;
  const { folder, minFreeBytes } = spool();
  await mkdir(at(folder), { recursive: true, mode: 0o700 });
  if (length > (await roomIn(folder, minFreeBytes))) throw new Refused(507, NO_ROOM);
}

/** What was found before the body was received, and when. */
interface First {
  readonly found: Found;
  readonly atMs: number;
  /** The place on a NAS that the share showed. */
  readonly place: string | undefined;
}

async function overwrite(exchange: Exchange, tools: PutTools, first: First): Promise<void> {
  const { request, response, upstream, parts, path, gone } = exchange;
  const { folder, minFreeBytes } = tools.spool();
  const body = await receive(request, folder, minFreeBytes);
  request.setTimeout(0);
  if (!body) return;
  const drop = (): Promise<void> | undefined =>
    'file' in body ? rm(at(body.file), { force: true }) : undefined;
  if (gone.aborted) return drop();
  if (await hasChanged(exchange, first)) {
    await drop();
    throw new Refused(412, 'The file is not in the state that was asked for any more.');
  }
  if (gone.aborted) return drop();
  const commit = new Commit({
    upstream,
    parts,
    path,
    headers: ofUpload(request.headers),
    body,
    spool: folder,
    journal: tools.journal,
    place: first.place,
    isAsBefore: async () => isAsFirst(await statOf(upstream, parts, request.headers.host ?? ''), first),
  });
  const refusal = await commit.run();
  if (!refusal) await tools.clearUp.forget(upstream, parts);
  answer(request, response, refusal ?? { status: 204, text: '', headers: timed(request.headers) });
  if (commit.left) await tools.clearUp.now(upstream, commit.left);
}

/** Receiving may take long: what the client made its condition is looked for once more. */
async function hasChanged(
  { request: { headers }, upstream, parts, gone }: Exchange,
  first: First,
): Promise<boolean> {
  if (!CONDITIONS.some((name) => headers[name] !== undefined)) return false;
  if (upstream.attached?.backend.behind !== undefined) await clock.sleep(SEEN_AFTER_MS);
  try {
    const found = await statOf(upstream, parts, headers.host ?? '', gone);
    return !isAsFirst(found, first) && preconditionFails(headers, found);
  } catch {
    // The share is away for a moment, for which the commit waits; or the client is, which is asked for next.
    return false;
  }
}

/** As when a file is replaced: the ETag changes also when an upload to the NAS ends, which stores whole seconds. */
function isAsFirst(found: Found | undefined, { found: before, atMs }: First): boolean {
  return found?.bytes === before.bytes && (found.etag === before.etag || found.modifiedMs + 1_000 < atMs);
}
