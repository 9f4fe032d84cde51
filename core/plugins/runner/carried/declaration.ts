/**
 * What a plugin declares, as plain data that crosses into the daemon; and what cannot cross, each with the
 * sentence why. Made in the runner, checked again in the daemon.
 */
import Joi from 'joi';
import type { RouteOptions, ServerRoute } from '@hapi/hapi';
import type { Role, RouteAccess } from '../../../contract/http.ts';
import type { Plugin } from '../../../contract/plugin.ts';
import type { Texts } from '../../../sdk/texts.ts';
import type { Ledger } from '../../instance/ledger.ts';
import { pathProblem } from '../../instance/route-place.ts';
import { carriedTab } from './carried-tab.ts';
import type { CarriedTab } from './carried-tab.ts';
import { carriedSchema } from './carried-schema.ts';
import { CARRIED_COMMANDS, CARRIED_HOOKS, CARRIED_SERVICES, NotCarried } from '../protocol.ts';

export interface CarriedRoute {
  readonly method: string | readonly string[];
  readonly path: string;
  readonly options: {
    readonly auth?: false | string;
    readonly description?: string;
    readonly access?: CarriedAccess;
  };
}

/** As `RouteAccess`. Never `filtered`: the process is not told who asks, so it cannot leave out other shares. */
export interface CarriedAccess {
  readonly role: Role;
  readonly verb?: string;
  /** The parameter of the path that holds a share. */
  readonly share?: string;
  readonly isPage?: true;
}

export interface Declaration {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly requires: readonly string[];
  readonly config?: {
    readonly section?: string;
    readonly schema: object;
    readonly share?: object;
    readonly descriptions?: Texts;
    /** It has a `migrate`. */
    readonly migrates?: true;
  };
  readonly taps: readonly { readonly hook: string; readonly stage: number }[];
  readonly commands: readonly string[];
  readonly statusFields: readonly { readonly field: string; readonly default?: unknown }[];
  /** One for each `ctx.shareStatus`. */
  readonly shareStatus: readonly { readonly defaults?: Readonly<Record<string, unknown>> }[];
  readonly routes: readonly CarriedRoute[];
  readonly metrics: readonly {
    readonly name: string;
    readonly help: string;
    readonly type: 'gauge' | 'counter';
    readonly labels: readonly string[];
  }[];
  readonly tabs: readonly CarriedTab[];
  readonly webhookFormats: readonly string[];
  /** The schema of the value stays in the process: whoever wrote it wrote the value, too. */
  readonly events: readonly { readonly name: string; readonly summary: string }[];
  readonly listeners: readonly { readonly event: string }[];
  /** What it holds while it runs: effects, intervals, jobs. */
  readonly labels: readonly string[];
}

const WHOLE_DOCUMENT = 'which is given the whole configuration with its secrets';
const OTHERS_REQUESTS = 'which tells of the requests of everybody';

/** Throws a `NotCarried`. */
export function declarationOf(plugin: Plugin, ledger: Ledger): Declaration {
  refuse(plugin, ledger);
  const { name, version, description, requires = [], config } = plugin;
  const { section, schema, share, descriptions, migrate } = config ?? {};
  return {
    name,
    version,
    description,
    requires,
    ...(schema && {
      config: {
        ...(section !== undefined && { section }),
        schema: carriedSchema('config.schema', schema),
        ...(share && { share: carriedSchema('config.share', share) }),
        ...(descriptions && { descriptions }),
        ...(migrate && { migrates: true as const }),
      },
    }),
    taps: ledger.taps.map(({ hook, stage }) => ({ hook, stage })),
    commands: ledger.handlers.map(({ command }) => command),
    statusFields: ledger.statusFields.map(({ field, default: standard }) => ({
      field,
      ...(standard !== undefined && { default: standard }),
    })),
    shareStatus: ledger.shareStatus.map(({ defaults }) => ({ ...(defaults && { defaults }) })),
    routes: ledger.routes.map(carriedRoute),
    metrics: ledger.metrics.map(({ name: metric, help, type, labels }) => ({
      name: metric,
      help,
      type: type as 'gauge',
      labels,
    })),
    tabs: ledger.tabs.map(carriedTab),
    webhookFormats: ledger.webhookFormats.map(({ name: format }) => format),
    events: ledger.events.map(({ name: event, summary }) => ({ name: event, summary })),
    listeners: ledger.listeners.map(({ event }) => ({ event })),
    labels: [
      ...ledger.effects.map(({ label }) => label),
      ...ledger.intervals.map((one) => `every ${one.name}`),
      ...ledger.jobs.map((one) => `job ${one.name}`),
    ],
  };
}

