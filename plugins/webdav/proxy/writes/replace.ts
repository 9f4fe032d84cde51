import { rm } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { answer } from '../answer.ts';
import { clock } from '../clock.ts';
import { Commit } from './commit.ts';
import { backendPath, passOn, Refused } from '../exchange.ts';
import type { Exchange } from '../exchange.ts';
import { at } from '../places.ts';
import { toBackend } from '../requests/headers.ts';
import type { PutTools } from './put-tools.ts';
import { NO_ROOM, receive, roomIn } from './spool.ts';
import type { Spooled } from './spool.ts';
import { SEEN_AFTER_MS, statOf } from '../requests/stat.ts';
import type { Found } from '../requests/stat.ts';

const SPARE_BYTES = 16 * 1_048_576;
/**
 * A backend rejects this depth only after it has checked locks and conditions, and before it does anything.
 */
const ONLY_ASKING = { depth: '1' } as const;
const WOULD_DO = 400;

/** A copy or move over a file with content. */
interface Replacing {
  readonly exchange: Exchange;
  readonly target: readonly string[];
  readonly targetPath: string;
  readonly source: Found;
  readonly begunMs: number;
  /** The place on a NAS that the share showed. */
  readonly place: string | undefined;
  /** Lock tokens that the client has sent. */
  readonly tokens: readonly string[];
}

/**
 * A backend deletes the target from the NAS before it copies or renames: if it died in between, nothing
 * would be left there. So the new content is written over the old file as an upload is, and a moved source
 * is deleted afterwards. Resolves with false when there is nothing to lose and the backend may do it.
 */
export async function replace(
  exchange: Exchange,
  target: readonly string[],
  tools: PutTools,
): Promise<boolean> {
  const { request, upstream, path } = exchange;
  const targetPath = backendPath(upstream, target, false);
  if (targetPath === path) return false;
  if (request.headers['overwrite'] === 'F') {
    // A backend that only could not look would take the target for missing, and replace it.
    if (await statOf(upstream, target, request.headers.host ?? '', exchange.gone))
      throw new Refused(412, 'There is something of that name already.');
    return false;
  }
  if ((await filesOf(exchange, target)) === undefined) return false;
  const [first = '', second = ''] = [path, targetPath].sort();
  const [doneFirst, doneSecond] = [await upstream.alone(first), await upstream.alone(second)];
  try {
    const { place } = upstream;
    const source = await filesOf(exchange, target);
    if (!source) return false;
    await run(
      { exchange, target, targetPath, source, begunMs: clock.now(), place, tokens: tokensIn(request) },
      tools,
    );
    return true;
  } finally {
    doneSecond();
    doneFirst();
  }
}

/**
 * The file to be copied or moved, if it is one and would replace another file with content. Rejects when there is
 * nothing to move: a backend finds that out after it has deleted the target. So it was with a client that asked
 * again since it had not heard that its move was done.
 */
async function filesOf(
  { request, upstream, parts, gone }: Exchange,
  target: readonly string[],
): Promise<Found | undefined> {
  const host = request.headers.host ?? '';
  const there = await statOf(upstream, target, host, gone);
  if (!there) return undefined;
  const source = await statOf(upstream, parts, host, gone);
  if (!source) throw new Refused(404, 'There is nothing of that name.');
  if (isSame(parts.join('/'), target.join('/'), source.etag === there.etag))
    throw new Refused(403, 'That is one and the same file.');
  return !source.isFolder && !there.isFolder && there.bytes > 0 ? source : undefined;
}

/**
 * Two Unicode forms of one name (a Mac's and another's) may be one file: deleting the target would then
 * delete the only copy.
 */
function isSame(one: string, other: string, looksSame: boolean): boolean {
  const [a, b] = [one.normalize('NFC'), other.normalize('NFC')];
  return a === b || (looksSame && a.toLowerCase() === b.toLowerCase());
}

async function run(replacing: Replacing, tools: PutTools): Promise<void> {
  const { exchange, target, targetPath } = replacing;
  const { request, response, upstream } = exchange;
  const refused = await refusal(exchange, targetPath);
  if (refused) return passOn(refused, exchange);
  const body = await fetch(replacing, tools);
  const headers = await headersFor(replacing).catch(async (error: unknown) => {
    if ('file' in body) await rm(at(body.file), { force: true });
    throw error;
  });
  const commit = new Commit({
    upstream,
    parts: target,
    path: targetPath,
    headers,
    body,
    spool: tools.spool().folder,
    journal: tools.journal,
    place: replacing.place,
  });
  const failed = await commit.run();
  if (commit.left) {
    answer(request, response, failed ?? { status: 502, text: '' });
    return tools.clearUp.now(upstream, commit.left);
  }
  if (failed) return answer(request, response, failed);
  await tools.clearUp.forget(upstream, target);
  if (request.method === 'MOVE') await takeAway(replacing, tools);
  answer(request, response, { status: 204, text: '' });
}

