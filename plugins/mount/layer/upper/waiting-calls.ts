/** Calls that ask the lower layer wait while what lies there is changed in several steps. */

export interface WaitingCallsOptions {
  /** Lets calls that ask the lower layer wait until what it returns is called. Absent: nobody waits. */
  readonly holdCalls?: (() => () => void) | undefined;
  /** Lets those end that had begun before: they have come by what is to change. */
  readonly settleCalls?: (() => Promise<void>) | undefined;
}

export interface WaitingCalls {
  readonly begin: () => Promise<void>;
  readonly release: () => void;
}

/**
 * Calls wait from `begin` to `release`. Those that had begun before end first, by the former marks and listings; when
 * it is begun once more in the midst of a change, nobody may go on, so that only gives it more time.
 */
export function waitingCalls({ holdCalls, settleCalls }: WaitingCallsOptions): WaitingCalls {
  let release: (() => void) | undefined;
  return {
    begin: async () => {
      const isFirst = release === undefined;
      release = holdCalls?.() ?? (() => undefined);
      if (isFirst) await settleCalls?.();
    },
    release: () => release?.(),
  };
}
