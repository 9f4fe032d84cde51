import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressKey } from './front-throttle.ts';

const MAX = 2_000;
const MAX_PER_ADDRESS = 500;
/** Clients wait for an answer before they ask for more; what they may send ahead is for those few that do not. */
const MAX_AHEAD = 8;

interface Visit {
  readonly socket: Socket;
  readonly address: string;
  /** Requests that have come and are not answered. */
  open: number;
  /** To the request whose turn it is. */
  answer: ServerResponse | undefined;
  /** Somebody who is let in is being served. */
  isServed: boolean;
  /** Somebody has been let in. */
  isKnown: boolean;
  /** Settles when all that came before is answered. */
  before: Promise<unknown>;
}

/** Connections, and which of them makes way first: many who were never let in before those between two requests, and the longest idle. */
class Crowd {
  readonly #strangers = new Set<Visit>();
  readonly #known = new Set<Visit>();
  size = 0;

  add(visit: Visit): void {
    (visit.isKnown ? this.#known : this.#strangers).add(visit);
  }

  remove(visit: Visit): void {
    this.#strangers.delete(visit);
    this.#known.delete(visit);
  }

  get first(): Visit | undefined {
    // Where there are few strangers, the one that has just come may be about to say who it is.
    const areMany = this.#strangers.size > this.#known.size / 4;
    for (const visits of areMany ? [this.#strangers, this.#known] : [this.#known, this.#strangers]) for (const visit of visits) return visit;
    return undefined;
  }
}

/**
 * The connections of all clients. Whoever opens more than there may be shuts nobody out: one that nobody is being served on makes way
 * for each that comes. What is sent ahead on one connection is served in turn.
 */
export class Connections {
  readonly #visits = new WeakMap<Socket, Visit>();
  readonly #all = new Crowd();
  readonly #perAddress = new Map<string, Crowd>();

  /** False when there is no room, since everybody is being served. */
  enter(socket: Socket): boolean {
    const address = addressKey(socket.remoteAddress ?? '');
    const own = this.#perAddress.get(address) ?? new Crowd();
    if (!makeRoom(own, MAX_PER_ADDRESS, this.#leave) || !makeRoom(this.#all, MAX, this.#leave)) return false;
    const visit: Visit = { socket, address, open: 0, answer: undefined, isServed: false, isKnown: false, before: Promise.resolve() };
    this.#visits.set(socket, visit);
    this.#perAddress.set(address, own);
    for (const crowd of [own, this.#all]) {
      crowd.size += 1;
      crowd.add(visit);
    }
    socket.once('close', () => this.#leave(visit));
    return true;
  }

  /** Resolves with true when it is this request's turn; with false when nobody will hear its answer. */
  async turn({ socket }: IncomingMessage, response: ServerResponse): Promise<boolean> {
    const visit = this.#visits.get(socket);
    if (!visit) return false;
    if (visit.open >= MAX_AHEAD) {
      this.#leave(visit);
      return false;
    }
    visit.open += 1;
    const { before } = visit;
    visit.before = new Promise<void>((resolve) => response.once('close', () => {
      visit.open -= 1;
      this.#rest(visit);
      resolve();
    }));
    await before;
    visit.answer = response;
    return !socket.destroyed;
  }

  /** From now on until the answer is given the connection makes way for nobody. */
  serve({ socket }: IncomingMessage): void {
    const visit = this.#visits.get(socket);
    if (!visit) return;
    for (const crowd of this.#crowds(visit)) crowd.remove(visit);
    visit.isServed = true;
    visit.isKnown = true;
  }

  /** Whether an answer is under way, into which nothing else may be written. */
  isAnswering(socket: Socket): boolean {
    const { open = 0, answer } = this.#visits.get(socket) ?? {};
    return open > 0 && answer?.headersSent === true;
  }

  #rest(visit: Visit): void {
    if (!visit.isServed || !this.#visits.has(visit.socket)) return;
    visit.isServed = false;
    for (const crowd of this.#crowds(visit)) crowd.add(visit);
  }

  readonly #leave = (visit: Visit): void => {
    if (!this.#visits.delete(visit.socket)) return;
    for (const crowd of this.#crowds(visit)) {
      crowd.size -= 1;
      crowd.remove(visit);
    }
    if (this.#perAddress.get(visit.address)?.size === 0) this.#perAddress.delete(visit.address);
    visit.socket.destroy();
  };

  #crowds({ address }: Visit): readonly Crowd[] {
    return [this.#all, ...(this.#perAddress.has(address) ? [this.#perAddress.get(address) as Crowd] : [])];
  }
}

function makeRoom(crowd: Crowd, max: number, leave: (visit: Visit) => void): boolean {
  if (crowd.size < max) return true;
  const { first } = crowd;
  if (first) leave(first);
  return first !== undefined;
}
