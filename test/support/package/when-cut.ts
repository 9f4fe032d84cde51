/** What a test process has begun ends with it when the run is cut short: no test gets to its `after` then. */
import { spawn } from 'node:child_process';
import type { ChildProcess, StdioOptions } from 'node:child_process';

const SIGNALS = { SIGTERM: 143, SIGINT: 130 } as const;

/** Starts a program that the kernel kills once this process has ended, by SIGKILL, too; not what that starts. */
export function spawnTied(command: string, args: readonly string[], stdio: StdioOptions): ChildProcess {
  return spawn('setpriv', ['--pdeathsig', 'KILL', command, ...args], { stdio });
}

/** Calls `clear`, which must not wait for anything, at SIGTERM and SIGINT, and exits. Returns what takes that back. */
export function onCut(clear: () => void): () => void {
  const cut = (signal: keyof typeof SIGNALS): void => {
    try {
      clear();
    } finally {
      process.exit(SIGNALS[signal]);
    }
  };
  const signals = Object.keys(SIGNALS) as (keyof typeof SIGNALS)[];
  for (const signal of signals) process.once(signal, cut);
  return () => {
    for (const signal of signals) process.off(signal, cut);
  };
}
