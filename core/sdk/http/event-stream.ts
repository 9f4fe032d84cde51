/**
 * Server-sent events for a plugin's route. The stream ends when the client leaves or the HTTP generation is
 * replaced; the browser then reconnects by itself. A slow reader cannot fill memory: only the newest event
 * of each name waits for it.
 */
import { Readable } from 'node:stream';
import type { Request, ResponseObject, ResponseToolkit } from '@hapi/hapi';

export interface StreamEvent {
  /** Events of one name replace each other while the reader is slow. */
  readonly event: string;
  readonly data: string;
  readonly id?: string;
}

export interface EventSink {
  /** Dropped silently once the stream has ended. */
  send(event: StreamEvent): void;
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

function encode({ event, data, id }: StreamEvent): string {
  const lines = data
    .split(/\r\n|\r|\n/)
    .map((line) => `data: ${line}\n`)
    .join('');
  return (
    `${id === undefined ? '' : `id: ${id.replaceAll(/[\r\n]/g, ' ')}\n`}event: ` +
    `${event.replaceAll(/[\r\n]/g, ' ')}\n${lines}\n`
  );
}

class EventReadable extends Readable {
  readonly #waiting = new Map<string, string>();
  readonly #maxWaitingBytes: number;
  #hungry = true;
  #ended = false;

  constructor(maxWaitingBytes: number) {
    super({ highWaterMark: READ_AHEAD_BYTES, encoding: undefined });
    this.#maxWaitingBytes = maxWaitingBytes;
  }

  put(name: string, text: string): void {
    if (this.#ended || this.destroyed) return;
    this.#waiting.delete(name);
    this.#waiting.set(name, text);
    if (this.#waitingBytes() > this.#maxWaitingBytes) this.finish();
    else this.#flush();
  }

  /** Drops what waits; `farewell` is the last text that the reader gets. */
  finish(farewell?: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#waiting.clear();
    if (farewell !== undefined) this.push(farewell);
    this.push(null);
  }

  override _read(): void {
    this.#hungry = true;
    this.#flush();
  }

  #waitingBytes(): number {
    return [...this.#waiting.values()].reduce((sum, text) => sum + text.length, 0);
  }

  #flush(): void {
    for (const [name, text] of this.#waiting) {
      if (!this.#hungry || this.#ended) return;
      this.#waiting.delete(name);
      this.#hungry = this.push(text);
    }
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
  const retry = `retry: ${options.retryMs ?? RETRY_MS}\n\n`;
  stream.put(' retry', retry);

  let cancelBeat = (): void => undefined;
  const beat = (): void => {
    stream.put(' beat', ': still here\n\n');
    cancelBeat = clock.after(options.heartbeatMs ?? HEARTBEAT_MS, beat);
  };
  cancelBeat = clock.after(options.heartbeatMs ?? HEARTBEAT_MS, beat);

  const end = (): void => stream.finish();
  const endWithGeneration = (): void => stream.finish(retry);
  let release = (): void => undefined;
  stream.once('close', () => {
    cancelBeat();
    endOfGeneration.removeEventListener('abort', endWithGeneration);
    release();
  });
  try {
    release = start({ send: (event) => stream.put(event.event, encode(event)), end });
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
