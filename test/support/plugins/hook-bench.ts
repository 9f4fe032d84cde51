/** Hooks of a projection that a test makes of ledgers, on a clock that it turns. */
import { createManualClock } from 'mountkeeper/testing';
import type { Hooks } from 'mountkeeper';
import { createHooks } from '../../../core/plugins/hooks.ts';
import type { HookRunner } from '../../../core/plugins/hooks.ts';
import { emptyLedger } from '../../../core/plugins/instance/ledger.ts';
import type { Ledger, TapEntry } from '../../../core/plugins/instance/ledger.ts';
import { collectLog } from '../platform/collected-log.ts';

export type Taps = readonly (readonly [
  hook: keyof Hooks,
  fn: (...args: never[]) => unknown,
  stage?: number,
])[];

export function ledger(plugin: string, taps: Taps): Ledger {
  return {
    ...emptyLedger(plugin, false),
    taps: taps.map(([hook, fn, stage = 0]) => ({ hook, fn, stage }) as TapEntry),
  };
}

/** Of a third party. */
export function stranger(plugin: string, taps: Taps): Ledger {
  return { ...ledger(plugin, taps), routePrefix: `/ext/${plugin}` };
}

export interface Bench {
  readonly runner: HookRunner;
  readonly clock: ReturnType<typeof createManualClock>;
  readonly entries: readonly Record<string, unknown>[];
  readonly down: Set<string>;
  project(...ledgers: Ledger[]): Promise<void>;
}

export function bench(): Bench {
  const clock = createManualClock();
  const { log, entries } = collectLog();
  const down = new Set<string>();
  const { projector, runner } = createHooks({ clock, log, timeoutMs: 1_000 });
  const project = async (...ledgers: Ledger[]): Promise<void> =>
    (await projector.build(ledgers, (plugin) => !down.has(plugin))).commit();
  return { runner, clock, entries, down, project };
}
