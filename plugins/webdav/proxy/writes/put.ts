import { mkdir, rm } from 'node:fs/promises';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { answer } from '../answer.ts';
import type { Refusal } from '../answer.ts';
import { clock } from '../clock.ts';
import type { ClearUp } from './clear-up.ts';
import { Commit } from './commit.ts';
import { WAITING } from '../backend.ts';
import { limitIdle, Refused } from '../exchange.ts';
import type { Exchange } from '../exchange.ts';
import { at } from '../places.ts';
import { toBackend } from '../requests/headers.ts';
import type { Journal, LeftUpload } from './journal.ts';
import { failure, wasRefused } from './put-answers.ts';
import { NO_ROOM, receive, roomIn, RoomWatch } from './spool.ts';
import { SEEN_AFTER_MS, statOf } from '../requests/stat.ts';
import type { Found } from '../requests/stat.ts';
import { preconditionFails } from '../requests/conditions.ts';
import { wantedTime } from '../requests/times.ts';
import { takeBack } from './take-back.ts';
import type { Passed } from './take-back.ts';

const READY_MS = 12_000;
const CONDITIONS = ['if-match', 'if-none-match', 'if-unmodified-since'] as const;

export interface PutTools {
  readonly journal: Journal;
  readonly spool: () => { readonly folder: string; readonly minFreeBytes: number };
  readonly clearUp: ClearUp;
}

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
  try {
    const found = await statOf(upstream, parts, request.headers.host ?? '', gone);
    if (found?.isFolder === true) throw new Refused(405, 'There is a folder of that name.');
    const failed = preconditionFails(request.headers, found);
    if (failed) throw new Refused(412, 'The file is not in the state that was asked for.');
    await checkRoom(request, tools);
    gone.throwIfAborted();
    if (exchange.expectsContinue) response.writeContinue();
    limitIdle(request);
    if (found && found.bytes > 0) await overwrite(exchange, tools, { found, atMs });
    else await pass(exchange, tools, found);
  } finally {
    done();
  }
}

async function checkRoom(request: IncomingMessage, { spool }: PutTools): Promise<void> {
  // Finder sends no length, but announces it in a header of its own.
  const length =
    Number(request.headers['content-length'] ?? request.headers['x-expected-entity-length']) || 0;
  const { folder, minFreeBytes } = spool();
  await mkdir(at(folder), { recursive: true, mode: 0o700 });
  if (length > (await roomIn(folder, minFreeBytes))) throw new Refused(507, NO_ROOM);
}

/** What was found before the body was received, and when. */
interface First {
  readonly found: Found;
  readonly atMs: number;
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
    headers: backendHeaders(request),
    body,
    spool: folder,
    journal: tools.journal,
  });
  const refusal = await commit.run();
  if (!refusal) await tools.clearUp.forget(upstream.name, parts);
  answer(request, response, refusal ?? { status: 204, text: '', headers: timed(exchange.request) });
  if (commit.left) await tools.clearUp.now(upstream, commit.left);
}

/** Receiving may take long: what the client made its condition is looked for once more. */
async function hasChanged(
  { request: { headers }, upstream, parts, gone }: Exchange,
  { found: before, atMs }: First,
): Promise<boolean> {
  if (!CONDITIONS.some((name) => headers[name] !== undefined)) return false;
  if (upstream.attached?.backend.behind !== undefined) await clock.sleep(SEEN_AFTER_MS);
  try {
    const found = await statOf(upstream, parts, headers.host ?? '', gone);
    // As when a file is replaced: the ETag changes also when an upload to the NAS ends, which stores whole seconds.
    const isSame =
      found?.bytes === before.bytes && (found.etag === before.etag || found.modifiedMs + 1_000 < atMs);
    return !isSame && preconditionFails(headers, found);
  } catch {
    // The share is away for a moment, for which the commit waits; or the client is, which is asked for next.
    return false;
  }
}

/** Confirms the modification time that the client wants, and that the backend was told with the file. */
function timed({ headers }: IncomingMessage): OutgoingHttpHeaders {
  return wantedTime(headers) === undefined ? {} : { 'x-oc-mtime': 'accepted' };
}

