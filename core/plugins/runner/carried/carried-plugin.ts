/**
 * A stranger's plugin as the daemon holds it while its code is in a process of its own: it declares what the
 * runner declared, and each of its functions asks the runner. To the host it is a plugin like any other.
 */
import { isDeepStrictEqual } from 'node:util';
import Boom from '@hapi/boom';
import Joi from 'joi';
import type { Lifecycle, Request, ResponseToolkit, RouteOptions, ServerRoute } from '@hapi/hapi';
import type { Content, Outcome, Tab, View } from '../../../contract/dashboard.ts';
import type { Bandwidth } from '../../../contract/mount.ts';
import type { Hooks } from '../../../contract/hooks.ts';
import type { RouteAccess } from '../../../contract/http.ts';
import type { Plugin, PluginContext } from '../../../contract/plugin.ts';
import type { MetricFamily } from '../../../contract/metrics.ts';
import type { WebhookEvent, WebhookMessage } from '../../../contract/notifications.ts';
import type { Snapshot } from '../../../contract/status.ts';
import type { Clock } from '../../../contract/platform.ts';
import { timeBox } from '../../../platform/deadline.ts';
import { hookKinds } from '../../instance/hook-kinds.ts';
import { answerWith, requestOf } from './carried-route.ts';
import { contentOf, outcomeOf } from './carried-tab.ts';
import type { CarriedTab, TabCall } from './carried-tab.ts';
import { builtSchema } from './carried-schema.ts';
import { DrawingTime } from './drawing-time.ts';
import type { Confinement } from '../process/confinement.ts';
import type { Declaration } from './declaration.ts';
import { lendOwnFolder } from '../process/own-user.ts';
import { NotRunning, RunnerSupervisor } from '../process/runner-supervisor.ts';
import type { Crashes, RunnerSupervisorOptions } from '../process/runner-supervisor.ts';
import { MOST_BODY_BYTES } from '../protocol.ts';
import type { Begin, Read, State } from '../protocol.ts';
import { shownSnapshot } from './shown-snapshot.ts';
import { noticesUnderName, underName } from './under-name.ts';
import { followDaemon, daemonSnapshot, secretsNow } from './daemon-snapshot.ts';

const DRAW_MS = 10_000;
const HOLDS = { own: 'a process of its own', shared: 'a shared process' } as const;

export interface CarriedOptions {
  readonly declaration: Declaration;
  readonly isolation: keyof typeof HOLDS;
  readonly begin: Pick<Begin, 'entry' | 'folder' | 'name' | 'declared'>;
  /** Brings its table to the form of this version, in a process of its own. Rejects with the sentence why not. */
  readonly migrate: (table: object) => Promise<Record<string, unknown>>;
  /** Starts its process, or takes a seat in one. */
  readonly launch: RunnerSupervisorOptions['launch'];
  readonly giveUpSeat: RunnerSupervisorOptions['giveUpSeat'];
  readonly confinement: Pick<Confinement, 'entry' | 'folder' | 'permissions' | 'user'>;
  readonly onGivenUp: (reason: string) => void;
  /** Its process has ended by itself, with what comes now; undefined once it is there again, or is not wanted. */
  readonly onAbsence: (why: string | undefined) => void;
  /** Told with sentences about its runs that take long. */
  readonly onLate: (late: readonly string[]) => void;
  /** Told with each process that comes up: whether it has the daemon's network though it may not use it. */
  readonly onNetwork: (isOurs: boolean) => void;
}

/** Throws when a schema in it cannot be built. */
export function carriedPlugin(options: CarriedOptions): Plugin {
  const { name, version, description, requires, config } = options.declaration;
  const crashes: Crashes = [];
  return Object.freeze({
    name,
    version,
    apiVersion: 1 as const,
    description,
    requires: requires as Plugin['requires'] & readonly [],
    ...(config && {
      config: {
        ...(config.section !== undefined && { section: config.section }),
        schema: builtSchema(config.schema),
        ...(config.share && { share: builtSchema(config.share) }),
        ...(config.descriptions && { descriptions: config.descriptions }),
        ...(config.migrates && { migrate: options.migrate }),
      },
    }),
    register: (ctx: PluginContext) => new Carried(ctx, options, crashes).declare(),
  });
}

/** Names of fields came as texts. */
type AnyVerb = (...args: unknown[]) => void;
type AnyEvent = (declared: object) => (value: unknown) => void;

class Carried {
  readonly #ctx: PluginContext;
  readonly #options: CarriedOptions;
  readonly #crashes: Crashes;
  readonly #drawing = new DrawingTime({ monotonic: () => this.#clock.monotonic() });
  /** Functions that give its events, in the order of its ledger. */
  #events: readonly ((value: unknown) => void)[] = [];
  /** From activation on. */
  #supervisor: RunnerSupervisor | undefined;

