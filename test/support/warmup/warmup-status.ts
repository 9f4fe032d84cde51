/** What the warmup's tests share: its figures, its helper process. */
import type { Daemon, ShareJson } from '../daemon/daemon.ts';
import { allProcesses } from '../platform/processes.ts';
import type { SeenProcess } from '../platform/processes.ts';
import { until } from '../platform/wait.ts';

export interface RuleJson {
  readonly share: string;
  readonly path: string;
  readonly newer_than: string | null;
  readonly state: string;
  readonly total_files: number;
  readonly skipped: number;
  readonly cached: number;
  readonly errors: number;
}

export interface WarmShareJson extends ShareJson {
  readonly warmup_state: string;
  readonly warmup_done: number;
  readonly warmup_total: number;
}

/** The rule of a path as the status shows it. */
export async function ruleOf(daemon: Daemon, path: string): Promise<RuleJson | undefined> {
  const { warmup } = (await daemon.status()) as unknown as { warmup: RuleJson[] };
  return warmup.find((rule) => rule.path === path);
}

/** Waits until the rule of a path is in a state. Rejects at the deadline. */
export function inState(daemon: Daemon, path: string, state: string, timeoutMs = 30_000): Promise<RuleJson> {
  return until(
    `the rule of ${path} is ${state}`,
    async () => {
      const rule = await ruleOf(daemon, path);
      return rule?.state === state ? rule : undefined;
    },
    { timeoutMs, everyMs: 100 },
  );
}

/** Living helper processes of a daemon, also of one that has ended. */
export async function helpersOf(daemon: Daemon): Promise<readonly SeenProcess[]> {
  return (await allProcesses()).filter(
    (one) =>
      one.args.some((arg) => arg.endsWith('plugins/warmup/worker/worker.js')) &&
      one.command.includes(daemon.stateDir),
  );
}

export interface TaskJson {
  readonly path: string;
  readonly state: string;
  readonly dry_run: boolean;
  readonly total_files: number;
  readonly skipped: number;
  readonly cached: number;
  readonly errors: number;
  readonly total_bytes: number;
  readonly skipped_bytes: number;
}