/** Streams the body to the backend. */
async function pass(exchange: Exchange, tools: PutTools, found: Found | undefined): Promise<void> {
  const { request, response, upstream, parts, path, gone } = exchange;
  const attached = await upstream.ready(clock.now() + READY_MS, gone, true);
  const headers = backendHeaders(request);
  const upload = await tools.journal.begin({
    kind: found ? 'empty' : 'new',
    share: upstream.name,
    parts,
    headers,
  });
  const room = new RoomWatch(tools.spool);
  let passedBytes = 0;
  const onPiece = (bytes: number): void => {
    tools.journal.touch(upload);
    room.took(bytes);
  };
  const passing: Passing = {
    attached,
    body: request,
    path,
    headers,
    upload,
    onPiece,
    onPassed: (bytes) => (passedBytes += bytes),
    passedBytes: () => passedBytes,
    stop: AbortSignal.any([attached.leaving, room.full]),
  };
  const { outcome, status, left } = await attached.track(passAndNote(passing, tools.journal));
  request.setTimeout(0);
  if (!left) await tools.journal.end(upload);
  if (outcome === 'taken') await tools.clearUp.forget(upstream.name, parts);
  const taken = (headers: OutgoingHttpHeaders): Refusal => ({
    status: found ? 204 : 201,
    text: found ? '' : 'Created.',
    headers,
  });
  answer(
    request,
    response,
    outcome === 'taken' ? taken(timed(exchange.request)) : failure(room.full.aborted ? 507 : status),
  );
  if (left) await tools.clearUp.now(upstream, left);
}

/** What is streamed to the backend, and how far that has come. */
interface Passing extends Passed {
  readonly body: IncomingMessage;
  readonly headers: Readonly<Record<string, string>>;
  readonly onPiece: (bytes: number) => void;
  /** Of what has gone on to the backend. */
  readonly onPassed: (bytes: number) => void;
  /** Aborts when the upload must be undone. */
  readonly stop: AbortSignal;
}

/** `none`: nothing of it is left in the share. */
interface CameOf {
  readonly outcome: 'taken' | 'none' | 'torn';
  readonly status: number | undefined;
}

/** What is torn is noted before its share is let go of: another proxy may be the next to see that. */
async function passAndNote(
  passing: Passing,
  journal: Journal,
): Promise<CameOf & { readonly left: LeftUpload | undefined }> {
  const came = await passBody(passing);
  const isTorn = came.outcome === 'torn';
  return { ...came, left: isTorn ? await journal.leave(passing.upload, passing.passedBytes()) : undefined };
}

async function passBody(passing: Passing): Promise<CameOf> {
  const { attached, body, path, headers, onPiece, onPassed, stop } = passing;
  // Without a length the body can be ended at any byte, and the backend has closed the file when it
  // answers.
  const call = { method: 'PUT', path, headers: { ...headers, 'transfer-encoding': 'chunked', ...WAITING } };
  const { request: sink, answered, continued } = attached.begin(call, { fresh: true });
  const isWhole = (await continued) && (await pour(body, sink, { onPiece, onPassed, stop }));
  sink.end();
  // No answer: nobody knows what came of it, so it counts as torn below.
  const result = await answered.catch(() => undefined);
  result?.resume();
  const status = result?.statusCode;
  if (wasRefused(status)) return { outcome: 'none', status };
  if (status === undefined) return { outcome: 'torn', status };
  if (isWhole && status < 300) return { outcome: 'taken', status };
  return {
    outcome: (await takeBack(passing, status)) ? 'none' : 'torn',
    status: status < 300 ? undefined : status,
  };
}

/**
 * Resolves with true when the client has sent everything. Ends early when the backend closes the
 * connection, or on `stop`.
 */
function pour(
  from: IncomingMessage,
  to: ClientRequest,
  { onPiece, onPassed, stop }: Pick<Passing, 'onPiece' | 'onPassed' | 'stop'>,
): Promise<boolean> {
  return new Promise((resolve) => {
    // Data that was received but not read is lost with the connection.
    if (from.destroyed || stop.aborted) return resolve(false);
    let isOver = false;
    const finish = (isWhole: boolean): void => {
      isOver = true;
      stop.removeEventListener('abort', cut);
      resolve(isWhole);
    };
    const cut = (): void => finish(false);
    stop.addEventListener('abort', cut, { once: true });
    from.on('data', (piece: Buffer) => {
      onPiece(piece.length);
      if (isOver || to.destroyed) return;
      onPassed(piece.length);
      if (to.write(piece)) return;
      from.pause();
      to.once('drain', () => from.resume());
    });
    from.once('end', () => finish(from.complete));
    from.once('close', () => finish(false));
    to.once('response', () => finish(false));
    to.once('close', () => finish(false));
  });
}

/** Kept with the upload: a file that its writer has locked can be repaired only with the lock's token. */
function backendHeaders({ headers }: IncomingMessage): Readonly<Record<string, string>> {
  const {
    host,
    'content-type': type,
    if: condition,
    'lock-token': token,
    'x-oc-mtime': time,
  } = toBackend(headers);
  const kept = { host, 'content-type': type, if: condition, 'lock-token': token, 'x-oc-mtime': time };
  return Object.fromEntries(
    Object.entries(kept).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
