import type { IncomingMessage } from 'node:http';
import { createKeyedQueue, pause } from 'mountkeeper/sdk';
import type { Refusal } from './answer.ts';
import { clock } from './clock.ts';
import { Attached, wasNeverReached } from './backend.ts';
import type { BackendCall } from './backend.ts';
import { couldNotLook, saysWhatIsMissing } from './requests/unread.ts';
import type { ProxyShare } from './state.ts';

/** Why a share is not attached: its clients wait, or are told to come again, or there is no such share. */
export type Away = 'returning' | 'absent' | 'gone';

/** How long a client waits for a share that is away for a moment. */
const AWAY_MS = 12_000;
const TRY_AGAIN_MS = 150;
/**
 * How long a client waits while what lies below a share's write layer cannot be read: another rclone is there in
 * half a second. Without its NAS it may take hours, so after a wait in vain nobody waits for a while.
 */
export const UNREAD_MS = 5_000;
const NO_MORE_WAIT_MS = 30_000;
const REPEATABLE = new Set(['GET', 'HEAD', 'PROPFIND', 'OPTIONS']);

export class Unavailable extends Error {
  readonly refusal: Refusal;

  constructor(refusal: Refusal, cause?: unknown) {
    super(refusal.text, { cause });
    this.refusal = refusal;
  }
}

export interface AskOptions {
  /** Aborts the wait and the request. */
  readonly signal?: AbortSignal | undefined;
  /** Aborts only the wait for a share that is away; what has been sent is not taken back. */
  readonly patience?: AbortSignal | undefined;
  /** The request may be sent again even if the first one may have taken effect. */
  readonly isRepeatable?: boolean;
}

/** The stable entry point of one share, while its backends are replaced. */
export class Upstream {
  readonly name: string;
  readonly #waiting = new Set<() => void>();
  readonly #paths = createKeyedQueue();
  #attached: Attached | undefined;
  #away: Away = 'gone';
  #waitsAgainAt = 0;

  constructor(name: string) {
    this.name = name;
  }

  get attached(): Attached | undefined {
    return this.#attached;
  }

  /** See `ProxyShare`. */
  get place(): string | undefined {
    return this.#attached?.share.place;
  }

  /** Whether clients can reach the share, now or in a moment. */
  get isKnown(): boolean {
    return this.#attached !== undefined || this.#away === 'returning';
  }

  /** Whether clients must not be told that the share's files do not exist, though nobody can reach them now. */
  get isAbsent(): boolean {
    return this.#attached === undefined && this.#away === 'absent';
  }

  /** Whether it can be read, and not be changed before it is mounted anew. */
  get isFrozen(): boolean {
    return this.#attached?.share.isFrozen === true;
  }

  /** Resolves once nothing of a former backend is in use. */
  async attach(share: ProxyShare): Promise<void> {
    this.#away = 'gone';
    const former = this.#attached;
    if (former?.backend.instance === share.backend.instance) {
      former.share = share;
      this.#wake();
      return;
    }
    this.#attached = new Attached(share);
    this.#wake();
    await former?.letGo();
  }

  /** Resolves once nothing of the share is in use. */
  async detach(away: Away): Promise<void> {
    this.#away = away;
    const former = this.#attached;
    this.#attached = undefined;
    if (away !== 'returning') this.#wake();
    await former?.letGo();
  }

  /**
   * Resolves with the backend's answer. Waits for a share that is away for a moment; rejects with
   * `Unavailable` when it does not come back.
   */
  async ask(call: BackendCall, options: AskOptions = {}): Promise<IncomingMessage> {
    const { signal, patience = signal } = options;
    const end = clock.now() < this.#waitsAgainAt ? 0 : clock.now() + UNREAD_MS;
    for (;;) {
      const { answered, attached } = await this.#answer(call, options);
      if (await isBelieved(call, answered, { attached, signal: patience })) return answered;
      answered.resume();
      if (clock.now() >= end) {
        if (end > 0) this.#waitsAgainAt = clock.now() + NO_MORE_WAIT_MS;
        throw new Unavailable(UNREAD);
      }
      await this.changed(TRY_AGAIN_MS, patience);
    }
  }

