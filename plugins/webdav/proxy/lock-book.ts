import type { Clock } from 'mountkeeper';
import { endsWithin } from 'mountkeeper/sdk';
import { clock as realClock } from './clock.ts';
import type { Upstream } from './upstream.ts';
import type { UserName, Visit } from './visitors.ts';

/** Backends are told to let no lock last longer. */
const LONGEST_MS = 3_600_000;
/** Beyond it the oldest is forgotten: it ends by itself. */
const MOST = 10_000;
/** How long the work of those who were put out may take to end before their locks are given up. */
const ENDED_WITHIN_MS = 10_000;
/** Between the first two tries; then twice as long each time. */
const TRY_AGAIN_MS = 1_000;
const LONGEST_WAIT_MS = 30_000;
/** Then a lock is left to end by itself. */
const TRY_FOR_MS = 300_000;
/** A request is under way that goes by this lock. */
const IN_USE = 423;
const TOKENS = /<([^<>]+)>/g;

interface Held {
  readonly user: UserName;
  readonly upstream: Upstream;
  readonly path: string;
  readonly host: string;
  readonly untilMs: number;
}

/** Locks by their tokens, and whose they are: a user who may not write any more holds up nobody. */
export class LockBook {
  readonly #held = new Map<string, Held>();
  /** Locks that are being given up, by their tokens, each with a mark of its own. */
  readonly #leaving = new Map<string, symbol>();
  readonly #clock: Clock;

  constructor(clock: Clock = realClock) {
    this.#clock = clock;
  }

  /** `header`: of the backend's answer that gives the lock. */
  note(header: string | readonly string[] | undefined, held: Omit<Held, 'untilMs'>): void {
    const [token] = tokensIn(header);
    if (token === undefined) return;
    this.#dropOld();
    this.#held.set(token, { ...held, untilMs: this.#clock.now() + LONGEST_MS });
  }

  /** `header`: the condition by which a client says which of its locks it prolongs. */
  prolong(header: string | readonly string[] | undefined): void {
    for (const token of tokensIn(header)) {
      const held = this.#held.get(token);
      // The oldest stand first.
      this.#held.delete(token);
      if (held) this.#held.set(token, { ...held, untilMs: this.#clock.now() + LONGEST_MS });
    }
  }

  /** Gives up a lock that its client has not heard of and never will. Rejects never. */
  async drop(header: string | readonly string[] | undefined, held: Omit<Held, 'untilMs'>): Promise<void> {
    await Promise.all(tokensIn(header).map((token) => giveUp(token, held, [this.#clock, () => true])));
  }

  forget(header: string | readonly string[] | undefined): void {
    for (const token of tokensIn(header)) this.#held.delete(token);
  }

  /**
   * Gives up the locks of those who may not write, each once what was `ended` of them is over: their half
   * uploads are taken back under these locks. One whose user may write again by then (`mayWrite` is asked before
   * each try) stays. Rejects never: one that cannot be given up ends by itself.
   */
  async keepOnly(
    mayWrite: (user: UserName, share: string) => boolean,
    ended: readonly Visit[],
  ): Promise<void> {
    const isLost = ({ user, upstream }: Held): boolean => !mayWrite(user, upstream.name);
    for (const [token, held] of this.#held) if (!isLost(held)) this.#leaving.delete(token);
    const lost = [...this.#held].filter(([token, held]) => isLost(held) && !this.#leaving.has(token));
    await Promise.all(
      lost.map(async ([token, held]) => {
        const mark = Symbol(token);
        this.#leaving.set(token, mark);
        const last = ended.filter(({ user, share }) => user === held.user && share === held.upstream.name);
        await endsWithin(this.#clock, ENDED_WITHIN_MS, Promise.all(last.map(({ over }) => over)));
        const isOver = await giveUp(token, held, [
          this.#clock,
          () => this.#leaving.get(token) === mark && isLost(held),
        ]);
        if (isOver) this.#held.delete(token);
        if (this.#leaving.get(token) === mark) this.#leaving.delete(token);
      }),
    );
  }

  #dropOld(): void {
    const now = this.#clock.now();
    for (const [token, { untilMs }] of this.#held) {
      if (untilMs > now && this.#held.size < MOST) return;
      this.#held.delete(token);
    }
  }
}

function tokensIn(header: string | readonly string[] | undefined): readonly string[] {
  return [...String(header ?? '').matchAll(TOKENS)].map(([, token = '']) => token);
}

/** Resolves with false as soon as `isWanted` says so, and with true when there is no more to be done. */
async function giveUp(
  token: string,
  { upstream, path, host }: Omit<Held, 'untilMs'>,
  [clock, isWanted]: readonly [Clock, () => boolean],
): Promise<boolean> {
  const headers = { host, 'lock-token': `<${token}>`, 'content-length': 0 };
  const end = clock.monotonic() + TRY_FOR_MS;
  for (let waitMs = TRY_AGAIN_MS; clock.monotonic() < end; waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)) {
    if (!isWanted()) return false;
    // A backend that is away has lost its locks.
    const answered = await upstream.attached?.ask({ method: 'UNLOCK', path, headers }).catch(() => undefined);
    answered?.resume();
    if (answered?.statusCode !== IN_USE) return true;
    await clock.sleep(waitMs);
  }
  return true;
}
