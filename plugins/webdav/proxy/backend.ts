import type { ClientRequest, IncomingMessage, OutgoingHttpHeaders } from 'node:http';
import { endsWithin } from 'mountkeeper/sdk';
import { clock } from './clock.ts';
import { isLiving } from './instance.ts';
import { at } from './places.ts';
import type { Backend, ProxyShare } from './state.ts';

// Not imported, which costs a start much: see docs/contributing.md.
const { Agent, request: httpRequest } = process.getBuiltinModule('node:http');

const MAX_IDLE_CONNECTIONS = 16;
/** How long running work may take to end when the share is removed, and then how long undoing it may take. */
const LET_GO_MS = 1_800;
const TAKE_BACK_MS = 1_200;
/** A backend beside a mount keeps listings for a second. */
const LISTING_KEPT_MS = 1_100;
const LOOK_AGAIN_MS = 50;
/** Connection errors after which nothing of the request can have reached the backend. */
const NEVER_REACHED = new Set(['ECONNREFUSED', 'ENOENT', 'EACCES', 'EAGAIN']);

/** Makes a backend that refuses a body say so before the body is sent. */
export const WAITING = { expect: '100-continue' } as const;

export interface Begun {
  readonly request: ClientRequest;
  readonly answered: Promise<IncomingMessage>;
  /**
   * With `WAITING`: resolves with true when the body may be sent, with false when the answer has already
   * come.
   */
  readonly continued: Promise<boolean>;
}

export interface BeginOptions {
  /** Aborts the request. */
  readonly signal?: AbortSignal | undefined;
  /** Use a new connection. */
  readonly fresh?: boolean;
  /**
   * Continue as long as the backend exists, even when the share is being removed: half of it would be
   * worse.
   */
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
  #share: ProxyShare;
  #doubtUntil = 0;
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: MAX_IDLE_CONNECTIONS });
  readonly #running = new Set<ClientRequest>();
  /** Running work that changes something and should be allowed to end. */
  readonly #working = new Set<Promise<unknown>>();
  readonly #leaving = new AbortController();
  #isOver = false;

  constructor(share: ProxyShare) {
    this.#share = share;
  }

  get share(): ProxyShare {
    return this.#share;
  }

  set share(share: ProxyShare) {
    if (share.backend.reader !== this.backend.reader) this.#doubtUntil = clock.now() + LISTING_KEPT_MS;
    this.#share = share;
  }

  get backend(): Backend {
    return this.share.backend;
  }

  /** Aborts when uploads must be undone because the share is being removed. */
  get leaving(): AbortSignal {
    return this.#leaving.signal;
  }

  /** False while the mount that it serves is gone, although it answers. */
  get isWhole(): boolean {
    const { behind } = this.backend;
    return behind === undefined || isLiving(behind);
  }

  /** True while names may be missing from what it says: what reads from the NAS is dead, or was until just now. */
  get isInDoubt(): boolean {
    const { reader } = this.backend;
    return clock.now() < this.#doubtUntil || (reader !== undefined && !isLiving(reader));
  }

  /** Resolves once no names are missing from what it says, after `ms` or when the share has to go at the latest. */
  async certain(ms: number): Promise<void> {
    const end = clock.now() + ms;
    while (this.isInDoubt && !this.leaving.aborted && clock.now() < end) await clock.sleep(LOOK_AGAIN_MS);
  }

  /** Sends a request with a known body. Rejects when there is no answer. */
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

  async #settled(ms: number): Promise<void> {
    if (this.#working.size > 0) await endsWithin(clock, ms, Promise.allSettled(this.#working));
  }

  #open({ method, path, headers }: BackendCall, fresh: boolean): ClientRequest {
    const { socketPath, port, authorization } = this.backend;
    const where = socketPath === undefined ? { host: '127.0.0.1', port } : { socketPath: at(socketPath) };
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

  /** Registers work that should end before the share is removed. */
  track<T>(work: Promise<T>): Promise<T> {
    this.#working.add(work);
    const done = (): void => void this.#working.delete(work);
    work.then(done, done);
    return work;
  }

  /** Resolves once nothing of this share is held any more. */
  async letGo(): Promise<void> {
    await this.#settled(LET_GO_MS);
    this.#leaving.abort();
    await this.#settled(TAKE_BACK_MS);
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
    request.once('close', () => reject(new Error('the backend closed the connection')));
  });
  // Whoever needs the answer waits for it; one that is left behind may fail unheard.
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

/** True when the request cannot have had any effect. */
export function wasNeverReached(error: unknown): boolean {
  return NEVER_REACHED.has((error as NodeJS.ErrnoException | undefined)?.code ?? '');
}