function refuse({ guard, config, requires = [] }: Plugin, ledger: Ledger): void {
  const demand = (isCarried: boolean, what: string, why: string): void => {
    if (!isCarried) throw new NotCarried(what, why);
  };
  demand(guard !== true, 'guard', 'since a guard decides about every request inside the daemon');
  demand(ledger.hapi.length === 0, 'ctx.hapi()', 'since a native hapi plugin lives inside the web server');
  demand(ledger.services.length === 0, 'ctx.provide()', 'since others call a service inside the daemon');
  demand(ledger.cli.length === 0, 'ctx.cli()', 'since the command line runs it by itself');
  demand(
    ledger.jobs.every((job) => !job.worker),
    'ctx.job() with a worker file',
    'give the job a function, which runs outside the daemon anyway',
  );
  demand(
    ledger.metrics.every(({ type }) => type !== 'histogram'),
    'ctx.metric() of the type histogram',
    'use a gauge or a counter',
  );
  for (const { hook } of ledger.taps) {
    const why = hook === 'afterRequest' ? OTHERS_REQUESTS : WHOLE_DOCUMENT;
    demand(CARRIED_HOOKS.has(hook), `ctx.tap("${hook}")`, why);
  }
  const commands = [...CARRIED_COMMANDS].join(', ');
  for (const { command } of ledger.handlers) {
    const why = command === 'reload' ? WHOLE_DOCUMENT : `only ${commands} can`;
    demand(CARRIED_COMMANDS.has(command), `ctx.handle("${command}")`, why);
  }
  const known = [...CARRIED_SERVICES].join(', ');
  for (const name of requires)
    demand(CARRIED_SERVICES.has(name), `the service "${name}"`, `only ${known} can`);
  for (const key of ['complete', 'check', 'checkUntrusted', 'harmless'] as const)
    demand(config?.[key] === undefined, `config.${key}`, 'since it is asked inside the daemon');
}

const CARRIED_ROUTE_OPTIONS = new Set([
  'auth',
  'description',
  'handler',
  'validate',
  'payload',
  'notes',
  'tags',
  'plugins',
  // What `openTo` and `documented` put there.
  'plugins.access',
  'plugins.documented',
]);

function carriedRoute(route: ServerRoute): CarriedRoute {
  const { method, path } = route;
  const problem = routeProblem(route);
  if (problem !== undefined) throw new NotCarried(`the route ${String(method)} ${path}`, problem);
  const { auth, description, plugins } = (route.options ?? {}) as CarriedRoute['options'] & {
    readonly plugins?: { readonly access?: RouteAccess };
  };
  const access = plugins?.access;
  return {
    method: method as string | string[],
    path,
    options: {
      ...(auth !== undefined && { auth }),
      ...(typeof description === 'string' && { description }),
      ...(access && { access: carriedAccess(access) }),
    },
  };
}

function carriedAccess({ isPage, role, share, verb }: RouteAccess): CarriedAccess {
  return {
    role,
    ...(verb !== undefined && { verb }),
    ...(typeof share === 'string' && { share }),
    ...(isPage === true && { isPage }),
  };
}

function routeProblem({ handler, options = {}, rules }: ServerRoute): string | undefined {
  if (typeof options === 'function' || rules !== undefined) return 'its options are made by the web server';
  if (typeof (handler ?? options.handler) !== 'function') return 'its handler is no plain function';
  const odd = keysOf(options).find((key) => !CARRIED_ROUTE_OPTIONS.has(key));
  if (odd !== undefined) return `it has the option "${odd}"`;
  const { auth } = options;
  const isPlain = auth === undefined || auth === false || typeof auth === 'string';
  return isPlain ? undefined : 'its option "auth" is neither false nor a name';
}

function keysOf(options: RouteOptions): readonly string[] {
  return [...Object.keys(options), ...Object.keys(options.plugins ?? {}).map((key) => `plugins.${key}`)];
}

