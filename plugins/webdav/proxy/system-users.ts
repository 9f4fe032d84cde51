/**
 * Users of the machine. This process has no right to see whether their passwords are right, and no word to the daemon
 * but what that one fetches: each question waits here until then.
 */
import { randomUUID } from 'node:crypto';
import type { Clock } from 'mountkeeper';
import type { BasicCredentials } from 'mountkeeper/sdk';
import type { Refusal } from './answer.ts';
import { SYSTEM_ANSWER_MS } from './state.ts';
import type { SystemQuestion } from './state.ts';
import { Unavailable } from './upstream.ts';

/** An answer counts this long: then the account may have been locked, or unlocked, and is asked about again. */
export const ANSWER_COUNTS_MS = 30_000;
/** A daemon that has fetched nothing for so long is answered that there is nothing. */
const FETCH_MS = 20_000;
/** Of those that were not right lately: whoever guesses takes no place from the others, which are `MOST_RIGHT`. */
const MOST_WAITING = 64;
const MOST_RIGHT = 1_000;
/** As PAM takes them. */
const LONGEST_PASSWORD_BYTES = 511;
const CANNOT_ASK: Refusal = {
  status: 503,
  text: 'The password cannot be checked just now; try again in a moment.',
  headers: { 'retry-after': '5' },
};

interface Waiting {
  readonly wasRight: boolean;
  readonly settle: (isRight: boolean | null) => void;
}

export class SystemUsers {
  readonly #clock: Pick<Clock, 'monotonic' | 'after'>;
  #names: ReadonlySet<string> = new Set();
  #own: ReadonlySet<string> = new Set();
  /** Until when each counts as right, by its digest; those that have run out stay for a while: see `wasRight`. */
  readonly #right = new Map<string, number>();
  /** By digest: many requests at once ask one question. */
  readonly #asked = new Map<string, Promise<boolean>>();
  readonly #waiting = new Map<string, Waiting>();
  #questions: readonly SystemQuestion[] = [];
  readonly #fetching = new Set<() => void>();

  constructor(clock: Pick<Clock, 'monotonic' | 'after'>) {
    this.#clock = clock;
  }

  /** Those of whom an answer counts. `own`: names in NFC of whom nobody is asked, since the document has them. */
  admitOnly(names: readonly string[], own: ReadonlySet<string> = new Set()): void {
    this.#names = new Set(names);
    this.#own = own;
    this.#right.clear();
    this.#asked.clear();
  }

  has(name: string): boolean {
    return this.#names.has(name);
  }

  /**
   * Whether there is a question about this name. While there are any members there is one about everybody: otherwise
   * the answers would tell who is one as soon as nobody can say.
   */
  asksAbout(name: string): boolean {
    return this.#names.size > 0 && !this.#own.has(name.normalize('NFC'));
  }

  /** `digest` stands for the credentials. Rejects where nobody can say. */
  async isRight(credentials: BasicCredentials, digest: string): Promise<boolean> {
    if (!this.asksAbout(credentials.username) || !isPassword(credentials.password)) return false;
    const until = this.#right.get(digest);
    if (until !== undefined && until > this.#clock.monotonic()) return true;
    return this.#asked.get(digest) ?? this.#askOnce(credentials, digest, until !== undefined);
  }

  /** What is to be found out; waits for the first. Empty: nothing came in time, or `gone` has aborted. */
  async fetch(gone: AbortSignal): Promise<readonly SystemQuestion[]> {
    if (this.#questions.length === 0) await this.#wake(gone);
    if (gone.aborted) return [];
    const questions = this.#questions;
    this.#questions = [];
    return questions;
  }

  /** Null: it could not be found out. */
  answer(id: string, isRight: boolean | null): void {
    this.#waiting.get(id)?.settle(isRight);
  }

  /** Throws where too many are waiting, and keeps nothing of it then. */
  #askOnce(credentials: BasicCredentials, digest: string, wasRight: boolean): Promise<boolean> {
    const guesses = [...this.#waiting.values()].filter((one) => !one.wasRight);
    if (!wasRight && guesses.length >= MOST_WAITING) throw new Unavailable(CANNOT_ASK);
    const asked = this.#ask(credentials, digest, wasRight).finally(() => {
      // With others admitted, it may be asked anew by now.
      if (this.#asked.get(digest) === asked) this.#asked.delete(digest);
    });
    this.#asked.set(digest, asked);
    return asked;
  }

  async #ask(
    { username: name, password }: BasicCredentials,
    digest: string,
    wasRight: boolean,
  ): Promise<boolean> {
    const names = this.#names;
    const isRight = await this.#answerTo({ id: randomUUID(), name, password, wasRight });
    if (isRight === null) throw new Unavailable(CANNOT_ASK);
    // An answer from before others were admitted says nothing of those.
    if (isRight && this.has(name) && names === this.#names) this.#remember(digest);
    else this.#right.delete(digest);
    return isRight && this.has(name);
  }

  #answerTo(question: SystemQuestion): Promise<boolean | null> {
    return new Promise((resolve) => {
      const settle = (isRight: boolean | null): void => {
        cancel();
        this.#waiting.delete(question.id);
        this.#questions = this.#questions.filter(({ id }) => id !== question.id);
        resolve(isRight);
      };
      const cancel = this.#clock.after(SYSTEM_ANSWER_MS, () => settle(null));
      this.#waiting.set(question.id, { wasRight: question.wasRight, settle });
      this.#questions = [...this.#questions, question];
      for (const go of [...this.#fetching].slice(0, 1)) go();
    });
  }

  #wake(gone: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        cancel();
        gone.removeEventListener('abort', go);
        this.#fetching.delete(go);
        resolve();
      };
      const cancel = this.#clock.after(FETCH_MS, go);
      this.#fetching.add(go);
      gone.addEventListener('abort', go, { once: true });
    });
  }

  #remember(digest: string): void {
    this.#right.delete(digest);
    this.#right.set(digest, this.#clock.monotonic() + ANSWER_COUNTS_MS);
    for (const oldest of this.#right.keys()) {
      if (this.#right.size <= MOST_RIGHT) return;
      this.#right.delete(oldest);
    }
  }
}

/** No empty one, which PAM's own set-up may allow, and no sign that would end the line that it is handed over in. */
function isPassword(text: string): boolean {
  return text !== '' && Buffer.byteLength(text) <= LONGEST_PASSWORD_BYTES && !/[\0-\x1f\x7f]/.test(text);
}
