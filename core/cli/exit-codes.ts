/** Exit codes of the command line (sysexits(3) where one fits). */
export const EXIT = { ok: 0, failure: 1, usage: 64, timeout: 75, config: 78 } as const;
