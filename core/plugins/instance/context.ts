/**
 * The `ctx` of a plugin: declaring verbs write into the recorder until `register()` returns; `config`,
 * `use` and `send` work after activation.
 */
import Joi from '#joi';
import type { Metric, MetricVerb } from '../../contract/metrics.ts';
import type { PluginContext } from '../../contract/plugin.ts';
import type { Tab } from '../../contract/dashboard.ts';
import type { WebhookFormat } from '../../contract/notifications.ts';
import { hookKinds } from './hook-kinds.ts';
import type { Logger } from '../../contract/platform.ts';
import { reasonOf } from '../../sdk/reason-of.ts';
import { isTable } from '../../sdk/toml/document.ts';
import { plainCopy } from './given-values.ts';
import { declareMetric } from './metric.ts';
import { placedRoute } from './route-place.ts';
import type {
  EffectEntry,
  EventEntry,
  HandlerEntry,
  HapiEntry,
  ListenerEntry,
  Recorder,
  ServiceEntry,
  ShareStatusEntry,
  StatusEntry,
  TapEntry,
} from './ledger.ts';

/** The runtime part of a context. `started` is false while `register()` runs and until activation. */
export interface ContextRuntime {
  readonly started: boolean;
  readonly config: object;
  readonly log: Logger;
  readonly signal: AbortSignal;
  /** What the function of an entry has made; undefined while it is not up. */
  made(entry: EffectEntry | ServiceEntry): unknown;
  /** Tells those who listen. Never throws. */
  give(entry: EventEntry, value: unknown): void;
  /** Undefined when nobody provides the service. */
  use(service: string): unknown;
  send(command: string, args: readonly unknown[]): Promise<unknown>;
}

/** Of the plugin that gives it, and its own. */
const EVENT = /^[a-z][a-z0-9-]{0,63}:[a-z][a-z0-9-]{0,63}$/;

function demand(condition: boolean, sentence: string): void {
  if (!condition) throw new Error(sentence);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}

/** A function alone, or one with the defaults of what it reads. */
function reading<E extends { readonly read: unknown }>(declared: E['read'] | E): E {
  return (typeof declared === 'function' ? { read: declared } : declared) as E;
}

function plainDefault(verb: string, value: unknown): unknown {
  try {
    return plainCopy(value);
  } catch (error) {
    throw new Error(`the default of ${verb} ${reasonOf(error)}`, { cause: undefined });
  }
}

/** Checks that types cannot make for a plugin written in plain JavaScript. */
const checks = {
  tap(entry: TapEntry): TapEntry {
    demand(
      Object.hasOwn(hookKinds, entry.hook),
      `there is no hook "${String(entry.hook)}"; the hooks are ${Object.keys(hookKinds).join(', ')}`,
    );
    demand(typeof entry.fn === 'function', `ctx.tap("${entry.hook}") needs a function`);
    demand(Number.isFinite(entry.stage), `the stage of ctx.tap("${entry.hook}") must be a number`);
    return entry;
  },
  named<T extends { readonly name: string }>(verb: string, entry: T, fns: readonly unknown[]): T {
    demand(isText(entry.name), `ctx.${verb}() needs a name`);
    demand(
      fns.every((fn) => typeof fn === 'function'),
      `ctx.${verb}("${entry.name}") lacks a function`,
    );
    return entry;
  },
  status(entry: StatusEntry): StatusEntry {
    const verb = `ctx.status("${entry.field}")`;
    demand(isText(entry.field), 'ctx.status() needs the name of a field');
    demand(typeof entry.read === 'function', `${verb} needs a function that reads the field`);
    return 'default' in entry ? { ...entry, default: plainDefault(verb, entry.default) } : entry;
  },
  shareStatus(entry: ShareStatusEntry): ShareStatusEntry {
    const { defaults, read } = entry;
    demand(typeof read === 'function', 'ctx.shareStatus() needs a function that reads the fields');
    if (defaults === undefined) return { read };
    const copy = plainDefault('ctx.shareStatus()', defaults);
    demand(isTable(copy), 'the defaults of ctx.shareStatus() must be a table of fields');
    return { read, defaults: copy as Readonly<Record<string, unknown>> };
  },
  tab(tab: Tab): Tab {
    demand(
      isText(tab.id) && /^[a-z][a-z0-9-]*$/.test(tab.id),
      'ctx.tab() needs an id of lower-case letters, digits and hyphens',
    );
    demand(
      isText(tab.title) || isText((tab.title as Record<string, string> | undefined)?.['en']),
      `ctx.tab("${tab.id}") needs a title, at least in English`,
    );
    demand(typeof tab.render === 'function', `ctx.tab("${tab.id}") needs a function that renders it`);
    demand(
      [undefined, 'tab', 'card', 'share'].includes(tab.place),
      `the place of ctx.tab("${tab.id}") must be "tab", "card" or "share"`,
    );
    return tab;
  },
  webhookFormat(format: WebhookFormat): WebhookFormat {
    demand(
      isText(format.name) && /^[a-z][a-z0-9-]{0,63}$/.test(format.name),
      'ctx.webhookFormat() needs a name of lower-case letters, digits and hyphens',
    );
    demand(
      typeof format.render === 'function',
      `ctx.webhookFormat("${format.name}") lacks a function that renders it`,
    );
    return format;
  },
  event(entry: EventEntry, plugin: string): EventEntry {
    const { name, summary, value } = entry;
    demand(
      isText(name) && name.startsWith(`${plugin}:`) && EVENT.test(name),
      `ctx.event() of the plugin ${plugin} needs a name such as "${plugin}:done", not ${JSON.stringify(name)}`,
    );
    demand(isText(summary), `ctx.event("${name}") needs a summary, one line that says when it is given`);
    demand(Joi.isSchema(value), `ctx.event("${name}") needs a Joi schema of its value`);
    return { name, summary, value };
  },
  listener(entry: ListenerEntry): ListenerEntry {
    const { event, fn } = entry;
    demand(
      isText(event) && EVENT.test(event),
      `ctx.on() needs the whole name of an event, such as "nas-watch:changed", not ${JSON.stringify(event)}`,
    );
    demand(typeof fn === 'function', `ctx.on("${event}") needs a function`);
    return entry;
  },
  effect(entry: EffectEntry): EffectEntry {
    demand(isText(entry.label), 'ctx.effect() needs a label that says what it holds');
    demand(
      typeof entry.acquire === 'function',
      `ctx.effect("${entry.label}") needs a function that returns its release`,
    );
    return entry;
  },
};

