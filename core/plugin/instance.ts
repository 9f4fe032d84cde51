/**
 * One instance of a plugin: its ledger, written by `register()`, and, once activated, its services and side effects.
 */
import type { Plugin } from '../api.ts';
import type { Clock, Logger } from '../services.ts';
import { createContext } from './context.ts';
import type { ContextRuntime } from './context.ts';
import { createRecorder } from './ledger.ts';
import type { Ledger } from './ledger.ts';
import { startInterval, startJob } from './recurring.ts';
import type { JobScheduler, Recurring } from './recurring.ts';
import { createScope } from './scope.ts';
import type { DisposeReason, Scope, ScopeOptions } from './scope.ts';

/** What instances need of the host. */
export interface InstanceEnv {
  readonly clock: Clock;
  readonly log: Logger;
  readonly scheduler: JobScheduler;
  readonly limits?: Pick<ScopeOptions, 'acquireMs' | 'releaseMs'>;
  /** A service of the core or of an active plugin. */
  service(name: string): unknown;
  send(command: string, args: readonly unknown[]): Promise<unknown>;
}

export interface Instance {
  readonly plugin: Plugin;
  readonly config: object;
  readonly ledger: Ledger;
  readonly active: boolean;
  readonly effects: readonly string[];
  /** A service this instance provides; undefined before activation and after disposal. */
  provided(name: string): unknown;
  /** Brings services and effects up. On a failure everything that started is released before this rejects. */
  activate(): Promise<void>;
  /** Services and declarations only, no effect: for a look at the machine without a daemon. */
  inspect(): void;
  /** Takes the applied value over; listeners hear of it only while active. */
  changeConfig(next: object): void;
  /** Lets jobs and intervals read their rhythm again. */
  refresh(): Promise<void>;
  /** Never rejects: what could not be released is logged. */
  dispose(reason: DisposeReason): Promise<void>;
}

/** A `register()` that throws, makes a plugin invalid. */
export function declare(plugin: Plugin, runtime: ContextRuntime): Ledger {
  const recorder = createRecorder(plugin.name, plugin.guard === true);
  const returned: unknown = plugin.register(createContext(plugin.name, recorder, runtime));
  recorder.seal();
  if (returned instanceof Promise) {
    void returned.catch(() => undefined);
    throw new Error('register() must declare at once and return nothing; asynchronous work belongs into ctx.effect()');
  }
  return recorder.ledger;
}

/** The ledger of a plugin without bringing anything to life. */
export function dryRun(plugin: Plugin, log: Logger): Ledger {
  const idle = { started: false, config: {}, log, signal: new AbortController().signal, use: () => undefined, send: async () => undefined };
  return declare(plugin, idle);
}

export function createInstance(plugin: Plugin, config: object, env: InstanceEnv): Instance {
  const log = env.log.child({ plugin: plugin.name });
  const scope: Scope = createScope({ clock: env.clock, log, ...env.limits });
  const provided = new Map<string, unknown>();
  const recurring: Recurring[] = [];
  const state = { config, started: false, active: false };

  const runtime: ContextRuntime = {
    get started() { return state.started; },
    get config() { return state.config; },
    log,
    signal: scope.signal,
    use: (name) => provided.get(name) ?? env.service(name),
    send: (command, args) => env.send(command, args),
  };
  const ledger = declare(plugin, runtime);

  const createServices = (): void => {
    state.started = true;
    for (const service of ledger.services) provided.set(service.name, service.create());
  };

  const start = async (): Promise<void> => {
    createServices();
    for (const effect of ledger.effects) await scope.acquire(effect.label, effect.acquire);
    const options = { clock: env.clock, log, signal: scope.signal };
    const keep = (label: string, begin: () => Recurring | Promise<Recurring>) => scope.acquire(label, async () => {
      const one = await begin();
      recurring.push(one);
      return () => one.release();
    });
    for (const interval of ledger.intervals) await keep(`every ${interval.name}`, () => startInterval(interval, options));
    for (const job of ledger.jobs) {
      await keep(`job ${job.name}`, () => startJob(job, { ...options, plugin: plugin.name, scheduler: env.scheduler }));
    }
  };

  const dispose = async (reason: DisposeReason): Promise<void> => {
    state.active = false;
    recurring.length = 0;
    await scope.dispose(reason).catch((error: unknown) => log.error({ reason, err: error }, 'plugin left something behind'));
    provided.clear();
  };

  return {
    plugin,
    ledger,
    dispose,
    get config() { return state.config; },
    get active() { return state.active; },
    get effects() { return scope.labels; },
    provided: (name) => provided.get(name),
    inspect() {
      createServices();
      state.active = true;
    },
    async activate() {
      try {
        await start();
        if (scope.signal.aborted) throw new Error('it was stopped while it started');
        state.active = true;
      } catch (error) {
        await dispose('failure');
        throw error;
      }
    },
    changeConfig(next) {
      const previous = state.config;
      state.config = next;
      if (!state.active) return;
      for (const listener of ledger.configListeners) {
        try {
          listener(next as never, previous as never);
        } catch (error) {
          log.error({ err: error }, 'plugin failed to take over its changed configuration');
        }
      }
    },
    async refresh() {
      for (const one of recurring) {
        await one.refresh().catch((error: unknown) => log.error({ err: error }, 'schedule could not be changed'));
      }
    },
  };
}