/** The backend's refusal because of a lock or a failed condition, if any. */
async function refusal(
  { request, upstream, path }: Exchange,
  targetPath: string,
): Promise<IncomingMessage | undefined> {
  const { host = 'localhost' } = request.headers;
  const headers = {
    ...toBackend(request.headers),
    ...ONLY_ASKING,
    overwrite: 'T',
    destination: `http://${host}${targetPath}`,
    'content-length': 0,
  };
  const answered = await upstream.ask({ method: request.method ?? '', path, headers });
  if (answered.statusCode !== WOULD_DO) return answered;
  answered.resume();
  return undefined;
}

/**
 * The client's tokens, if the target has a lock: a backend treats a token for an unlocked file as an error.
 */
async function key(
  { exchange: { request, upstream }, tokens }: Replacing,
  from: string,
  to: string,
): Promise<{ if?: string }> {
  if (tokens.length === 0) return {};
  const { host = 'localhost' } = request.headers;
  const answered = await upstream.ask({
    method: 'COPY',
    path: from,
    headers: {
      host,
      ...ONLY_ASKING,
      overwrite: 'T',
      destination: `http://${host}${to}`,
      'content-length': 0,
    },
  });
  answered.resume();
  return answered.statusCode === 423 ? { if: tokens.map((token) => `(<${token}>)`).join(' ') } : {};
}

function tokensIn({ headers }: IncomingMessage): readonly string[] {
  // No bracket within brackets: otherwise thousands of opening brackets would make the search quadratic and
  // block everybody.
  const lists = [...String(headers['if'] ?? '').matchAll(/\(([^()]*)\)/g)].map(([, list = '']) => list);
  return [
    ...new Set(lists.flatMap((list) => [...list.matchAll(/<([^<>]+)>/g)].map(([, token = '']) => token))),
  ];
}

async function fetch(
  { exchange: { request, upstream, path, gone }, source }: Replacing,
  { spool }: PutTools,
): Promise<Spooled> {
  const { folder, minFreeBytes } = spool();
  if (source.bytes + SPARE_BYTES > (await roomIn(folder, minFreeBytes))) throw new Refused(507, NO_ROOM);
  const answered = await upstream.ask(
    { method: 'GET', path, headers: { host: request.headers.host ?? 'localhost' } },
    { signal: gone },
  );
  const body = answered.statusCode === 200 ? await receive(answered, folder, minFreeBytes) : undefined;
  const size = body && ('bytes' in body ? body.bytes.length : body.size);
  if (body && size === source.bytes) return body;
  if (body && 'file' in body) await rm(at(body.file), { force: true });
  throw new Refused(502, 'The file could not be read to its end; nothing was changed.');
}

/** Headers for writing the new content. Rejects when the source has changed since it was read. */
async function headersFor(replacing: Replacing): Promise<Readonly<Record<string, string>>> {
  const {
    exchange: { request, upstream, path, gone },
    targetPath,
    begunMs,
  } = replacing;
  // A server beside a mount sees what other protocols write up to a second late: it may have given an old
  // length of the file.
  if (upstream.attached?.backend.behind !== undefined)
    await clock.sleep(begunMs + SEEN_AFTER_MS - clock.now());
  const { modifiedMs } = await expectUnchanged(
    replacing,
    'The file was changed while it was read; nothing was done.',
  );
  // Until here nothing has changed.
  gone.throwIfAborted();
  const time = modifiedMs > 0 ? { 'x-oc-mtime': String(Math.floor(modifiedMs / 1_000)) } : {};
  return { host: request.headers.host ?? 'localhost', ...time, ...(await key(replacing, path, targetPath)) };
}

async function expectUnchanged(
  { exchange: { request, upstream, parts }, source, begunMs }: Replacing,
  sentence: string,
): Promise<Found> {
  const found = await statOf(upstream, parts, request.headers.host ?? 'localhost');
  // The ETag also changes when an upload to the NAS ends (which stores only whole seconds), or when a time
  // is set.
  const isUnchanged =
    found?.bytes === source.bytes && (found.etag === source.etag || found.modifiedMs + 1_000 < begunMs);
  if (!isUnchanged) throw new Refused(409, sentence);
  return found;
}

/** Deletes the source; what somebody has written there meanwhile stays. */
async function takeAway(replacing: Replacing, { clearUp }: PutTools): Promise<void> {
  const {
    exchange: { request, upstream, parts, path },
    targetPath,
  } = replacing;
  const host = request.headers.host ?? 'localhost';
  await expectUnchanged(replacing, 'The file was changed while it was moved; it stands in both places.');
  const answered = await upstream.ask(
    {
      method: 'DELETE',
      path,
      headers: { host, 'content-length': 0, ...(await key(replacing, targetPath, path)) },
    },
    { isRepeatable: true },
  );
  answered.resume();
  const status = answered.statusCode ?? 0;
  if (status >= 300 && status !== 404)
    throw new Refused(502, 'The file is in its new place, and could not be taken away from the old one.');
  await clearUp.forget(upstream, parts);
}
