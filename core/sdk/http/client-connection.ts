import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** One connection of a client. */
export class Connection {
  readonly socket: Socket;
  /** The key of its client's address. */
  readonly address: string;
  /** Requests that have arrived and are not answered yet. */
  open = 0;
  /** The request that is being served, and its response. */
  request: IncomingMessage | undefined;
  answer: ServerResponse | undefined;
  state: 'idle' | 'served-stranger' | 'served-known' = 'idle';
  /** An authenticated client has used it. */
  isKnown = false;
  /** Settles when all earlier requests are answered. */
  before: Promise<unknown> = Promise.resolve();

  constructor(socket: Socket, address: string) {
    this.socket = socket;
    this.address = address;
  }
}

/**
 * Connections in the order in which they are closed to make room: those of unknown clients before idle ones
 * of authenticated clients, and of each kind the longest idle first.
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

  /** Undefined when all of them are serving authenticated clients. */
  get first(): Connection | undefined {
    // While there are few unknown clients, the newest one may be about to authenticate.
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
