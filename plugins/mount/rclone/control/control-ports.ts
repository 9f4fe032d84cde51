/**
 * Ports on loopback through which anybody with the password can use the mounts' remote controls. Every
 * local user can connect to a port, and rclone needs about 32 kB per connection, without any limit: 2,000
 * silent ones took 65 MiB. So rclone listens on a unix socket in the state folder, which the daemon uses
 * itself. The daemon listens on the ports: it forwards nothing to rclone before the password was received,
 * and limits the number of connections without it.
 */
import { timingSafeEqual } from 'node:crypto';
import { connect, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';
import type { Clock, Logger } from 'mountkeeper';
import { CredentialDigest, parseBasicCredentials } from 'mountkeeper';
import type { RcAddress } from './remote-control.ts';

/** Limit for all ports together. The oldest connection is closed for a new one. */
const MAX_STRANGERS = 700;
const MAX_COMING = 4_096;
const MAX_HEAD_BYTES = 16_384;
const HEAD_MS = 10_000;
const REFUSAL =
  'HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm="rclone"\r\nConnection: ' +
  'close\r\nContent-Length: 0\r\n\r\n';

export interface ControlPort {
  /** The port number, on 127.0.0.1. */
  readonly port: number;
  /** Closes the port and its connections. */
  close(): void;
}

export class ControlPorts {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  /** Connections that have not sent the password yet, and their deadline; the oldest first. */
  readonly #strangers = new Map<Socket, number>();
  #isSweepDue = false;

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#clock = clock;
  }

  /**
   * Listens on the port of the address, or on another one when that is taken. Does nothing for an rclone
   * without a socket, which listens there itself.
   */
  open(rc: RcAddress, log: Logger): ControlPort {
    const { socket: path } = rc;
    if (path === undefined) return { port: rc.port, close: () => undefined };
    const digest = new CredentialDigest();
    const right = digest.of({ username: rc.user, password: rc.password });
    const isRight = (head: string): boolean => {
      const given = parseBasicCredentials(/^authorization:[ \t]*([^\r\n]{1,4096})/im.exec(head)?.[1]);
      return given !== undefined && timingSafeEqual(digest.of(given), right);
    };
    const port = new OpenPort(rc.port, log, (socket) =>
      this.#hear(socket, (head) => {
        if (!isRight(head)) return void socket.end(REFUSAL, () => socket.destroySoon());
        port.passOn(socket, path, head);
      }),
    );
    return port;
  }

  /** Calls back with everything received once the first request's head is complete, as Latin-1. */
  #hear(socket: Socket, onHead: (received: string) => void): void {
    this.#takeIn(socket);
    let received = '';
    socket.setEncoding('latin1').on('data', (piece: string) => {
      received += piece;
      if (!received.includes('\r\n\r\n')) {
        if (received.length > MAX_HEAD_BYTES) socket.destroy();
        return;
      }
      this.#strangers.delete(socket);
      socket.removeAllListeners('data').pause();
      onHead(received);
    });
  }

  #takeIn(socket: Socket): void {
    const [oldest] = this.#strangers.keys();
    if (this.#strangers.size >= MAX_STRANGERS) oldest?.destroy();
    this.#strangers.set(socket, this.#clock.monotonic() + HEAD_MS);
    socket.once('close', () => this.#strangers.delete(socket));
    this.#sweepLater();
  }

  #sweepLater(): void {
    if (this.#isSweepDue) return;
    this.#isSweepDue = true;
    this.#clock.after(1_000, () => {
      this.#isSweepDue = false;
      const now = this.#clock.monotonic();
      for (const [socket, end] of this.#strangers) if (end <= now) socket.destroy();
      if (this.#strangers.size > 0) this.#sweepLater();
    });
  }
}

class OpenPort implements ControlPort {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #port: number;

  constructor(wanted: number, log: Logger, onSocket: (socket: Socket) => void) {
    this.#server = createServer((socket) => {
      this.#keep(socket);
      onSocket(socket);
    });
    this.#port = wanted;
    // Asked in each cycle, and the kernel would be asked each time.
    this.#server.on('listening', () => (this.#port = (this.#server.address() as AddressInfo).port));
    // Another program has taken it since it was found free.
    this.#server.once('error', (error) => {
      log.warn({ err: error }, 'the port of the remote control is taken, another one is used');
      this.#server.on('error', (err) =>
        log.error({ err }, 'the port of the remote control reported an error'),
      );
      this.#server.listen(0, '127.0.0.1');
    });
    // Many simultaneous connections wait in the kernel's queue instead of being dropped.
    this.#server.listen({ port: wanted, host: '127.0.0.1', backlog: MAX_COMING }).unref();
  }

  get port(): number {
    return this.#port;
  }

  /** Forwards the connection to rclone's socket, from the first byte on. */
  passOn(client: Socket, path: string, received: string): void {
    const rclone = connect({ path });
    this.#keep(rclone);
    rclone.once('close', () => client.destroySoon());
    client.once('close', () => rclone.destroy());
    rclone.write(received, 'latin1');
    client
      .setEncoding('latin1')
      .on('data', (piece: string) => {
        if (rclone.write(piece, 'latin1')) return;
        client.pause();
        rclone.once('drain', () => client.resume());
      })
      .resume();
    rclone.pipe(client);
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => this.#sockets.delete(socket));
  }
}
