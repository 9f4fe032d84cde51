import { entranceOf } from 'mountkeeper/sdk';
import type { Entrance, ShareAccess } from 'mountkeeper/sdk';
import { Sessions } from './sessions.ts';
import type { Origin } from './sessions.ts';
import type { ProxyState } from './state.ts';

/** Composed (NFC), as logins are. Undefined: somebody whom a server without users has let in. */
export type UserName = string | undefined;

export interface Visit {
  readonly user: UserName;
  readonly share: string;
  /** Undefined: the daemon asks whether the share is there; that is nobody's session. */
  readonly from: Origin | undefined;
  readonly isWriting: boolean;
  readonly end: () => void;
  /** Resolves when all is done that the visit has begun, a half upload's take-back, too. */
  readonly over: Promise<unknown>;
}

type Admitted = Pick<ProxyState, 'users' | 'systemUsers' | 'isOpen' | 'access'>;

/** Who may do what in which share, and who is doing something now. Nobody may do anything until it is told. */
export class Visitors {
  readonly #visits = new Set<Visit>();
  readonly sessions = new Sessions();
  #access: ReadonlyMap<string, ShareAccess> = new Map();
  /** Undefined: there are no users, and everybody is let in. */
  #users: ReadonlySet<string> | undefined = new Set();

  /** Ends what is under way and not permitted any more, as if its client had gone; returns what that was. */
  admitOnly({ users, systemUsers = [], isOpen, access }: Admitted): readonly Visit[] {
    const names = [...users.map(({ name }) => name), ...systemUsers];
    this.#users = isOpen ? undefined : new Set(names.map((name) => name.normalize('NFC')));
    this.#access = new Map(Object.entries(access));
    const ended = [...this.#visits].filter((visit) => !this.#mayStay(visit));
    for (const visit of ended) visit.end();
    return ended;
  }

  entrance(user: UserName, share: string): Entrance {
    const isKnown = user === undefined ? this.#users === undefined : this.#users?.has(user) === true;
    return isKnown ? entranceOf(this.#access.get(share), user) : 'none';
  }

  /** Until it is over. */
  enter(visit: Visit): void {
    this.#visits.add(visit);
    const { user, share, from } = visit;
    const leave = from && this.sessions.enter({ user, share }, from);
    void visit.over.then(() => {
      this.#visits.delete(visit);
      leave?.();
    });
  }

  #mayStay({ user, share, isWriting }: Visit): boolean {
    const entrance = this.entrance(user, share);
    return entrance === 'write' || (entrance === 'read' && !isWriting);
  }
}
