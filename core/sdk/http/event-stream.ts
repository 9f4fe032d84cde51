/**
 * Server-sent events for a plugin's route. The stream ends when the client leaves or the HTTP generation is
 * replaced; the browser then reconnects by itself. Whoever may not have it any more is told so by an event `refused`.
 * What is sent in one go leaves as one piece, since hundreds of small ones for each of many readers would keep the
 * daemon busy. A slow reader cannot fill memory: only the newest event of each name waits for it.
 */
import { Readable } from 'node:stream';
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';

export interface StreamEvent {
  readonly event: string;
  /**
   * Events of which this is equal replace each other until they leave, which takes long where the reader is slow.
   * Default: the event's name.
   */
  readonly replaces?: string;
  /**
   * Those of one name that leave one behind the other are one event, with their data in lines: hundreds of events
   * keep a browser busy.
   */
  readonly joins?: boolean;
  readonly data: string;
  readonly id?: string;
}

export interface EventSink {
  /** Dropped silently once the stream has ended. */
  send(event: StreamEvent): void;
  /** All of them in one go. The same list for many readers is encoded once, and leaves as the same bytes. */
  sendAll(events: readonly StreamEvent[]): void;
  end(): void;
}

export interface EventStreamOptions {
  readonly retryMs?: number;
  readonly heartbeatMs?: number;
  /** A reader for whom more than this is waiting is disconnected. */
  readonly maxWaitingBytes?: number;
}

const RETRY_MS = 2_000;
const HEARTBEAT_MS = 20_000;
const MAX_WAITING_BYTES = 4 * 1024 * 1024;
const READ_AHEAD_BYTES = 16 * 1024;
/** Most that leaves as one piece, beside a single longer event. */
const PIECE_BYTES = 256 * 1024;
/** How long the end of a stream may take to reach somebody who may not have it any more. */
const FAREWELL_MS = 1_000;

/** An empty line ends it. */
interface Encoded {
  readonly head: string;
  readonly body: string;
  readonly joins: boolean;
}

/** One event often goes to many readers. */
const encoded = new WeakMap<StreamEvent, Encoded>();

function encodedOnce(event: StreamEvent): Encoded {
  const known = encoded.get(event);
  if (known !== undefined) return known;
  const made = encode(event);
  encoded.set(event, made);
  return made;
}

function encode({ event, data, id, joins = false }: StreamEvent): Encoded {
  const position = id === undefined ? '' : `id: ${id.replaceAll(/[\r\n]/g, ' ')}\n`;
  const name = `event: ${event.replaceAll(/[\r\n]/g, ' ')}\n`;
  const lines = data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('');
  return joins
    ? { head: name, body: lines + position, joins }
    : { head: position + name, body: lines, joins };
}

/** What is no event. */
function plain(text: string): Encoded {
  return { head: '', body: `${text}\n`, joins: false };
}

function lengthOf({ head, body }: Encoded): number {
  return head.length + body.length;
}

function behind(before: Encoded | undefined, { head, body, joins }: Encoded): string {
  if (before === undefined) return head + body;
  return joins && before.joins && head === before.head ? body : `\n${head}${body}`;
}

/** Events that leave together: what a reader gets who has nothing waiting. */
interface Piece {
  readonly events: readonly StreamEvent[];
  readonly bytes: Buffer;
}

const pieces = new WeakMap<readonly StreamEvent[], readonly Piece[]>();

/** Events that replace each other are not looked for: a list has each once. */
function piecesOf(events: readonly StreamEvent[]): readonly Piece[] {
  const known = pieces.get(events);
  if (known) return known;
  const made: Piece[] = [];
  let at = 0;
  while (at < events.length) {
    const from = at;
    let text = '';
    let before: Encoded | undefined;
    while (at < events.length && text.length < PIECE_BYTES) {
      const next = encodedOnce(events[at] as StreamEvent);
      text += behind(before, next);
      before = next;
      at += 1;
    }
    made.push({ events: events.slice(from, at), bytes: Buffer.from(`${text}\n`) });
  }
  pieces.set(events, made);
  return made;
}

function nameOf({ event, replaces = event }: StreamEvent): string {
  return replaces;
}

class EventReadable extends Readable {
  readonly #waiting = new Map<string, Encoded>();
  readonly #maxWaitingBytes: number;
  #waitingBytes = 0;
  #hungry = true;
  #ended = false;
  #isDue = false;