type Declaring = Omit<PluginContext, 'config' | 'log' | 'signal' | 'use' | 'find' | 'send'>;

function declaringVerbs(recorder: Recorder, runtime: ContextRuntime): Declaring {
  return {
    tap: (hook, fn, stage = 0) =>
      recorder.record('tap', 'taps', checks.tap({ hook, fn: fn as unknown as TapEntry['fn'], stage })),
    handle: (command, fn) =>
      recorder.record('handle', 'handlers', { command, fn: fn as unknown as HandlerEntry['fn'] }),
    status: ((field: string, declared: StatusEntry['read'] | Omit<StatusEntry, 'field'>) =>
      recorder.record(
        'status',
        'statusFields',
        checks.status({ field, ...reading<Omit<StatusEntry, 'field'>>(declared) }),
      )) as Declaring['status'],
    shareStatus: ((declared: ShareStatusEntry['read'] | ShareStatusEntry) =>
      recorder.record(
        'shareStatus',
        'shareStatus',
        checks.shareStatus(reading<ShareStatusEntry>(declared)),
      )) as unknown as Declaring['shareStatus'],
    route: (...routes) => {
      const { routePrefix } = recorder.ledger;
      recorder.record('route', 'routes', ...routes.map((route) => placedRoute(route, routePrefix)));
    },
    hapi: (plugin, options) =>
      recorder.record('hapi', 'hapi', { plugin: plugin as HapiEntry['plugin'], options }),
    tab: (tab) => recorder.record('tab', 'tabs', checks.tab(tab)),
    cli: (command) => recorder.record('cli', 'cli', checks.named('cli', command, [command.run])),
    webhookFormat: (format) =>
      recorder.record('webhookFormat', 'webhookFormats', checks.webhookFormat(format)),
    event: ((declared: EventEntry) => {
      const entry = checks.event(declared, recorder.ledger.plugin);
      recorder.record('event', 'events', entry);
      return (value: unknown) => runtime.give(entry, value);
    }) as unknown as Declaring['event'],
    on: ((event: string, fn: ListenerEntry['fn']) =>
      recorder.record('on', 'listeners', checks.listener({ event, fn }))) as unknown as Declaring['on'],
    metric: ((metric: Metric) => {
      const { declared, handle } = declareMetric(metric);
      recorder.record('metric', 'metrics', declared);
      return handle;
    }) as MetricVerb,
    provide: (name, create) => {
      const entry = checks.named('provide', { name, create } as ServiceEntry, [create]);
      recorder.record('provide', 'services', entry);
      return () => runtime.made(entry) as never;
    },
    job: (job) => {
      demand(!job.run !== !job.worker, `ctx.job("${job.name}") needs either run or worker`);
      recorder.record('job', 'jobs', checks.named('job', job, [job.cron]));
    },
    every: (interval) =>
      recorder.record('every', 'intervals', checks.named('every', interval, [interval.ms, interval.run])),
    effect: ((label: string, acquire: EffectEntry['acquire']) => {
      const entry = checks.effect({ label, acquire });
      recorder.record('effect', 'effects', entry);
      return () => runtime.made(entry);
    }) as Declaring['effect'],
    onConfigChange: (fn) => recorder.record('onConfigChange', 'configListeners', fn as never),
  };
}

export function createContext(plugin: string, recorder: Recorder, runtime: ContextRuntime): PluginContext {
  const living = (what: string): void => {
    demand(
      runtime.started,
      `plugin ${plugin} reached for ${what} before it was active; ` +
        'do that inside a tap, handler, route, service or effect',
    );
  };
  return {
    ...declaringVerbs(recorder, runtime),
    get config() {
      living('ctx.config');
      return runtime.config;
    },
    log: runtime.log,
    signal: runtime.signal,
    use(name) {
      living(`ctx.use("${name}")`);
      const service = runtime.use(name);
      demand(
        service !== undefined,
        `plugin ${plugin} uses the service "${name}", but nobody provides it now; name it in requires`,
      );
      return service as never;
    },
    find(name) {
      living(`ctx.find("${name}")`);
      return runtime.use(name) as never;
    },
    async send(command, ...args) {
      living(`ctx.send("${command}")`);
      return (await runtime.send(command, args)) as never;
    },
  };
}
