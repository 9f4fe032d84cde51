/** A receiver of webhooks on loopback that behaves well or badly, and keeps what it has taken. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { createServer as createHttpServer } from 'node:http';
import type { IncomingHttpHeaders, IncomingMessage, Server as HttpServer, ServerResponse } from 'node:http';
import { freePort } from '../platform/free-port.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { sleep } from '../platform/wait.ts';

export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly text: string;
  readonly body: {
    readonly id: string;
    readonly type: string;
    readonly message: string;
    readonly data: Readonly<Record<string, unknown>>;
  };
  readonly atMs: number;
}

export type Manner =
  | { readonly kind: 'good' | 'garbage' }
  | { readonly kind: 'slow'; readonly ms: number }
  | { readonly kind: 'status'; readonly status: number; readonly headers?: Record<string, string> };

/** One receiver. Closed with its scratch folder. */
export class WebhookReceiver {
  readonly port: number;
  /** What it has answered with 200. */
  readonly taken: Received[] = [];
  /** What it has answered with another status, each time. */
  readonly refused: Received[] = [];
  manner: Manner = { kind: 'good' };
  private door: Server | undefined;
  private readonly http: HttpServer;
  private readonly sockets = new Set<Socket>();

  private constructor(port: number) {
    this.port = port;
    this.http = createHttpServer((asked, answer) => void this.receive(asked, answer));
  }

  /** Listens on a free port. */
  static async start(scratch: Scratch): Promise<WebhookReceiver> {
    const receiver = new WebhookReceiver(await freePort());
    await receiver.open();
    scratch.defer(() => receiver.close());
    return receiver;
  }

  /** Where it is posted to. */
  get url(): string {
    return `http://127.0.0.1:${this.port}/hook`;
  }

  /** Listens again after it was closed. */
  async open(): Promise<void> {
    const door = createServer((socket) => this.admit(socket));
    door.listen(this.port, '127.0.0.1');
    await once(door, 'listening');
    this.door = door;
  }

  /** Refuses connections from now on. */
  async close(): Promise<void> {
    const { door } = this;
    this.door = undefined;
    if (!door) return;
    this.sockets.forEach((socket) => socket.destroy());
    door.close();
    await once(door, 'close');
  }

  private admit(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.sockets.delete(socket));
    if (this.manner.kind === 'garbage') socket.end('\u0000\u0001 what is this\r\n\r\n');
    else this.http.emit('connection', socket);
  }

  private async receive(asked: IncomingMessage, answer: ServerResponse): Promise<void> {
    const { manner } = this;
    const pieces: Buffer[] = [];
    for await (const piece of asked as AsyncIterable<Buffer>) pieces.push(piece);
    if (manner.kind === 'slow') await sleep(manner.ms);
    const text = Buffer.concat(pieces).toString();
    const received = {
      headers: asked.headers,
      text,
      body: JSON.parse(text) as Received['body'],
      atMs: performance.now(),
    };
    if (manner.kind === 'status') {
      this.refused.push(received);
      answer.writeHead(manner.status, manner.headers).end('not now');
      return;
    }
    this.taken.push(received);
    answer.writeHead(200).end('ok');
  }
}
