/**
 * Notices the end of processes that are not the daemon's own children. One timer for all of them, and none while there are
 * none; it does not keep the daemon alive.
 */
import type { Clock } from '../services.ts';
import { isRunning } from './proc-stat.ts';
import type { ProcessIdentity } from './proc-stat.ts';

const INTERVAL_MS = 250;

export interface ExitWatch {
  /** Calls `onExit` once, when the process has ended. The returned function stops watching. */
  add(identity: ProcessIdentity, onExit: () => void): () => void;
}

export function createExitWatch(clock: Clock): ExitWatch {
  const watched = new Map<symbol, { readonly identity: ProcessIdentity; readonly onExit: () => void }>();
  let cancel: (() => void) | undefined;
  const look = (): void => {
    for (const [id, { identity, onExit }] of watched) {
      if (isRunning(identity)) continue;
      watched.delete(id);
      onExit();
    }
    cancel = watched.size > 0 ? clock.after(INTERVAL_MS, look) : undefined;
  };
  return {
    add: (identity, onExit) => {
      const id = Symbol('watched');
      watched.set(id, { identity, onExit });
      cancel ??= clock.after(INTERVAL_MS, look);
      return () => {
        watched.delete(id);
        if (watched.size > 0) return;
        cancel?.();
        cancel = undefined;
      };
    },
  };
}