const text = (most = 1_000): Joi.StringSchema => Joi.string().allow('').max(most);
const list = (item: Joi.Schema, most = 200): Joi.ArraySchema => Joi.array().items(item).max(most).required();
const localText = Joi.alternatives(text(), Joi.object().pattern(text(20), text()));
/** By language and key. */
const words = Joi.object().pattern(text(20), Joi.object().pattern(text(200), text(10_000)));
const shape = Joi.object({
  name: text().required(),
  version: text().required(),
  description: text().required(),
  requires: list(Joi.valid(...CARRIED_SERVICES)),
  config: Joi.object({
    section: text(),
    schema: Joi.object().unknown().required(),
    share: Joi.object(),
    descriptions: words,
    migrates: Joi.valid(true),
  }),
  taps: list(Joi.object({ hook: Joi.valid(...CARRIED_HOOKS).required(), stage: Joi.number().required() })),
  commands: list(Joi.valid(...CARRIED_COMMANDS)),
  statusFields: list(Joi.object({ field: text(100).required(), default: Joi.any() })),
  shareStatus: list(Joi.object({ defaults: Joi.object().unknown() }), 20),
  routes: list(
    Joi.object({
      method: Joi.alternatives(text(20), Joi.array().items(text(20)).min(1).max(20)).required(),
      path: text().required(),
      options: Joi.object({
        auth: Joi.alternatives(Joi.valid(false), text()),
        description: text(),
        access: Joi.object({
          role: Joi.valid('viewer', 'operator', 'admin').required(),
          verb: text(100),
          share: text(100),
          isPage: Joi.valid(true),
        }),
      }).required(),
    }),
  ),
  metrics: list(
    Joi.object({
      name: text(200).required(),
      help: text().required(),
      type: Joi.valid('gauge', 'counter').required(),
      labels: list(text(100), 20),
    }),
  ),
  tabs: list(
    Joi.object({
      id: text(100).required(),
      title: localText.required(),
      icon: text(10_000),
      place: text(10),
      order: Joi.number(),
      texts: words,
      parts: list(text(100)),
      actions: list(text(100)),
    }),
    20,
  ),
  webhookFormats: list(text(64), 20),
  events: list(
    Joi.object({
      name: text(200).required(),
      summary: text().required(),
    }),
    50,
  ),
  listeners: list(Joi.object({ event: text(200).required() })),
  labels: list(text()),
});

/** Of all schemas of a plugin together. The daemon builds them, and does nothing else meanwhile. */
const MOST_KEYS = 500;
/** In all, as JSON: they stand in the status once for each share. */
const MOST_SHARE_DEFAULTS = 65_536;
/** Of everything in a declaration. Joi goes through all keys of a table. */
const MOST_VALUES = 20_000;
/** Of the same. Joi takes minutes for a schema that is nested a thousand deep. */
const DEEPEST = 40;

/** What a runner has sent, as it may be used. Throws a sentence. */
export function checkedDeclaration(sent: unknown): Declaration {
  refuseManyOrDeep(sent);
  const { error, value } = shape.validate(sent, { convert: false });
  if (error) throw new Error(`what it declares cannot be used: ${error.message}`);
  const { config, routes, shareStatus } = value as Declaration;
  refuseLarge([config?.schema, config?.share]);
  const problem = routes.map(({ path }) => pathProblem(path)).find((one) => one !== undefined);
  if (problem !== undefined) throw new Error(`what it declares cannot be used: ${problem}`);
  if (JSON.stringify(shareStatus).length > MOST_SHARE_DEFAULTS)
    throw new Error(
      'what it declares cannot be used: the defaults of ctx.shareStatus() have more than ' +
        `${MOST_SHARE_DEFAULTS} characters`,
    );
  return value as Declaration;
}

function refuseManyOrDeep(sent: unknown): void {
  let level = [sent];
  let values = 0;
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > DEEPEST)
      throw new Error(`what it declares cannot be used: it is nested more than ${DEEPEST} deep`);
    values += level.length;
    if (values > MOST_VALUES)
      throw new Error(`what it declares cannot be used: it holds more than ${MOST_VALUES} values`);
    level = level.flatMap(partsOf);
  }
}

function partsOf(value: unknown): unknown[] {
  return typeof value === 'object' && value !== null ? Object.values(value) : [];
}

function refuseLarge(schemas: readonly unknown[]): void {
  const all: unknown[] = [...schemas];
  let keys = 0;
  // Grows while it is gone through.
  for (const value of all) {
    const parts = partsOf(value);
    if (typeof (value as { type?: unknown } | null | undefined)?.type === 'string') keys += 1;
    if (keys > MOST_KEYS)
      throw new Error(
        `what it declares cannot be used: the schemas of its keys hold more than ${MOST_KEYS} keys in all`,
      );
    all.push(...parts);
  }
}
