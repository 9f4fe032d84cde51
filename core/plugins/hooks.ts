/**
 * The list of hooks and their projection: new tapable hooks built from all ledgers, swapped in one
 * assignment. A tap that throws, hangs or returns garbage is logged with its plugin's name and skipped; the
 * others are not affected.
 */
import { AsyncParallelHook, AsyncSeriesBailHook, AsyncSeriesHook, SyncWaterfallHook } from 'tapable';
import type { Hooks } from '../contract/hooks.ts';
import { hookKinds } from './instance/hook-kinds.ts';
import type { CollectHook, ObserveHook, ResolveHook, VetoHook } from './instance/hook-kinds.ts';
import { bandwidth, check, notice, shareLimit, shareTrouble } from './instance/given-values.ts';
import { placeIn } from './instance/ledger.ts';
import type { Ledger, Projector, TapEntry } from './instance/ledger.ts';
import { StallWatch } from '../sdk/stall-watch.ts';
import type { Place } from '../sdk/stall-watch.ts';
import { TimeBoxError, timeBox } from '../platform/deadline.ts';
import { CARRIED_HOOKS } from './runner/protocol.ts';
import { StrangerTaps } from './instance/stranger-taps.ts';
import type { StrangerTap } from './instance/stranger-taps.ts';
import { isA, sentence } from '../platform/log/thrown.ts';
import { reasonOf } from '../sdk/reason-of.ts';
import type { Clock, Logger } from '../contract/platform.ts';

/** Checks what the taps of a plugin return; each throws a sentence about a value that cannot be used. */
const ANSWERS: Readonly<Record<ResolveHook | CollectHook, (answer: unknown, plugin: string) => unknown>> = {
  resolveBandwidth: bandwidth,
  collectShareLimits: shareLimit,
  collectShareTroubles: shareTrouble,
  collectNotices: notice,
  collectChecks: check,
};
/** A reason is shown to people, so its length is limited. */
const LONGEST_REASON = 1_000;
const MOST_ITEMS = 200;

/** Runs the hooks of the current projection. Never rejects or throws because of a plugin. */
export interface HookRunner {
  /** The first reason returned, or undefined when no tap objects. Third parties are asked last, side by side. */
  veto<K extends VetoHook>(hook: K, ...args: Hooks[K]['args']): Promise<string | undefined>;
  observe<K extends ObserveHook>(hook: K, ...args: Hooks[K]['args']): Promise<void>;
  resolve<K extends ResolveHook>(hook: K, value: Hooks[K]['args'][0]): Hooks[K]['result'];
  collect<K extends CollectHook>(
    hook: K,
    ...args: Hooks[K]['args']
  ): Promise<readonly Hooks[K]['result'][number][]>;
}

export interface HookOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** Longest wait for all taps of one plugin in one call of a hook; default 5 s. */
  readonly timeoutMs?: number;
  /** Default: one of its own. */
  readonly stalls?: StallWatch;
}

interface WatchedOptions extends HookOptions {
  readonly stalls: StallWatch;
  readonly patience: Patience;
  readonly strangers: StrangerTaps;
}

/** However many taps a plugin has in a hook, it is waited for as if it had one. */
class Patience {
  /** Calls that go on after their limit, by plugin and hook. */
  readonly #hanging = new Map<string, number>();
  /** Milliseconds that each plugin has taken, by the arguments of the call. */
  readonly #spent = new WeakMap<readonly unknown[], Map<string, number>>();
  readonly #timeoutMs: number;

  constructor({ timeoutMs = 5_000 }: HookOptions) {
    this.#timeoutMs = timeoutMs;
  }