  /** The first answer that there is. */
  async #answer(
    call: BackendCall,
    { signal, patience = signal, isRepeatable = REPEATABLE.has(call.method) }: AskOptions,
  ): Promise<{ readonly answered: IncomingMessage; readonly attached: Attached }> {
    const end = clock.now() + AWAY_MS;
    for (;;) {
      const attached = await this.ready(end, patience, isChanging(call));
      try {
        const answered = await (isRepeatable
          ? attached.ask(call, signal)
          : attached.track(attached.ask(call, signal)));
        return { answered, attached };
      } catch (error) {
        patience?.throwIfAborted();
        if (clock.now() >= end || !mayRepeat(isRepeatable, error))
          throw new Unavailable(
            { status: 502, text: 'The share stopped answering in the middle of this.' },
            error,
          );
        await this.changed(TRY_AGAIN_MS, patience);
      }
    }
  }

  /** Resolves when the share can be changed; rejects with `Unavailable` when that does not come to pass in time. */
  async writable(signal: AbortSignal): Promise<void> {
    if (this.isFrozen) await this.ready(clock.now() + AWAY_MS, signal, true);
  }

  /** `isToChange`: the share is wanted to write to. */
  async ready(end: number, signal: AbortSignal | undefined, isToChange: boolean): Promise<Attached> {
    for (;;) {
      signal?.throwIfAborted();
      const isHeldUp = isToChange && this.isFrozen;
      const attached = this.#attached;
      if (!isHeldUp && attached?.isWhole === true) return attached;
      this.#refuseUnlessReturning();
      const leftMs = end - clock.now();
      if (leftMs <= 0) throw new Unavailable(isHeldUp ? FROZEN : AWAY);
      await this.changed(attached ? TRY_AGAIN_MS : leftMs, signal);
    }
  }

  #refuseUnlessReturning(): void {
    if (this.#attached) return;
    if (this.#away === 'absent') throw new Unavailable(NOT_MOUNTED);
    if (this.#away === 'gone') throw new Unavailable(NOT_HERE);
  }

  /** Resolves when the share is attached or detached, at the latest after `ms`. */
  async changed(ms: number, signal?: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const wake = (): void => stop.abort();
    this.#waiting.add(wake);
    signal?.addEventListener('abort', wake, { once: true });
    // Woken.
    await pause(clock, ms, stop.signal);
    signal?.removeEventListener('abort', wake);
    this.#waiting.delete(wake);
  }

  /** Whoever writes a file does so alone. Resolves with its release. */
  alone(path: string): Promise<() => void> {
    return this.#paths.enter(path);
  }

  #wake(): void {
    for (const wake of this.#waiting) wake();
  }
}

async function isBelieved(
  call: BackendCall,
  answered: IncomingMessage,
  { attached, signal }: { readonly attached: Attached; readonly signal: AbortSignal | undefined },
): Promise<boolean> {
  // The mount's own process answers otherwise.
  if (attached.backend.behind === undefined) return true;
  if (attached.isInDoubt && saysWhatIsMissing(call, answered)) return false;
  return !(await couldNotLook(call, answered, (one) => attached.ask(one, signal)));
}

/** All that is no reading, whether it may be sent once more or not. */
function isChanging({ method }: BackendCall): boolean {
  return !REPEATABLE.has(method);
}

function mayRepeat(isRepeatable: boolean, error: unknown): boolean {
  return isRepeatable || wasNeverReached(error);
}

export const NOT_HERE: Refusal = { status: 404, text: 'There is no such share here.' };
/** Not 404, which says of each file that it was deleted: who keeps copies in step would delete theirs. */
export const NOT_MOUNTED: Refusal = {
  status: 503,
  text:
    'The share is not served now: it is being changed and is back soon, or it is not mounted. Its files are where ' +
    'they were. Try again, or ask who runs this server.',
  headers: { 'retry-after': '15' },
};
const FROZEN: Refusal = {
  status: 503,
  text:
    'This share is being changed and can only be read until what waits in it has gone to the NAS. ' +
    'Try again later, or ask who runs this server.',
  headers: { 'retry-after': '15' },
};
export const UNREAD: Refusal = {
  status: 503,
  text: 'This cannot be read from the NAS just now; try again later.',
  headers: { 'retry-after': '5' },
};
export const AWAY: Refusal = {
  status: 503,
  text: 'The share is away for a moment; try again.',
  headers: { 'retry-after': '5' },
};
