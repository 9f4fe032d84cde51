/**
 * Notices the end of processes that are not the daemon's own children. One timer polls all of them; there
 * is none while nothing is watched. It does not keep the daemon alive.
 */
import type { Clock } from '../../contract/platform.ts';
import { isRunning } from './proc-stat.ts';
import type { ProcessIdentity } from './proc-stat.ts';

const INTERVAL_MS = 250;

/** One process under watch. */
export interface Watched {
  /** Checks now instead of at the next interval. */
  look(): void;
  cancel(): void;
}

export interface ExitWatch {
  /** Calls `onExit` once, when the process has ended. */
  add(identity: ProcessIdentity, onExit: () => void): Watched;
}

export function createExitWatch(clock: Clock): ExitWatch {
  const watched = new Map<symbol, { readonly identity: ProcessIdentity; readonly onExit: () => void }>();
  let cancel: (() => void) | undefined;
  const look = (id: symbol): void => {
    const entry = watched.get(id);
    if (entry === undefined || isRunning(entry.identity)) return;
    watched.delete(id);
    entry.onExit();
  };
  const lookAtAll = (): void => {
    for (const id of watched.keys()) look(id);
    cancel = watched.size > 0 ? clock.after(INTERVAL_MS, lookAtAll) : undefined;
  };
  return {
    add: (identity, onExit) => {
      const id = Symbol('watched');
      watched.set(id, { identity, onExit });
      cancel ??= clock.after(INTERVAL_MS, lookAtAll);
      return {
        look: () => look(id),
        cancel: () => {
          watched.delete(id);
          if (watched.size > 0) return;
          cancel?.();
          cancel = undefined;
        },
      };
    },
  };
}