  constructor(ctx: PluginContext, options: CarriedOptions, crashes: Crashes) {
    this.#ctx = ctx;
    this.#options = options;
    this.#crashes = crashes;
  }

  declare(): void {
    const ctx = this.#ctx;
    const { taps, commands, statusFields, shareStatus, routes, metrics, tabs, webhookFormats, labels } =
      this.#options.declaration;
    const { events, listeners } = this.#options.declaration;
    taps.forEach(({ hook, stage }, index) => this.#tap(hook as keyof Hooks, stage, index));
    commands.forEach((command, index) =>
      ctx.handle(command as 'notify', async (...args) => {
        await this.#call('handle', index, args);
      }),
    );
    statusFields.forEach(({ field, ...entry }, index) =>
      (ctx.status as AnyVerb)(field, { ...entry, read: () => this.#value(({ status }) => status[index]) }),
    );
    shareStatus.forEach((entry, index) =>
      (ctx.shareStatus as AnyVerb)({ ...entry, read: (share: string) => this.#shareStatus(index, share) }),
    );
    routes.forEach(({ method, path, options }, index) =>
      ctx.route(this.#route(method, path, options, index)),
    );
    metrics.forEach((metric, index) =>
      ctx.metric({ ...metric, read: () => samplesOf(this.#value((state) => state.metrics[index])) }),
    );
    tabs.forEach((tab, index) => ctx.tab(this.#tab(tab, index)));
    webhookFormats.forEach((name, index) =>
      ctx.webhookFormat({ name, render: (event) => this.#render(index, event) }),
    );
    // A value is checked by its schema in the process. Here the same stranger's schema would guard nothing, and could
    // take for ever.
    this.#events = events.map(({ name, summary }) =>
      (ctx.event as AnyEvent)({ name, summary, value: Joi.any() }),
    );
    listeners.forEach(({ event }, index) =>
      (ctx.on as AnyVerb)(event, (value: unknown) => this.#call('event', index, [value])),
    );
    ctx.onConfigChange((next) => {
      this.#supervisor?.send({ is: 'world', world: secretsNow(ctx, this.#options.declaration) });
      this.#supervisor?.send({ is: 'config', config: next });
    });
    ctx.effect(HOLDS[this.#options.isolation], () => this.#begin());
    for (const label of labels) ctx.effect(label, () => () => undefined);
  }

  async #begin(): Promise<() => Promise<void>> {
    const ctx = this.#ctx;
    const { declaration, begin, confinement, launch, giveUpSeat, onGivenUp } = this.#options;
    const { onAbsence, onLate, onNetwork } = this.#options;
    const clock = ctx.use('clock');
    const { stateDir, packageDir } = ctx.use('paths');
    const { name } = declaration;
    const giveBack = await lendOwnFolder({ stateDir, name }, confinement.user);
    const supervisor = new RunnerSupervisor({
      ctx,
      clock,
      crashes: this.#crashes,
      launch,
      giveUpSeat,
      onGivenUp,
      onAbsence,
      onLate,
      onNetwork,
      // Nobody but itself can give what it has declared.
      onEvent: (index, value) => this.#events[index]?.(value),
      confinement: { ...confinement, name, stateDir, packageDir },
      begin: () => ({
        is: 'begin',
        ...begin,
        task: 'run',
        config: ctx.config,
        paths: { stateDir, packageDir },
        logLevel: ctx.log.level,
        world: daemonSnapshot(ctx, declaration),
      }),
    });
    const stop = async (): Promise<void> => supervisor.stop(String(ctx.signal.reason));
    ctx.signal.addEventListener('abort', () => void stop(), { once: true });
    await supervisor.start().catch(async (error: unknown) => {
      await giveBack();
      throw error;
    });
    this.#supervisor = supervisor;
    const tellLevel = (): void => supervisor.send({ is: 'log-level', level: ctx.log.level });
    ctx.log.on('level-change', tellLevel);
    const leave = followDaemon(ctx, declaration, (world) => supervisor.send({ is: 'world', world }));
    return async () => {
      ctx.log.off('level-change', tellLevel);
      leave();
      await stop();
      await giveBack();
    };
  }

  /** Rejects while its process is not there: whoever sends tries again. */
  async #render(index: number, event: WebhookEvent): Promise<WebhookMessage> {
    if (!this.#supervisor) throw new NotRunning('its process is not running now');
    return (await this.#supervisor.call('format', index, [event])) as WebhookMessage;
  }

  /** Undefined while its process is not there: the log has said so. */
  async #call(kind: 'tap' | 'handle' | 'event', index: number, args: readonly unknown[]): Promise<unknown> {
    if (!this.#supervisor?.isUp) return undefined;
    return this.#supervisor.call(kind, index, args).catch((error: unknown) => {
      if (error instanceof NotRunning) return undefined;
      throw error;
    });
  }

  #value(pick: (state: State) => Read | undefined): unknown {
    if (!this.#supervisor?.isUp) throw new Error('its process is not running now');
    return this.#supervisor.value(pick);
  }

  #shareStatus(index: number, share: string): object {
    const shares = this.#supervisor?.state?.shareStatus[index];
    if (!shares || !Object.hasOwn(shares, share)) return {};
    return this.#value(() => shares[share]) as object;
  }

  #tap(hook: keyof Hooks, stage: number, index: number): void {
    const ask = (...args: unknown[]): Promise<unknown> =>
      this.#call('tap', index, hook === 'afterCycle' ? this.#cycle(args) : args);
    const { name } = this.#options.declaration;
    const said = async (...args: unknown[]): Promise<unknown> => {
      const answer = await ask(...args);
      if (hook === 'collectNotices') return noticesUnderName(name, answer);
      // A share that it keeps away must not look as if its remote were at fault.
      return hookKinds[hook] === 'veto' && typeof answer === 'string' ? underName(name, answer) : answer;
    };
    const fn = hook === 'resolveBandwidth' ? this.#bandwidthTap(index) : said;
    this.#ctx.tap(hook as 'afterCycle', fn as () => void, stage);
  }

  #cycle([snapshot, ...more]: readonly unknown[]): readonly unknown[] {
    return [shownSnapshot(this.#ctx, snapshot as Snapshot), ...more];
  }

  /** The budget cannot wait: the answer is the one that was last given for the same budget. */
  #bandwidthTap(index: number): (budget: Bandwidth) => unknown {
    let last: { readonly budget: Bandwidth; readonly answer: unknown } | undefined;
    let isAsking = false;
    const ask = async (budget: Bandwidth): Promise<void> => {
      isAsking = true;
      try {
        last = { budget, answer: await this.#call('tap', index, [budget]) };
      } catch (error) {
        last = undefined;
        this.#ctx.log.error({ err: error }, 'plugin failed in a hook and was skipped');
      }
      isAsking = false;
    };
    return (budget) => {
      // What another process said before is not this one's word.
      if (!this.#supervisor?.isUp) return (last = undefined);
      if (!isAsking) void ask(budget);
      return last && isDeepStrictEqual(last.budget, budget) ? last.answer : undefined;
    };
  }

  /** Drawn anew with every status: its own `watch` stays in its process. */
  #tab({ parts, actions, ...tab }: CarriedTab, index: number): Tab {
    const ask = async (fn: TabCall['fn'], name: string, view: View): Promise<unknown> => {
      const { language, host, share, query, form } = view;
      const call: TabCall = { fn, name, view: { language, host, share, query, form } };
      const drawn = this.#supervisor?.call('tab', index, [call]);
      if (!drawn) throw new NotRunning('its process is not running now');
      return timeBox(this.#clock, DRAW_MS, drawn);
    };
    const draw = async (fn: TabCall['fn'], name: string, view: View): Promise<Content> => {
      const drawn = await ask(fn, name, view);
      return this.#drawing.spend((check) => contentOf(drawn, view, check));
    };
    const act = async (name: string, view: View): Promise<Outcome> => {
      const given = await ask('action', name, view);
      return this.#drawing.spend((check) => outcomeOf(given, view, check));
    };
    return {
      ...tab,
      render: (view) => draw('render', '', view),
      parts: Object.fromEntries(parts.map((name) => [name, (view: View) => draw('part', name, view)])),
      actions: Object.fromEntries(actions.map((name) => [name, (view: View) => act(name, view)])),
    };
  }

  #route(
    method: string | readonly string[],
    path: string,
    { access, ...options }: Declaration['routes'][number]['options'],
    index: number,
  ): ServerRoute {
    const takesBody = [method].flat().every((one) => !['GET', 'HEAD'].includes(one.toUpperCase()));
    const payload = { parse: false, output: 'data', maxBytes: MOST_BODY_BYTES } as const;
    return {
      method: method as 'GET',
      path,
      options: {
        ...options,
        ...(takesBody && { payload }),
        // Judged in the daemon, before its process hears of the request.
        ...(access && { plugins: { access: access as RouteAccess } }),
      } as RouteOptions,
      handler: (request, h) => this.#serve(request, h, index),
    };
  }

  async #serve(request: Request, h: ResponseToolkit, index: number): Promise<Lifecycle.ReturnValue> {
    try {
      const call = this.#supervisor?.call('route', index, [requestOf(request)]);
      if (!call) throw new NotRunning('its process is not running now');
      return answerWith(await call, h);
    } catch (error) {
      if (error instanceof NotRunning)
        throw Boom.serverUnavailable(
          `The plugin "${this.#options.declaration.name}" is just starting. Try again in a moment.`,
        );
      throw error;
    }
  }

  get #clock(): Clock {
    return this.#ctx.use('clock');
  }
}

function samplesOf(family: unknown): MetricFamily['samples'] & readonly [] {
  return (family as MetricFamily | undefined)?.samples as never;
}
