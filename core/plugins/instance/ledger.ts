/**
 * The ledger: everything one plugin declared, in order. It is the only truth about a plugin; hooks and HTTP
 * routes are projections of it.
 */
import type { Plugin as HapiPlugin, ServerRoute } from '@hapi/hapi';
import type { Schema } from 'joi';
import type { Awaitable, Release } from '../../contract/platform.ts';
import type { CliCommand } from '../../contract/cli.ts';
import type { Commands } from '../../contract/commands.ts';
import type { Config } from '../../contract/config.ts';
import type { Hooks } from '../../contract/hooks.ts';
import type { Interval, Job, WithRelease } from '../../contract/plugin.ts';
import type { Services } from '../../contract/services.ts';
import type { Tab } from '../../contract/dashboard.ts';
import type { WebhookFormat } from '../../contract/notifications.ts';
import { entryOf as actingEntry } from './acting-plugin.ts';
import type { Actor } from './acting-plugin.ts';
import type { Place } from '../../sdk/stall-watch.ts';
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
  readonly field: string;
  readonly read: () => unknown;
  /** Undefined where none was given. */
  readonly default?: unknown;
}
export interface ShareStatusEntry {
  readonly read: (share: string) => unknown;
  /** Undefined where none were given: it may give any field. */
  readonly defaults?: Readonly<Record<string, unknown>>;
}
export interface HapiEntry {
  readonly plugin: HapiPlugin<unknown>;
  readonly options: unknown;
}
export interface ServiceEntry {
  readonly name: keyof Services;
  /** A service, or one with its release. */
  readonly create: () => unknown;
}
export interface EventEntry {
  /** In full, the plugin's name before a colon. */
  readonly name: string;
  readonly summary: string;
  readonly value: Schema;
}
export interface ListenerEntry {
  readonly event: string;
  readonly fn: (value: never) => Awaitable<unknown>;
}
export interface EffectEntry {
  readonly label: string;
  readonly acquire: (signal: AbortSignal) => Awaitable<Release | WithRelease<unknown>>;
}

export interface Ledger {
  readonly plugin: string;
  /** See `Plugin.guard`. */
  readonly guard: boolean;
  /** A third party's routes are here and below; empty for a plugin that comes with Mountkeeper. */
  readonly routePrefix: string;
  /** Of a third party's whose code runs in this process. */
  readonly actor?: Actor;
  readonly taps: readonly TapEntry[];
  readonly handlers: readonly HandlerEntry[];
  readonly statusFields: readonly StatusEntry[];
  readonly shareStatus: readonly ShareStatusEntry[];
  readonly routes: readonly ServerRoute[];
  readonly hapi: readonly HapiEntry[];
  readonly tabs: readonly Tab[];
  readonly cli: readonly CliCommand[];
  readonly webhookFormats: readonly WebhookFormat[];
  readonly events: readonly EventEntry[];
  readonly listeners: readonly ListenerEntry[];
  readonly metrics: readonly DeclaredMetric[];
  readonly services: readonly ServiceEntry[];
  readonly jobs: readonly Job[];
  readonly intervals: readonly Interval[];
  readonly effects: readonly EffectEntry[];
  readonly configListeners: readonly ((next: never, previous: never) => void)[];
}

/** One of a plugin's, as it is named where it holds up everything else; `at` such as `hook afterCycle`. */
export function placeIn(
  { plugin, routePrefix, actor }: Pick<Ledger, 'plugin' | 'routePrefix' | 'actor'>,
  at: string,
): Place {
  const isElsewhere = routePrefix !== '' && !actor;
  return { plugin, at, isElsewhere };
}

/** A projection built from all ledgers, ready to replace the current one. */
export interface BuiltProjection {
  /** Makes it the current one. Synchronous, must not throw. */
  commit(): void;
  /** Drops it; the current one stays. */
  discard(): Promise<void>;
}

/**
 * Builds one projection. Any rejection refuses the whole change, with nothing altered. It has time limits for all that
 * is a plugin's: nobody else ends a build that takes too long.
 */
export interface Projector {
  readonly name: string;
  /** `isActive` tells, at request time, whether a plugin is active; until then its routes answer 503. */
  build(ledgers: readonly Ledger[], isActive: (plugin: string) => boolean): Promise<BuiltProjection>;
}

/** Re-exported for callers that do not import the contract. */
export type { Config };

/** The parts of a ledger that are lists. */
export type LedgerList = {
  [K in keyof Ledger]-?: Ledger[K] extends readonly unknown[] ? K : never;
}[keyof Ledger];

type Draft = { -readonly [K in keyof Ledger]: Ledger[K] extends readonly (infer E)[] ? E[] : Ledger[K] };

/** Writes one ledger while `register()` runs; refuses entries after that. */
export interface Recorder {
  readonly ledger: Ledger;
  record<K extends LedgerList>(verb: string, list: K, ...entries: Ledger[K][number][]): void;
  /** Refuses further entries and freezes the ledger. */
  freeze(): void;
}

/**
 * A ledger without entries. For an authentication plugin that is not active, it makes the server refuse
 * requests.
 */
export function emptyLedger(plugin: string, guard: boolean, routePrefix = ''): Ledger {
  return {
    plugin,
    guard,
    routePrefix,
    taps: [],
    handlers: [],
    statusFields: [],
    shareStatus: [],
    routes: [],
    hapi: [],
    tabs: [],
    cli: [],
    webhookFormats: [],
    events: [],
    listeners: [],
    metrics: [],
    services: [],
    jobs: [],
    intervals: [],
    effects: [],
    configListeners: [],
  };
}

/** Whether a projection of the one would be a projection of the other. */
export function sameLedgers(next: readonly Ledger[], projected: readonly Ledger[]): boolean {
  return (
    next.length === projected.length &&
    next.every((ledger, index) => ledger === projected[index] || isSameEmpty(ledger, projected[index]))
  );
}

/** The empty ledger of an inactive authentication plugin is created again each time. */
function isSameEmpty(a: Ledger, b: Ledger | undefined): boolean {
  return a.plugin === b?.plugin && isEmptyLedger(a) && isEmptyLedger(b);
}

export function isEmptyLedger(ledger: Ledger): boolean {
  return Object.values(ledger).every((value) => !Array.isArray(value) || value.length === 0);
}

/** Lists of what the core calls by itself; what else is called runs within the plugin's activation, or a route. */
const CALLED: ReadonlySet<LedgerList> = new Set<LedgerList>([
  'taps',
  'handlers',
  'statusFields',
  'shareStatus',
  'tabs',
  'webhookFormats',
  'listeners',
  'metrics',
  'intervals',
  'jobs',
]);

export interface RecorderOptions {
  readonly guard: boolean;
  readonly routePrefix?: string;
  readonly actor?: Actor | undefined;
}

export function createRecorder(plugin: string, { guard, routePrefix, actor }: RecorderOptions): Recorder {
  const draft = { ...emptyLedger(plugin, guard, routePrefix), ...(actor && { actor }) } as Draft;
  let frozen = false;
  return {
    ledger: draft,
    record(verb, list, ...entries) {
      if (frozen) {
        throw new Error(
          `plugin ${plugin} called ctx.${verb}() after register() had returned; declare everything inside register()`,
        );
      }
      const own = actor && CALLED.has(list) ? entries.map((entry) => actingEntry(actor, entry)) : entries;
      (draft[list] as unknown[]).push(...own);
    },
    freeze() {
      frozen = true;
      for (const value of Object.values(draft)) if (Array.isArray(value)) Object.freeze(value);
      Object.freeze(draft);
    },
  };
}
