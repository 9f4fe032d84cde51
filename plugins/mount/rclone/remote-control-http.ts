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
 * Persistent connections to one remote control, with one request at a time on each. Every share is asked
 * every other second for its whole life: node:http costs four times as much per request, which is most of
 * what an idle daemon does.
 */
export class RcWire {
  readonly #target: { readonly port: number; readonly socket?: string | undefined };
  readonly #idle: Socket[] = [];
  readonly #all = new Set<Socket>();

  constructor(target: { readonly port: number; readonly socket?: string | undefined }) {
    this.#target = target;
  }

  /**
   * Rejects with the signal's reason, or when the connection breaks; an abandoned answer never reaches
   * another caller.
   */
  ask(request: string, signal: AbortSignal): Promise<RcAnswer> {
    signal.throwIfAborted();
    const socket = this.#idle.pop() ?? this.#open();
    socket.ref();
    return new Promise((resolve, reject) => {
      let received: Buffer = Buffer.alloc(0);
      const settle = (end: () => void): void => {
        signal.removeEventListener('abort', onAbort);
        socket.removeAllListeners('data').removeListener('close', onClose);
        end();
      };
      const fail = (error: Error): void =>
        settle(() => {
          socket.destroy();
          reject(error);
        });
      const onAbort = (): void => fail(signal.reason as Error);
      const onClose = (): void => fail(new Error('the remote control does not answer'));
      const onData = (piece: Buffer): void => {
        received = received.length === 0 ? piece : Buffer.concat([received, piece]);
        try {
          const answer = parseAnswer(received);
          if (answer) settle(() => resolve(this.#giveBack(socket, answer)));
          else if (received.length > MAX_ANSWER_BYTES)
            fail(new Error('the answer of the remote control is too large'));
        } catch (error) {
          fail(error as Error);
        }
      };
      signal.addEventListener('abort', onAbort, { once: true });
      socket.on('data', onData).once('close', onClose);
      socket.write(request);
    });
  }

  close(): void {
    for (const socket of this.#all) socket.destroy();
  }

  #open(): Socket {
    const { port, socket: path } = this.#target;
    const socket =
      path === undefined ? connect({ port, host: '127.0.0.1', noDelay: true }) : connect({ path });
    this.#all.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => {
      this.#all.delete(socket);
      const index = this.#idle.indexOf(socket);
      if (index >= 0) this.#idle.splice(index, 1);
    });
    return socket;
  }

  #giveBack(socket: Socket, answer: RcAnswer): RcAnswer {
    // Kept open, but it does not keep the daemon running.
    socket.unref();
    if (!socket.destroyed) this.#idle.push(socket);
    return answer;
  }
}
