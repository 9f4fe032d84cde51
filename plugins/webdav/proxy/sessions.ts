/**
 * Who has been here of late. HTTP knows requests alone, so a session is what one user does in one share from one
 * address, until there was no request for a while.
 */
import { randomUUID } from 'node:crypto';
import type { Socket } from 'node:net';
import { clock } from './clock.ts';
import type { ProxySession } from './state.ts';

/** Clients that show a folder ask again when somebody does something there. */
const QUIET_MS = 300_000;
const MOST_SESSIONS = 1_000;

/** Where a request came from. Behind a trusted proxy, the address is the one that it forwards. */
export interface Origin {
  readonly address: string;
  readonly socket: Socket;
}

interface Who {
  /** Undefined: somebody whom a server without users has let in. */
  readonly user: string | undefined;
  readonly share: string;
}

interface Session extends Who {
  readonly id: string;
  readonly address: string;
  readonly since: number;
  lastAt: number;
  /** Requests that are being answered. */
  open: number;
  toClient: number;
  fromClient: number;
  /** Connections whose last request was of this session. */
  readonly sockets: Set<Socket>;
}

/** What of a connection's bytes has been counted, and for whom the next ones count. */
interface Counted {
  session: Session;
  toClient: number;
  fromClient: number;
}

export class Sessions {
  /** In the order of their last requests. */
  readonly #sessions = new Map<string, Session>();
  readonly #counted = new WeakMap<Socket, Counted>();
  readonly #quietMs: number;

  constructor(quietMs = QUIET_MS) {
    this.#quietMs = quietMs;
  }

  /** A request begins. Returns what is to be called once it is over. */
  enter(who: Who, { address, socket }: Origin): () => void {
    const key = JSON.stringify([who.user ?? null, who.share, address]);
    const session = this.#sessions.get(key) ?? begun(who, address);
    session.open += 1;
    this.#touch(key, session);
    this.#claim(socket, session);
    this.#forgetQuiet();
    return () => {
      session.open -= 1;
      this.#count(socket);
      // It may have been ended.
      if (this.#sessions.get(key) === session) this.#touch(key, session);
    };
  }

  #touch(key: string, session: Session): void {
    session.lastAt = clock.now();
    this.#sessions.delete(key);
    this.#sessions.set(key, session);
  }

  list(): readonly ProxySession[] {
    this.#forgetQuiet();
    return [...this.#sessions.values()].map((session) => {
      for (const socket of session.sockets) this.#count(socket);
      const { id, user = null, share, address, since, lastAt, toClient, fromClient } = session;
      return { id, user, share, address, since, lastAt, toClient, fromClient };
    });
  }

  /** Closes its connections, and forgets it. False: there is none of this id. */
  end(id: string): boolean {
    const [key, session] = [...this.#sessions].find(([, one]) => one.id === id) ?? [];
    if (key === undefined || session === undefined) return false;
    this.#sessions.delete(key);
    // What the kernel still holds for the client is dropped, too.
    for (const socket of session.sockets) socket.resetAndDestroy();
    return true;
  }

  /** Bytes of a connection count for whoever has asked last on it. */
  #claim(socket: Socket, session: Session): void {
    const counted = this.#counted.get(socket);
    if (counted) {
      counted.session.sockets.delete(socket);
      this.#count(socket);
      counted.session = session;
    } else {
      this.#counted.set(socket, { session, toClient: 0, fromClient: 0 });
      socket.once('close', () => {
        this.#count(socket);
        this.#counted.get(socket)?.session.sockets.delete(socket);
      });
    }
    session.sockets.add(socket);
  }

  #count(socket: Socket): void {
    const counted = this.#counted.get(socket);
    if (!counted) return;
    const { bytesWritten, bytesRead } = socket;
    counted.session.toClient += bytesWritten - counted.toClient;
    counted.session.fromClient += bytesRead - counted.fromClient;
    counted.toClient = bytesWritten;
    counted.fromClient = bytesRead;
  }

  /** And, above the limit, those who have been quiet for longest. */
  #forgetQuiet(): void {
    const end = clock.now() - this.#quietMs;
    for (const [key, { open, lastAt }] of this.#sessions) {
      if (this.#sessions.size <= MOST_SESSIONS && lastAt > end) return;
      if (open === 0) this.#sessions.delete(key);
    }
  }
}

function begun({ user, share }: Who, address: string): Session {
  const now = clock.now();
  const none = { open: 0, toClient: 0, fromClient: 0 };
  return { id: randomUUID(), user, share, address, since: now, lastAt: now, ...none, sockets: new Set() };
}
