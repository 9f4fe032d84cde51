import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** One connection of a client. */
export class Connection {
  readonly socket: Socket;
  /** The key of its client's address. */
  readonly address: string;
  /** Requests that have come and are not answered. */
  open = 0;
  /** The request whose turn it is, and its answer. */
  request: IncomingMessage | undefined;
  answer: ServerResponse | undefined;
  state: 'idle' | 'served-stranger' | 'served-known' = 'idle';
  /** A client that has been let in has used it. */
  isKnown = false;
  /** Settles when all that came before is answered. */
  before: Promise<unknown> = Promise.resolve();

  constructor(socket: Socket, address: string) {
    this.socket = socket;
    this.address = address;
  }
}

/**
 * Connections, and which of them makes way first: those of strangers before those of clients that have been
 * let in and are between two requests, and of each kind the longest idle.
 */
export class ClientConnections {
  readonly #strangers = new Set<Connection>();
  readonly #known = new Set<Connection>();
  readonly #servedStrangers = new Set<Connection>();
  readonly #servedKnown = new Set<Connection>();

  get size(): number {
    return this.#strangers.size + this.#known.size + this.#servedStrangers.size + this.#servedKnown.size;
  }

  add(connection: Connection): void {
    this.#setOf(connection).add(connection);
  }

  remove(connection: Connection): void {
    this.#setOf(connection).delete(connection);
  }

  /** Undefined when all are being served to clients that have been let in. */
  get first(): Connection | undefined {
    // Where there are few strangers, the one that has just come may be about to say who it is.
    const areMany = this.#strangers.size > this.#known.size / 4;
    const idle = areMany ? [this.#strangers, this.#known] : [this.#known, this.#strangers];
    for (const connections of [...idle, this.#servedStrangers])
      for (const connection of connections) return connection;
    return undefined;
  }

  #setOf({ state, isKnown }: Connection): Set<Connection> {
    if (state === 'served-known') return this.#servedKnown;
    if (state === 'served-stranger') return this.#servedStrangers;
    return isKnown ? this.#known : this.#strangers;
  }
}
