import { clock } from './clock.ts';
import type { Upstream } from './upstream.ts';
import type { UserName } from './visitors.ts';

/** Backends are told to let no lock last longer. */
const LONGEST_MS = 3_600_000;
/** Beyond it the oldest is forgotten: it ends by itself. */
const MOST = 10_000;
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

  forget(header: string | readonly string[] | undefined): void {
    for (const token of tokensIn(header)) this.#held.delete(token);
  }

  /** Gives up the locks of those who may not write. Rejects never: one that cannot be given up ends by itself. */
  async keepOnly(mayWrite: (user: UserName, share: string) => boolean): Promise<void> {
    const lost = [...this.#held].filter(([, { user, upstream }]) => !mayWrite(user, upstream.name));
    await Promise.all(lost.map(([token, held]) => this.#giveUp(token, held)));
  }

  async #giveUp(token: string, { upstream, path, host }: Held): Promise<void> {
    this.#held.delete(token);
    const headers = { host, 'lock-token': `<${token}>`, 'content-length': 0 };
    // A backend that is away has lost its locks.
    const answered = await upstream.attached?.ask({ method: 'UNLOCK', path, headers }).catch(() => undefined);
    answered?.resume();
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
