/**
 * The answers so far, kept in the daemon and never in the page: a password is not sent back to the browser.
 */
import { randomUUID } from 'node:crypto';
import type { Clock, NasAnswers, SetupAnswers } from 'mountkeeper';

const MOST_SESSIONS = 16;
const LONGEST_MS = 30 * 60_000;

export interface Session {
  readonly id: string;
  nas: NasAnswers;
  /** The folder whose content is shown. */
  at: string;
  readonly folders: Set<string>;
  lan: SetupAnswers['lan'];
  /** Version of the configuration at the last review. */
  reviewed?: string | undefined;
}

export class Sessions {
  readonly #clock: Clock;
  readonly #sessions = new Map<string, { readonly session: Session; readonly begunAt: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  begin(nas: NasAnswers): Session {
    const session: Session = { id: randomUUID(), nas, at: '', folders: new Set(), lan: undefined };
    this.#sessions.set(session.id, { session, begunAt: this.#clock.monotonic() });
    for (const id of this.#sessions.keys())
      if (this.#sessions.size > MOST_SESSIONS) this.#sessions.delete(id);
    return session;
  }

  /** The session goes on with a NAS that is still the same; its password is kept where none was typed. */
  again(id: string | undefined, nas: NasAnswers): Session {
    const former = this.find(id);
    if (!former || !isSame(former.nas, nas)) return this.begin(nas);
    if (nas.password !== '') former.nas = nas;
    return former;
  }

  find(id: string | undefined): Session | undefined {
    for (const [key, { begunAt }] of this.#sessions)
      if (this.#clock.monotonic() - begunAt > LONGEST_MS) this.#sessions.delete(key);
    return id === undefined ? undefined : this.#sessions.get(id)?.session;
  }

  end(id: string): void {
    this.#sessions.delete(id);
  }
}

/** A password is kept for this server and user alone, and never sent to another one. */
function isSame(one: NasAnswers, other: NasAnswers): boolean {
  return one.kind === other.kind && one.address === other.address && one.user === other.user;
}