  /** Milliseconds; 0 or less where it is not to be called. */
  left({ plugin, hook }: Tap, args: readonly unknown[]): number {
    if ((this.#hanging.get(`${plugin} ${hook}`) ?? 0) > 0) return 0;
    return this.#timeoutMs - (this.#spent.get(args)?.get(plugin) ?? 0);
  }

  spend({ plugin }: Tap, args: readonly unknown[], ms: number): void {
    const spent = this.#spent.get(args) ?? new Map<string, number>();
    this.#spent.set(args, spent.set(plugin, (spent.get(plugin) ?? 0) + ms));
  }

  hangs({ plugin, hook }: Tap, call: PromiseLike<unknown>): void {
    const key = `${plugin} ${hook}`;
    const count = (by: number): void => void this.#hanging.set(key, (this.#hanging.get(key) ?? 0) + by);
    count(1);
    // Told as late already.
    void call.then(
      () => count(-1),
      () => count(-1),
    );
  }
}
type IsActive = (plugin: string) => boolean;
type AnyFn = (...args: unknown[]) => unknown;
interface Tap extends TapEntry, StrangerTap {
  readonly index: number;
  readonly place: Place;
  /** A third party's, in a hook that can be carried: the core asks these again and again. */
  readonly isStranger: boolean;
}
interface HookSet {
  readonly veto: Map<string, AsyncSeriesBailHook<[unknown[]], string | undefined>>;
  readonly strangersVeto: Map<string, AsyncParallelHook<[unknown[], (string | undefined)[]]>>;
  readonly observe: Map<string, AsyncSeriesHook<[unknown[]]>>;
  readonly resolve: Map<string, SyncWaterfallHook<[unknown]>>;
  readonly collect: Map<string, AsyncParallelHook<[unknown[], (readonly unknown[])[]]>>;
}

function emptySet(): HookSet {
  return {
    veto: new Map(),
    strangersVeto: new Map(),
    observe: new Map(),
    resolve: new Map(),
    collect: new Map(),
  };
}

/** The order depends only on stage and name, never on the order of loading. */
function sortedTaps(ledgers: readonly Ledger[]): Tap[] {
  const taps = ledgers.flatMap((ledger) =>
    ledger.taps.map((tap, index) => ({
      ...tap,
      entry: tap,
      plugin: ledger.plugin,
      index,
      place: placeIn(ledger, `hook ${tap.hook}`),
      isStranger: ledger.routePrefix !== '' && CARRIED_HOOKS.has(tap.hook),
    })),
  );
  return taps.sort(
    (a, b) =>
      a.stage - b.stage || (a.plugin < b.plugin ? -1 : Number(a.plugin > b.plugin)) || a.index - b.index,
  );
}

function isPromiseLike(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as { then?: unknown } | null | undefined)?.then === 'function';
}

/** Wraps one tap: it is skipped while its plugin is not active, hangs in this hook, or has had its time in the call. */
function wrapTap(
  tap: Tap,
  isActive: IsActive,
  options: WatchedOptions,
): (args: unknown[]) => Promise<unknown> {
  const { clock, log, stalls, patience } = options;
  const { place } = tap;
  const fields = { plugin: tap.plugin, hook: tap.hook };
  return async (args) => {
    const leftMs = patience.left(tap, args);
    if (!isActive(tap.plugin) || leftMs <= 0) return undefined;
    const begunMs = clock.monotonic();
    let call: PromiseLike<unknown> | undefined;
    try {
      const given = stalls.call(place, () => (tap.fn as AnyFn)(...args));
      // Most taps answer at once, in each cycle: nothing has to be waited for.
      if (!isPromiseLike(given)) return given;
      call = Promise.resolve(given);
      return await timeBox(clock, leftMs, call);
    } catch (error) {
      log.error({ ...fields, err: error ?? sentence(error) }, 'plugin failed in a hook and was skipped');
      if (call && isA(error, TimeBoxError)) patience.hangs(tap, call);
      return undefined;
    } finally {
      if (call) patience.spend(tap, args, clock.monotonic() - begunMs);
    }
  };
}

function resolveTap(
  tap: Tap,
  isActive: IsActive,
  { log, stalls }: WatchedOptions,
): (value: unknown) => unknown {
  const { place } = tap;
  const skip = (error: unknown) => {
    const err = error ?? sentence(error);
    log.error({ plugin: tap.plugin, hook: tap.hook, err }, 'plugin failed in a hook and was skipped');
    return undefined;
  };
  return (value) => {
    if (!isActive(tap.plugin)) return undefined;
    try {
      const result = stalls.call(place, () => (tap.fn as AnyFn)(value));
      // Its answer is refused below, whatever becomes of it.
      if (result instanceof Promise) void result.catch(() => undefined);
      else return result === undefined ? undefined : ANSWERS[tap.hook as ResolveHook](result, tap.plugin);
      return skip(new Error(`${tap.hook} must return a value of the kind it got, at once`));
    } catch (error) {
      return skip(error);
    }
  };
}

/** At most one item more than may be used; undefined where nothing was given, null where it is no list. */
function listed(given: unknown): readonly unknown[] | undefined | null {
  if (given === undefined) return undefined;
  try {
    // Not by its own methods, which may be anything.
    return Array.isArray(given) ? Array.prototype.slice.call(given, 0, MOST_ITEMS + 1) : null;
  } catch {
    // It throws when it is looked at.
    return null;
  }
}

/** The valid items; the log says once per call what is wrong with the others. */
function usable(list: readonly unknown[], { plugin, hook }: Tap, log: Logger): unknown[] {
  const reasons = new Set<string>();
  const items = Array.from(list.slice(0, MOST_ITEMS)).flatMap((item) => {
    try {
      return [ANSWERS[hook as CollectHook](item, plugin)];
    } catch (error) {
      reasons.add(reasonOf(error));
      return [];
    }
  });
  if (list.length > MOST_ITEMS) reasons.add(`there are more than ${MOST_ITEMS}`);
  if (reasons.size > 0)
    log.error(
      { plugin, hook, reasons: [...reasons] },
      'plugin gave a hook what cannot be used; it was left out',
    );
  return items;
}

function memo<H>(map: Map<string, H>, key: string, create: () => H): H {
  const hook = map.get(key) ?? create();
  map.set(key, hook);
  return hook;
}

type Guarded = (args: unknown[]) => Promise<unknown>;

function ignore({ plugin, hook }: Tap, expected: string, log: Logger): undefined {
  log.error({ plugin, hook, expected }, 'plugin gave a hook an answer of the wrong kind; it was ignored');
}

function addVeto(set: HookSet, tap: Tap, guarded: Guarded, { strangers, log }: WatchedOptions): void {
  const at = { name: tap.plugin, stage: tap.stage };
  const ask = async (args: unknown[]): Promise<string | undefined> => {
    const reason = await guarded(args);
    if (typeof reason === 'string') return reason.slice(0, LONGEST_REASON);
    return reason === undefined ? undefined : ignore(tap, 'a string', log);
  };
  if (!tap.isStranger) {
    const bail = () => new AsyncSeriesBailHook<[unknown[]], string | undefined>(['args']);
    memo(set.veto, tap.hook, bail).tapPromise(at, ask);
    return;
  }
  const hook = memo(
    set.strangersVeto,
    tap.hook,
    () => new AsyncParallelHook<[unknown[], (string | undefined)[]]>(['args', 'reasons']),
  );
  const place = hook.taps.length;
  hook.tapPromise(at, async (args, reasons) => {
    reasons[place] = await strangers.veto(tap, () => ask(args));
  });
}

function addObserver(set: HookSet, tap: Tap, guarded: Guarded, { strangers }: WatchedOptions): void {
  const hook = memo(set.observe, tap.hook, () => new AsyncSeriesHook<[unknown[]]>(['args']));
  hook.tapPromise({ name: tap.plugin, stage: tap.stage }, async (args) => {
    if (tap.isStranger) strangers.tell(tap, () => guarded(args));
    else await guarded(args);
  });
}

function addCollected(
  set: HookSet,
  tap: Tap,
  guarded: Guarded,
  { strangers, log, isActive }: WatchedOptions & { readonly isActive: IsActive },
): void {
  const hook = memo(
    set.collect,
    tap.hook,
    () => new AsyncParallelHook<[unknown[], (readonly unknown[])[]]>(['args', 'lists']),
  );
  const place = hook.taps.length;
  const ask = async (args: unknown[]): Promise<readonly unknown[] | undefined> => {
    const list = listed(await guarded(args));
    if (list) return usable(list, tap, log);
    return list === null ? ignore(tap, 'an array', log) : undefined;
  };
  hook.tapPromise({ name: tap.plugin, stage: tap.stage }, async (args, lists) => {
    const items = await (tap.isStranger ? strangers.answer(tap, () => ask(args)) : ask(args));
    // What a third party has said last is not said any more once it is gone.
    if (items && isActive(tap.plugin)) lists[place] = items;
  });
}

function addTap(set: HookSet, tap: Tap, isActive: IsActive, options: WatchedOptions): void {
  const guarded = wrapTap(tap, isActive, options);
  switch (hookKinds[tap.hook]) {
    case 'veto':
      return addVeto(set, tap, guarded, options);
    case 'observe':
      return addObserver(set, tap, guarded, options);
    case 'collect':
      return addCollected(set, tap, guarded, { ...options, isActive });
    case 'resolve':
      memo(set.resolve, tap.hook, () => new SyncWaterfallHook<[unknown]>(['value'])).tap(
        { name: tap.plugin, stage: tap.stage },
        resolveTap(tap, isActive, options),
      );
  }
}

/** The hooks' projector, and the runner that always uses the last committed projection. */
export function createHooks(options: HookOptions): {
  readonly projector: Projector;
  readonly runner: HookRunner;
} {
  let current = emptySet();
  const watched = {
    ...options,
    stalls: options.stalls ?? new StallWatch(options),
    patience: new Patience(options),
    strangers: new StrangerTaps(options),
  };
  const runner: HookRunner = {
    veto: async (hook, ...args) => {
      const { veto, strangersVeto } = current;
      const reason = await veto.get(hook)?.promise(args);
      if (reason !== undefined) return reason;
      const reasons: (string | undefined)[] = [];
      await strangersVeto.get(hook)?.promise(args, reasons);
      return reasons.find((one) => one !== undefined);
    },
    observe: async (hook, ...args) => {
      await current.observe.get(hook)?.promise(args);
    },
    resolve: (hook, value) => (current.resolve.get(hook)?.call(value) ?? value) as never,
    collect: async (hook, ...args) => {
      const lists: (readonly unknown[])[] = [];
      await current.collect.get(hook)?.promise(args, lists);
      return lists.flat() as never;
    },
  };
  const projector: Projector = {
    name: 'hooks',
    build: async (ledgers, isActive) => {
      const next = emptySet();
      for (const tap of sortedTaps(ledgers)) addTap(next, tap, isActive, watched);
      return {
        commit: () => {
          current = next;
        },
        discard: async () => undefined,
      };
    },
  };
  return { projector, runner };
}
