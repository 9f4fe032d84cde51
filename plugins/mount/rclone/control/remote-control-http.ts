import { connect } from 'node:net';
import type { Socket } from 'node:net';

export interface RcAnswer {
  readonly status: number;
  readonly text: string;
}

const MAX_ANSWER_BYTES = 32 * 1_048_576;
const HEAD_END = Buffer.from('\r\n\r\n');
const LAST_CHUNK = Buffer.from('0\r\n\r\n');

/**
 * Parses the answer once it is complete. Supports a content length and chunks: the two forms that a Go
 * server sends.
 */
export function parseAnswer(bytes: Buffer): RcAnswer | undefined {
  const headEnd = bytes.indexOf(HEAD_END);
  if (headEnd < 0) return undefined;
  const head = bytes.toString('latin1', 0, headEnd);
  const body = bytes.subarray(headEnd + HEAD_END.length);
  const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(head)?.[1]);
  if (Number.isNaN(status)) throw new Error('the remote control answers with something else than HTTP');
  const length = /^content-length:\s*(\d+)/im.exec(head)?.[1];
  if (length !== undefined)
    return body.length < Number(length)
      ? undefined
      : { status, text: body.toString('utf8', 0, Number(length)) };
  return body.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK)
    ? { status, text: joinChunks(body) }
    : undefined;
}

function joinChunks(body: Buffer): string {
  const pieces: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.toString('latin1', at, lineEnd), 16);
    if (lineEnd < 0 || Number.isNaN(size) || size === 0) return Buffer.concat(pieces).toString('utf8');
    pieces.push(body.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}

/**
 * Every connection is read into these bytes, which the caller of `onread` is done with before the next read: a
 * connection of its own to each of many mounts would make 64 KiB for each answer.
 */
const PIECE = Buffer.alloc(65_536);
const BROKEN = 'the remote control does not answer';

interface Target {
  readonly port: number;
  readonly socket?: string | undefined;
}

/** One connection, which answers one request at a time. */
class Line {
  readonly #socket: Socket;
  #received: Buffer | undefined;
  #settle: ((answer: RcAnswer | Error) => void) | undefined;

  constructor({ port, socket: path }: Target, onClose: (line: Line) => void) {
    const onread = {
      buffer: PIECE,
      callback: (bytes: number): boolean => {
        this.#hear(PIECE.subarray(0, bytes));
        return true;
      },
    };
    this.#socket =
      path === undefined
        ? connect({ port, host: '127.0.0.1', noDelay: true, onread })
        : connect({ path, onread });
    this.#socket
      .on('error', () => undefined)
      .once('close', () => {
        onClose(this);
        this.#end(new Error(BROKEN));
      });
  }

  get isOpen(): boolean {
    return !this.#socket.destroyed;
  }

  ask(request: string, settle: (answer: RcAnswer | Error) => void): void {
    this.#settle = settle;
    this.#socket.ref();
    this.#socket.write(request);
  }

  /** `reason`: what the request in progress fails with. */
  close(reason = new Error(BROKEN)): void {
    this.#socket.destroy();
    this.#end(reason);
  }

  #hear(piece: Buffer): void {
    // Nobody has asked.
    if (!this.#settle) return this.close();
    const received = this.#received ? Buffer.concat([this.#received, piece]) : piece;
    try {
      const answer = parseAnswer(received);
      if (answer) return this.#end(answer);
      if (received.length > MAX_ANSWER_BYTES)
        throw new Error('the answer of the remote control is too large');
      // The bytes are read into again.
      this.#received = this.#received ? received : Buffer.from(piece);
    } catch (error) {
      this.close(error as Error);
    }
  }

  #end(answer: RcAnswer | Error): void {
    const settle = this.#settle;
    this.#settle = undefined;
    this.#received = undefined;
    // Kept open, but it does not keep the daemon running.
    this.#socket.unref();
    settle?.(answer);
  }
}

/**
 * Persistent connections to one remote control, with one request at a time on each. Every share is asked
 * every other second for its whole life: node:http costs four times as much per request, which is most of
 * what an idle daemon does.
 */
export class RcWire {
  readonly #target: Target;
  readonly #idle: Line[] = [];
  readonly #all = new Set<Line>();

  constructor(target: Target) {
    this.#target = target;
  }

  /**
   * Rejects with the signal's reason, or when the connection breaks; an abandoned answer never reaches
   * another caller.
   */
  ask(request: string, signal: AbortSignal): Promise<RcAnswer> {
    signal.throwIfAborted();
    const line = this.#idle.pop() ?? this.#open();
    return new Promise((resolve, reject) => {
      const onAbort = (): void => line.close(signal.reason as Error);
      signal.addEventListener('abort', onAbort, { once: true });
      line.ask(request, (answer) => {
        signal.removeEventListener('abort', onAbort);
        if (line.isOpen) this.#idle.push(line);
        if (answer instanceof Error) reject(answer);
        else resolve(answer);
      });
    });
  }

  close(): void {
    for (const line of this.#all) line.close();
  }

  #open(): Line {
    const line = new Line(this.#target, (closed) => {
      this.#all.delete(closed);
      const index = this.#idle.indexOf(closed);
      if (index >= 0) this.#idle.splice(index, 1);
    });
    this.#all.add(line);
    return line;
  }
}
