import type { IncomingMessage } from 'node:http';
import { answer } from '../answer.ts';
import type { Refusal } from '../answer.ts';
import { WAITING } from '../backend.ts';
import type { Begun } from '../backend.ts';
import { clock } from '../clock.ts';
import { Refused } from '../exchange.ts';
import type { Exchange } from '../exchange.ts';
import { preconditionFails } from '../requests/conditions.ts';
import { announcedBytes, ofUpload } from '../requests/headers.ts';
import { statOf } from '../requests/stat.ts';
import type { Found } from '../requests/stat.ts';
import { timed } from '../requests/times.ts';
import { UNREAD, UNREAD_MS } from '../upstream.ts';
import type { Journal, LeftUpload } from './journal.ts';
import { firstOf, firstOfBytes } from './first-bytes.ts';
import { pour } from './pour.ts';
import type { Pouring } from './pour.ts';
import { failure, wasRefused, wasUnread } from './put-answers.ts';
import type { PutTools } from './put-tools.ts';
import { RoomWatch } from './spool.ts';
import { takeBack } from './take-back.ts';
import type { Passed } from './take-back.ts';

const READY_MS = 12_000;
/** What was found before the body began is looked for once more after so long. */
const SLOW_MS = 1_000;

/**
 * Sends the body to the backend, where nothing or an empty file was found: a small one as a whole, once it has come to
 * its end; what is larger as it comes. What the share did not take since what lies below it could not be read is sent
 * once more, if there still is just what was found.
 */
export async function pass(exchange: Exchange, tools: PutTools, found: Found | undefined): Promise<void> {
  const { request, gone } = exchange;
  const lookedMs = clock.now();
  const small = await tools.small.collect(request);
  try {
    if (small) request.setTimeout(0);
    const first = small ? firstOfBytes(small.bytes) : await firstOf(request);
    // Its client is gone.
    if (!first || gone.aborted) return;
    if (clock.now() - lookedMs > SLOW_MS) await expectAsBefore(exchange, found);
    await passAndAnswer(exchange, tools, { body: small?.bytes ?? request, found, first });
  } finally {
    small?.release();
  }
}

async function passAndAnswer(exchange: Exchange, tools: PutTools, sent: Sent): Promise<void> {
  const { request, response, upstream, parts } = exchange;
  const came = await passUntilRead(exchange, tools, sent);
  request.setTimeout(0);
  if (came.outcome === 'taken') await tools.clearUp.forget(upstream, parts);
  answer(request, response, answerTo(came, request, sent.found));
  if (came.left) await tools.clearUp.now(upstream, came.left);
}

function answerTo(
  { outcome, status, unread }: CameOf,
  { headers }: IncomingMessage,
  found: Found | undefined,
): Refusal {
  if (outcome !== 'taken') return unread ? UNREAD : failure(status);
  const text = found ? '' : 'Created.';
  return { status: found ? 204 : 201, text, headers: timed(headers) };
}

async function passUntilRead(exchange: Exchange, tools: PutTools, sent: Sent): ReturnType<typeof passOnce> {
  let came = await passOnce(exchange, tools, sent);
  const end = (came.unread?.atMs ?? 0) + UNREAD_MS;
  while (came.outcome === 'none' && came.unread?.body && clock.now() < end) {
    await expectAsBefore(exchange, sent.found);
    came = await passOnce(exchange, tools, { ...sent, body: came.unread.body });
  }
  return came;
}

/** Rejects when somebody has put something in the place of an upload that was not taken, or not begun. */
async function expectAsBefore(
  { request: { headers }, upstream, parts, gone }: Exchange,
  before: Found | undefined,
): Promise<void> {
  const found = await statOf(upstream, parts, headers.host ?? '', gone);
  if (preconditionFails(headers, found))
    throw new Refused(412, 'The file is not in the state that was asked for any more.');
  const isSame = before ? found?.isFolder === false && found.bytes === 0 : found === undefined;
  if (!isSame) throw new Refused(502, failure(undefined).text);
}

/** What is sent in one try. */
interface Sent {
  readonly body: IncomingMessage | Buffer;
  readonly found: Found | undefined;
  readonly first: Buffer;
}