  constructor(maxWaitingBytes: number) {
    super({ highWaterMark: READ_AHEAD_BYTES, encoding: undefined });
    this.#maxWaitingBytes = maxWaitingBytes;
  }

  put(name: string, event: Encoded): void {
    if (this.#ended || this.destroyed) return;
    this.#forget(name);
    this.#waiting.set(name, event);
    this.#waitingBytes += lengthOf(event);
    if (this.#waitingBytes > this.#maxWaitingBytes) this.#flush();
    if (this.#waitingBytes > this.#maxWaitingBytes) this.finish();
    else this.#flushSoon();
  }

  /** At once where nothing waits before it; a reader who is slow gets what is newest of it later. */
  putAll(events: readonly StreamEvent[]): void {
    for (const piece of piecesOf(events)) {
      if (this.#ended || this.destroyed) return;
      if (this.#hungry && this.#waiting.size === 0) this.#hungry = this.push(piece.bytes);
      else for (const event of piece.events) this.put(nameOf(event), encodedOnce(event));
    }
  }

  /** Drops what the reader was too slow for; `farewell` is the last text that it gets. */
  finish(farewell?: string): void {
    if (this.#ended) return;
    this.#flush();
    this.#ended = true;
    this.#waiting.clear();
    if (farewell !== undefined) this.push(farewell);
    this.push(null);
  }

  override _read(): void {
    this.#hungry = true;
    this.#flush();
  }

  #forget(name: string): void {
    const known = this.#waiting.get(name);
    if (known === undefined) return;
    this.#waitingBytes -= lengthOf(known);
    this.#waiting.delete(name);
  }

  #flushSoon(): void {
    if (this.#isDue) return;
    this.#isDue = true;
    queueMicrotask(() => {
      this.#isDue = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (this.#hungry && !this.#ended && !this.destroyed && this.#waiting.size > 0)
      this.#hungry = this.push(this.#take());
  }

  #take(): string {
    let piece = '';
    let before: Encoded | undefined;
    for (const [name, event] of this.#waiting) {
      this.#forget(name);
      piece += behind(before, event);
      before = event;
      if (piece.length >= PIECE_BYTES) break;
    }
    return `${piece}\n`;
  }
}

/**
 * Answers a request with an event stream. `start` gets the sink and returns the clean-up, which is called
 * exactly once, however the stream ends.
 */
export function eventStream(
  request: Request,
  h: ResponseToolkit,
  start: (sink: EventSink) => () => void,
  options: EventStreamOptions = {},
): ResponseObject {
  const { endOfGeneration, clock } = request.server.app;
  const stream = new EventReadable(options.maxWaitingBytes ?? MAX_WAITING_BYTES);
  const retry = `retry: ${options.retryMs ?? RETRY_MS}`;
  stream.put(' retry', plain(retry));

  let cancelBeat = (): void => undefined;
  const beat = (): void => {
    stream.put(' beat', plain(': still here'));
    cancelBeat = clock.after(options.heartbeatMs ?? HEARTBEAT_MS, beat);
  };
  cancelBeat = clock.after(options.heartbeatMs ?? HEARTBEAT_MS, beat);

  const end = (): void => stream.finish();
  const endWithGeneration = (): void => stream.finish(`${retry}\n\n`);
  let cancelCut = (): void => undefined;
  // A stream that is cut is an error in the browser's console.
  request.app.endAnswer = () => {
    stream.finish('event: refused\ndata:\n\n');
    cancelCut();
    if (!stream.closed) cancelCut = clock.after(FAREWELL_MS, () => void request.raw.req.socket.destroy());
  };
  let release = (): void => undefined;
  stream.once('close', () => {
    cancelBeat();
    cancelCut();
    endOfGeneration.removeEventListener('abort', endWithGeneration);
    release();
  });
  try {
    release = start({
      send: (event) => stream.put(nameOf(event), encodedOnce(event)),
      sendAll: (events) => stream.putAll(events),
      end,
    });
  } catch (error) {
    stream.destroy();
    throw error;
  }
  if (endOfGeneration.aborted) endWithGeneration();
  else endOfGeneration.addEventListener('abort', endWithGeneration, { once: true });
  return h
    .response(stream)
    .type('text/event-stream')
    .header('cache-control', 'no-store')
    .header('x-accel-buffering', 'no');
}
