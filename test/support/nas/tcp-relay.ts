/** A TCP relay between a client and a NAS that can be slow, far away, cut off or silent. */
import { createConnection, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { once } from 'node:events';
import { Transform } from 'node:stream';
import { freePort } from '../platform/free-port.ts';
import type { Scratch } from '../platform/scratch-folder.ts';
import { sleep } from '../platform/wait.ts';

export interface RelayTraits {
  readonly targetPort: number;
  /** Added to every piece of data, each way. */
  readonly delayMs?: number;
  /** For all connections together, each way. */
  readonly bytesPerSecond?: number;
}

/** Lets pieces pass so that all of them together keep the rate of the moment. */
function createGate(bytesPerSecond: () => number): (bytes: number) => Promise<unknown> {
  let free = performance.now();
  return (bytes) => {
    free = Math.max(free, performance.now() - 50) + (bytes / bytesPerSecond()) * 1000;
    const waitMs = free - performance.now();
    return waitMs > 2 ? sleep(waitMs) : Promise.resolve();
  };
}

/** One relay to a port of loopback. Cut with its scratch folder. */
export class Relay {
  readonly port: number;
  /** Bytes that have come from clients and from the NAS. */
  readonly passed = { up: 0, down: 0 };
  private bytesPerSecond: number;
  private readonly traits: RelayTraits;
  private server: Server | undefined;
  private readonly sockets = new Set<Socket>();
  private readonly gates: {
    up?: (bytes: number) => Promise<unknown>;
    down?: (bytes: number) => Promise<unknown>;
  };
  private silent = false;

  private constructor(port: number, traits: RelayTraits) {
    this.port = port;
    this.traits = traits;
    this.bytesPerSecond = traits.bytesPerSecond ?? Infinity;
    const rate = (): number => this.bytesPerSecond;
    this.gates = traits.bytesPerSecond === undefined ? {} : { up: createGate(rate), down: createGate(rate) };
  }

  /** Listens on a free port; resolves when it does. */
  static async start(scratch: Scratch, traits: RelayTraits): Promise<Relay> {
    const relay = new Relay(await freePort(), traits);
    await relay.restore();
    scratch.defer(() => relay.cut());
    return relay;
  }

  /** Changes the rate of a relay that was made with one. */
  setRate(bytesPerSecond: number): void {
    this.bytesPerSecond = bytesPerSecond;
  }

  /** Drops every connection and refuses new ones. */
  async cut(): Promise<void> {
    const server = this.server;
    this.server = undefined;
    this.sockets.forEach((socket) => socket.destroy());
    this.sockets.clear();
    if (server === undefined) return;
    server.close();
    await once(server, 'close');
  }

  /** Accepts and never answers; what is under way stands still. */
  async blackHole(): Promise<void> {
    this.silent = true;
    this.sockets.forEach((socket) => socket.unpipe().pause());
    if (this.server === undefined) await this.listen();
  }

  /** Ends `cut` and `blackHole`: accepts connections and answers again. */
  async restore(): Promise<void> {
    if (this.silent) {
      this.silent = false;
      // A silent connection has lost its place: clients must dial again, as after a real outage.
      this.sockets.forEach((socket) => socket.destroy());
    }
    if (this.server === undefined) await this.listen();
  }

  private async listen(): Promise<void> {
    const server = createServer((socket) => this.accept(socket));
    server.listen(this.port, '127.0.0.1');
    await once(server, 'listening');
    this.server = server;
  }

  private accept(client: Socket): void {
    this.keep(client);
    if (this.silent) {
      client.pause();
      return;
    }
    const target = createConnection({ port: this.traits.targetPort, host: '127.0.0.1' });
    this.keep(target);
    client.once('close', () => target.destroy());
    target.once('close', () => client.destroy());
    client.on('data', (piece) => {
      this.passed.up += piece.length;
    });
    target.on('data', (piece) => {
      this.passed.down += piece.length;
    });
    this.join(client, target, this.gates.up);
    this.join(target, client, this.gates.down);
  }

  private keep(socket: Socket): void {
    this.sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.sockets.delete(socket));
  }

  private join(from: Socket, to: Socket, gate: ((bytes: number) => Promise<unknown>) | undefined): void {
    const { delayMs } = this.traits;
    if (gate === undefined && delayMs === undefined) {
      from.pipe(to);
      return;
    }
    const slow = new Transform({
      transform: (piece: Buffer, _encoding, done) => {
        void Promise.all([gate?.(piece.length), delayMs === undefined ? undefined : sleep(delayMs)]).then(
          () => done(null, piece),
        );
      },
    });
    from.pipe(slow).pipe(to);
  }
}
