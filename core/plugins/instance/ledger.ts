/**
 * The ledger: everything one plugin declared, in order. The only truth about a plugin; hooks and HTTP routes
 * are projections of it.
 */
import type { Plugin as HapiPlugin, ServerRoute } from '@hapi/hapi';
import type { Awaitable, Release } from '../../contract/platform.ts';
import type { CliCommand } from '../../contract/cli.ts';
import type { Commands } from '../../contract/commands.ts';
import type { Config } from '../../contract/config.ts';
import type { Hooks } from '../../contract/hooks.ts';
import type { Interval, Job } from '../../contract/plugin.ts';
import type { Services } from '../../contract/services.ts';
import type { ShareStatus, StatusRecord } from '../../contract/status.ts';
import type { Tab } from '../../contract/dashboard.ts';
import type { DeclaredMetric } from './metric.ts';

export interface TapEntry {
  readonly hook: keyof Hooks;
  readonly fn: (...args: never[]) => Awaitable<unknown>;
  readonly stage: number;
}
export interface HandlerEntry {
  readonly command: keyof Commands;
  readonly fn: (...args: never[]) => Promise<unknown>;
}
export interface StatusEntry {
  readonly field: keyof StatusRecord;
  readonly read: () => unknown;
}
export interface HapiEntry {
  readonly plugin: HapiPlugin<unknown>;
  readonly options: unknown;
}
export interface ServiceEntry {
  readonly name: keyof Services;
  readonly create: () => unknown;
}
export interface EffectEntry {
  readonly label: string;
  readonly acquire: (signal: AbortSignal) => Awaitable<Release>;
}

export interface Ledger {
  readonly plugin: string;
  /** See `Plugin.guard`. */
  readonly guard: boolean;
  readonly taps: readonly TapEntry[];
  readonly handlers: readonly HandlerEntry[];
  readonly statusFields: readonly StatusEntry[];
  readonly shareStatus: readonly ((share: string) => Partial<ShareStatus>)[];
  readonly routes: readonly ServerRoute[];
  readonly hapi: readonly HapiEntry[];
  readonly tabs: readonly Tab[];
  readonly cli: readonly CliCommand[];
  readonly metrics: readonly DeclaredMetric[];
  readonly services: readonly ServiceEntry[];
  readonly jobs: readonly Job[];
  readonly intervals: readonly Interval[];
  readonly effects: readonly EffectEntry[];
  readonly configListeners: readonly ((next: never, previous: never) => void)[];
}

/** A projection that was built from all ledgers beside the one in force. */
export interface BuiltProjection {
  /** Puts it in force. Synchronous, must not throw. */
  commit(): void;
  /** Throws it away; the one in force stays. */
  discard(): Promise<void>;
}

/** Builds one projection. Any rejection refuses the whole change, with nothing altered. */
export interface Projector {
  readonly name: string;
  /**
   * `isActive` answers, at request time, whether a plugin's effects are up; until then its routes answer 503.
   */
  build(ledgers: readonly Ledger[], isActive: (plugin: string) => boolean): Promise<BuiltProjection>;
}

/** Config document type for callers that have it at hand without importing the contract. */
export type { Config };

/** The parts of a ledger that are lists. */
export type LedgerList = {
  [K in keyof Ledger]: Ledger[K] extends readonly unknown[] ? K : never;
}[keyof Ledger];

type Draft = { -readonly [K in keyof Ledger]: Ledger[K] extends readonly (infer E)[] ? E[] : Ledger[K] };

/** Writes one ledger while `register()` runs; frozen, it refuses everything that comes late. */
export interface Recorder {
  readonly ledger: Ledger;
  record<K extends LedgerList>(verb: string, list: K, ...entries: Ledger[K][number][]): void;
  /** Refuses further entries and freezes the ledger. */
  seal(): void;
}

/** A ledger without entries. For a guard that is not up it keeps the door shut. */
export function emptyLedger(plugin: string, guard: boolean): Ledger {
  return {
    plugin,
    guard,
    taps: [],
    handlers: [],
    statusFields: [],
    shareStatus: [],
    routes: [],
    hapi: [],
    tabs: [],
    cli: [],
    metrics: [],
    services: [],
    jobs: [],
    intervals: [],
    effects: [],
    configListeners: [],
  };
}

export function isEmptyLedger(ledger: Ledger): boolean {
  return Object.values(ledger).every((value) => !Array.isArray(value) || value.length === 0);
}

export function createRecorder(plugin: string, guard: boolean): Recorder {
  const draft = emptyLedger(plugin, guard) as Draft;
  let sealed = false;
  return {
    ledger: draft,
    record(verb, list, ...entries) {
      if (sealed) {
        throw new Error(
          `plugin ${plugin} called ctx.${verb}() after register() had returned; declare everything inside register()`,
        );
      }
      (draft[list] as unknown[]).push(...entries);
    },
    seal() {
      sealed = true;
      for (const value of Object.values(draft)) if (Array.isArray(value)) Object.freeze(value);
      Object.freeze(draft);
    },
  };
}
