import { Agent, request as httpRequest } from 'node:http';
import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { isLiving } from './instance.ts';
import type { Backend, ProxyShare } from './state.ts';

const MAX_IDLE_CONNECTIONS = 16;
/**
 * Work that is under way when the share has to go may take this long to end by itself, and then this long to
 * be taken back.
 */
const LET_GO_MS = 1_800;
const TAKE_BACK_MS = 1_200;
/** The connection could not be had: nothing of the request has reached the backend. */
const NEVER_REACHED = new Set(['ECONNREFUSED', 'ENOENT', 'EACCES', 'EAGAIN']);

/** An backend that refuses a body says so before it comes. */
export const WAITING = { expect: '100-continue' } as const;

export interface Begun {
  readonly request: ClientRequest;
  readonly answered: Promise<IncomingMessage>;
  /**
   * With `WAITING`: resolves with true when the body may come, with false when the answer is there already.
   */
  readonly continued: Promise<boolean>;
}

export interface BeginOptions {
  /** Ends the request. */
  readonly signal?: AbortSignal | undefined;
  /** On a connection of its own. */
  readonly fresh?: boolean;
  /** Goes on as long as there is an backend, also when the share has to go: half of it would be worse. */
  readonly lasting?: boolean;
}

export interface BackendCall {
  readonly method: string;
  readonly path: string;
  readonly headers: OutgoingHttpHeaders;
  readonly body?: Buffer;
}

/** The connections to one backend of one share. */
export class Attached {
  share: ProxyShare;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS });
  readonly #running = new Set<ClientRequest>();
  /** Work that changes something, and had better be let end. */
  readonly #working = new Set<Promise<unknown>>();
  readonly #leaving = new AbortController();
  #isOver = false;

  constructor(share: ProxyShare) {
    this.share = share;
  }

  get engine(): Backend {
    return this.share.backend;
  }

  /** Aborts when uploads are to be taken back, since the share has to go. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  /** False while what it serves is gone, though it answers. */
  get isWhole(): boolean {
    const { behind } = this.engine;
    return behind === undefined || isLiving(behind);
  }

  /** Sends a request whose body is at hand. Rejects when there is no answer. */
  ask(call: BackendCall, signal?: AbortSignal): Promise<IncomingMessage> {
    const { request, answered } = this.begin(call, { signal });
    request.end(call.body);
    return answered;
  }

  /** Begins a request; the caller writes the body. */
  begin(call: BackendCall, { signal, fresh = false, lasting = false }: BeginOptions = {}): Begun {
    const request = this.#open(call, fresh);
    if (!lasting) this.#running.add(request);
    const onAbort = (): void => void request.destroy();
    if (this.#isOver || signal?.aborted === true) request.destroy();
    else signal?.addEventListener('abort', onAbort, { once: true });
    request.once('close', () => {
      this.#running.delete(request);
      signal?.removeEventListener('abort', onAbort);
    });
    const begun = { request, answered: answerOf(request), continued: continuationOf(request) };
    if (call.headers['expect'] !== undefined) request.flushHeaders();
    return begun;
  }

  async #settled(enough: Promise<void>): Promise<void> {
    if (this.#working.size > 0) await Promise.race([Promise.allSettled(this.#working), enough]);
  }

  #open({ method, path, headers }: BackendCall, fresh: boolean): ClientRequest {
    const { socketPath, port, authorization } = this.engine;
    const where = socketPath === undefined ? { host: '127.0.0.1', port } : { socketPath };
    const login = authorization === undefined ? {} : { authorization };
    const request = httpRequest({
      ...where,
      agent: fresh ? false : this.#agent,
      method,
      path,
      headers: { ...headers, ...login },
    });
    request.setNoDelay(true);
    return request;
  }

  /** Notes work that is let end before the share goes. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#working.add(work);
    const done = (): void => void this.#working.delete(work);
    work.then(done, done);
    return work;
  }

  /**
   * Resolves once nothing of this share is held any more. `pause`: a wait that ends early when it is of no
   * use.
   */
  async letGo(pause: (ms: number) => Promise<void>): Promise<void> {
    await this.#settled(pause(LET_GO_MS));
    this.#leaving.abort();
    await this.#settled(pause(TAKE_BACK_MS));
    this.#isOver = true;
    for (const request of this.#running) request.destroy();
    this.#agent.destroy();
  }
}

function answerOf(request: ClientRequest): Promise<IncomingMessage> {
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    request.once('response', (response) => {
      response.on('error', () => undefined);
      resolve(response);
    });
    request.on('error', reject);
    request.once('close', () => reject(new Error('the engine closed the connection')));
  });
  answered.catch(() => undefined);
  return answered;
}

function continuationOf(request: ClientRequest): Promise<boolean> {
  return new Promise((resolve) => {
    request.once('continue', () => resolve(true));
    request.once('response', () => resolve(false));
    request.once('close', () => resolve(false));
  });
}

/** Nothing can have come of it. */
export function wasNeverReached(error: unknown): boolean {
  return NEVER_REACHED.has((error as NodeJS.ErrnoException | undefined)?.code ?? '');
}
