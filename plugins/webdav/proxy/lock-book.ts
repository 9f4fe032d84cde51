import { endsWithin } from 'mountkeeper/sdk';
import { clock } from './clock.ts';
import type { Upstream } from './upstream.ts';
import type { UserName, Visit } from './visitors.ts';

/** Backends are told to let no lock last longer. */
const LONGEST_MS = 3_600_000;
/** Beyond it the oldest is forgotten: it ends by itself. */
const MOST = 10_000;
/** How long the work of those who were put out may take to end before their locks are given up. */
const ENDED_WITHIN_MS = 10_000;
const TRY_AGAIN_MS = 1_000;
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

  /** `header`: of the backend's answer that gives the lock. */
  note(header: string | readonly string[] | undefined, held: Omit<Held, 'untilMs'>): void {
    const [token] = tokensIn(header);
    if (token === undefined) return;
    this.#dropOld();
    this.#held.set(token, { ...held, untilMs: clock.now() + LONGEST_MS });
  }

  /** `header`: the condition by which a client says which of its locks it prolongs. */
  prolong(header: string | readonly string[] | undefined): void {
    for (const token of tokensIn(header)) {
      const held = this.#held.get(token);
      // The oldest stand first.
      this.#held.delete(token);
      if (held) this.#held.set(token, { ...held, untilMs: clock.now() + LONGEST_MS });
    }
  }

  /** Gives up a lock that its client has not heard of and never will. Rejects never. */
  async drop(header: string | readonly string[] | undefined, held: Omit<Held, 'untilMs'>): Promise<void> {
    const untilMs = clock.now() + LONGEST_MS;
    await Promise.all(tokensIn(header).map((token) => giveUp(token, { ...held, untilMs })));
  }

  forget(header: string | readonly string[] | undefined): void {
    for (const token of tokensIn(header)) this.#held.delete(token);
  }

  /**
   * Gives up the locks of those who may not write, each once what was `ended` of them is over: their half
   * uploads are taken back under these locks. Rejects never: one that cannot be given up ends by itself.
   */
  async keepOnly(
    mayWrite: (user: UserName, share: string) => boolean,
    ended: readonly Visit[],
  ): Promise<void> {
    const lost = [...this.#held].filter(([, { user, upstream }]) => !mayWrite(user, upstream.name));
    for (const [token] of lost) this.#held.delete(token);
    await Promise.all(
      lost.map(async ([token, held]) => {
        const last = ended.filter(({ user, share }) => user === held.user && share === held.upstream.name);
        await endsWithin(clock, ENDED_WITHIN_MS, Promise.all(last.map(({ over }) => over)));
        await giveUp(token, held);
      }),
    );
  }

  #dropOld(): void {
    const now = clock.now();
    for (const [token, { untilMs }] of this.#held) {
      if (untilMs > now && this.#held.size < MOST) return;
      this.#held.delete(token);
    }
  }
}

function tokensIn(header: string | readonly string[] | undefined): readonly string[] {
  return [...String(header ?? '').matchAll(TOKENS)].map(([, token = '']) => token);
}

async function giveUp(token: string, { upstream, path, host, untilMs }: Held): Promise<void> {
  const headers = { host, 'lock-token': `<${token}>`, 'content-length': 0 };
  while (clock.now() < untilMs) {
    // A backend that is away has lost its locks.
    const answered = await upstream.attached?.ask({ method: 'UNLOCK', path, headers }).catch(() => undefined);
    answered?.resume();
    if (answered?.statusCode !== IN_USE) return;
    await clock.sleep(TRY_AGAIN_MS);
  }
}