async function passOnce(
  { request, upstream, parts, path, gone }: Exchange,
  { journal, spool }: PutTools,
  { body, found, first }: Sent,
): Promise<CameOf & { readonly left: LeftUpload | undefined }> {
  const attached = await upstream.ready(clock.now() + READY_MS, gone, true);
  const headers = ofUpload(request.headers);
  const size = Buffer.isBuffer(body) ? body.length : announcedBytes(request.headers);
  const upload = await journal.begin({
    kind: found ? 'empty' : 'new',
    share: upstream.name,
    parts,
    headers,
    first: first.toString('base64'),
    ...(size !== undefined && { size }),
  });
  if (gone.aborted) {
    await journal.end(upload);
    gone.throwIfAborted();
  }
  const room = new RoomWatch(spool);
  let passedBytes = 0;
  const passing: Passing = {
    attached,
    body,
    path,
    headers,
    upload,
    first,
    onPiece: (bytes) => {
      journal.touch(upload);
      room.took(bytes);
    },
    onPassed: (bytes) => (passedBytes += bytes),
    passedBytes: () => passedBytes,
    stop: AbortSignal.any([attached.leaving, room.full]),
  };
  const came = await attached.track(passAndNote(passing, journal));
  if (!came.left) await journal.end(upload);
  return room.full.aborted ? { ...came, status: 507 } : came;
}

/** What is sent to the backend, and how far that has come. */
interface Passing extends Passed, Pouring {
  readonly body: Sent['body'];
  readonly headers: Readonly<Record<string, string>>;
}

/** `none`: nothing of it is left in the share. */
interface CameOf {
  readonly outcome: 'taken' | 'none' | 'torn';
  readonly status: number | undefined;
  readonly unread?: Unread | undefined;
  /** Set where it is torn: the backend writes nothing after its answer. */
  readonly answeredMs?: number;
}

/** The share could not be read. */
interface Unread {
  readonly atMs: number;
  /** What can be sent once more; undefined when it was streamed. */
  readonly body: IncomingMessage | Buffer | undefined;
}

/** What is torn is noted before its share is let go of: another proxy may be the next to see that. */
async function passAndNote(
  passing: Passing,
  journal: Journal,
): Promise<CameOf & { readonly left: LeftUpload | undefined }> {
  const came = await passBody(passing);
  const isTorn = came.outcome === 'torn';
  return {
    ...came,
    left: isTorn
      ? await journal.leave(passing.upload, { passedBytes: passing.passedBytes(), seenMs: came.answeredMs })
      : undefined,
  };
}

async function passBody(passing: Passing): Promise<CameOf> {
  const { isWhole, status, again } = await sendBody(passing);
  const answeredMs = clock.now();
  if (status === undefined) return { outcome: 'torn', status };
  if (isWhole && status < 300) return { outcome: 'taken', status };
  const unread = await unreadBy(passing, status, again);
  if (wasRefused(status)) return { outcome: 'none', status, unread };
  const isTakenBack = await takeBack(passing, { status, atMs: answeredMs });
  const told = status < 300 ? undefined : status;
  return { outcome: isTakenBack ? 'none' : 'torn', status: told, unread, answeredMs };
}

interface Answer {
  readonly isWhole: boolean;
  /** Undefined when there was none. */
  readonly status: number | undefined;
  /** What can be sent once more. */
  readonly again: Sent['body'] | undefined;
}

async function sendBody(passing: Passing): Promise<Answer> {
  const { attached, body, path, headers } = passing;
  const waiting = Buffer.isBuffer(body) ? {} : WAITING;
  // Without a length the body can be ended at any byte, and the backend has closed the file when it
  // answers.
  const call = { method: 'PUT', path, headers: { ...headers, 'transfer-encoding': 'chunked', ...waiting } };
  const begun = attached.begin(call, { fresh: true });
  const sent = await send(passing, begun);
  // No answer: nobody knows what came of it.
  const result = await begun.answered.catch(() => undefined);
  result?.resume();
  return { ...sent, status: result?.statusCode };
}

/** Resolves once the backend was sent all that it gets. */
async function send(
  passing: Passing,
  { request: sink, continued }: Begun,
): Promise<Pick<Answer, 'isWhole' | 'again'>> {
  const { body, onPassed } = passing;
  if (Buffer.isBuffer(body)) {
    onPassed(body.length);
    // In one piece with its head, so that nothing can interrupt it.
    sink.end(body);
    return { isWhole: true, again: body };
  }
  const isBegun = await continued;
  const isWhole = isBegun && (await pour(body, sink, passing));
  sink.end();
  return { isWhole, again: isBegun ? undefined : body };
}

async function unreadBy(
  { attached, stop }: Passing,
  status: number,
  body: Sent['body'] | undefined,
): Promise<Unread | undefined> {
  const atMs = clock.now();
  return !stop.aborted && (await wasUnread(attached, status)) ? { atMs, body } : undefined;
}
