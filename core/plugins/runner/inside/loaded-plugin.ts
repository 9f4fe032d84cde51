/** A plugin inside its runner: the same instance as in the daemon, called over the socket. */
import type { Server } from '@hapi/hapi';
import type { Tab } from '../../../contract/dashboard.ts';
import type { WebhookEvent, WebhookFormat } from '../../../contract/notifications.ts';
import type { Plugin } from '../../../contract/plugin.ts';
import type { Clock, Logger, Release } from '../../../contract/platform.ts';
import { createClock } from '../../../platform/clock.ts';
import { ownPlaceOf } from '../../blame.ts';
import { actAs } from '../../instance/acting-plugin.ts';
import { UnfitValue } from '../../instance/given-values.ts';
import { createInstance } from '../../instance/instance.ts';
import type { Instance } from '../../instance/instance.ts';
import type { JobScheduler } from '../../instance/recurring.ts';
import type { DisposeReason } from '../../instance/scope.ts';
import { drawTab } from '../carried/carried-tab.ts';
import type { TabCall } from '../carried/carried-tab.ts';
import { told } from './denied.ts';
import { createServiceCopies } from './service-copies.ts';
import type { ServiceCopies } from './service-copies.ts';
import { MOST_MESSAGE_BYTES } from '../protocol.ts';
import type { Begin, Read, RouteRequest, Said, State, ToRunner } from '../protocol.ts';
import { answerOf, routeServer } from './route-server.ts';

const READ_MS = 1_000;
/** Characters of what is read that go over in a second: what is long goes less often. */
const PACE = 262_144;
/** For an answer that the daemon has no room for. */
const AGAIN_MS = 100;
/** Less than the daemon waits for the whole. */
const ACQUIRE_MS = 25_000;
const RELEASE_MS = 4_000;
/** Less than that, so that it is said which run it was. */
const STOP_MS = 3_000;

interface Voice {
  readonly log: Logger;
  /** False where the daemon has not read what was said before: this is not said then. Throws for what cannot be. */
  readonly say: (message: Said) => boolean;
  /** Others share its process, so it has to be known for whom code runs: that costs memory with each promise. */
  readonly hasNeighbours: boolean;
}

type AnyFn = (...args: unknown[]) => unknown;
export type Heard = Exclude<ToRunner, { is: 'begin' | 'ping' | 'leave' | 'end' }>;

export class LoadedPlugin {
  readonly #voice: Voice;
  readonly #clock: Clock = createClock();
  readonly #instance: Instance;
  readonly #copies: ServiceCopies;
  readonly #sent = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>();
  /** Where its code lies. */
  readonly #folder: string;
  #server: Server | undefined;
  #logLevel: string;
  #lastSent = 0;
  #lastState = '';
  #cancelRead: () => void = () => undefined;

  constructor(plugin: Plugin, begin: Begin, voice: Voice) {
    this.#voice = voice;
    this.#folder = begin.folder;
    this.#logLevel = begin.logLevel;
    const clock = this.#clock;
    this.#copies = createServiceCopies(begin, clock, voice.log);
    this.#instance = createInstance(plugin, begin.config, {
      clock,
      log: voice.log,
      isThirdParty: () => true,
      runsHere: () => voice.hasNeighbours,
      logLevel: () => this.#logLevel,
      limits: { acquireMs: ACQUIRE_MS, releaseMs: RELEASE_MS, stopMs: STOP_MS },
      scheduler: lateScheduler(clock, voice.log),
      service: (name, of) => this.#copies.service(name, of),
      send: (command, args) => this.#send(command, args),
      give: (event, value) => {
        voice.say({ is: 'event', index: this.#instance.ledger.events.indexOf(event), value });
      },
    });
  }

  async activate(): Promise<void> {
    const { routes } = this.#instance.ledger;
    if (routes.length > 0) this.#server = await routeServer(routes, this.#voice.log, this.#folder);
    await this.#instance.activate();
    this.#tell();
  }

  async dispose(reason: string): Promise<void> {
    this.#cancelRead();
    await this.#instance.dispose(reason as DisposeReason);
  }

  take(message: Heard): void {
    if (message.is === 'call') void this.#answer(message);
    else if (message.is === 'world') this.#copies.show(message.world);
    else if (message.is === 'log-level') this.#follow(message.level);
    else if (message.is === 'config') {
      this.#instance.changeConfig(message.config);
      void this.#instance.refresh();
    } else {
      const { id, problem, value } = message;
      const waiting = this.#sent.get(id);
      this.#sent.delete(id);
      if (problem === undefined) waiting?.resolve(value);
      else waiting?.reject(new Error(problem));
    }
  }

  #follow(level: string): void {
    this.#logLevel = level;
    this.#instance.takeLogLevel();
  }

  async #answer(call: Extract<ToRunner, { is: 'call' }>): Promise<void> {
    const { id } = call;
    try {
      this.#sayOnce({ is: 'answer', id, value: await this.#call(call) });
    } catch (error) {
      this.#sayOnce({ is: 'answer', id, problem: this.#told(error) });
    }
  }

  /** Somebody waits for it: where the daemon has not read yet what was said before, it is said once it has. */
  #sayOnce(answer: Said): void {
    if (!this.#voice.say(answer)) this.#clock.after(AGAIN_MS, () => this.#sayOnce(answer));
  }

  async #call({ kind, index, args }: Extract<ToRunner, { is: 'call' }>): Promise<unknown> {
    const { actor, taps, handlers, tabs, webhookFormats, listeners } = this.#instance.ledger;
    if (kind === 'route')
      return actAs(actor, () => answerOf(this.#server as Server, args[0] as RouteRequest));
    if (kind === 'tab') return drawTab(tabs[index] as Tab, args[0] as TabCall);
    if (kind === 'format') return (webhookFormats[index] as WebhookFormat).render(args[0] as WebhookEvent);
    const lists = { tap: taps, handle: handlers, event: listeners };
    const { fn } = lists[kind][index] as { fn: unknown };
    return (fn as AnyFn)(...args);
  }

  #told(error: unknown): string {
    return `${told(error)}${ownPlaceOf(error, [this.#folder])}`;
  }

  #send(command: string, args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const id = (this.#lastSent += 1);
      if (this.#voice.say({ is: 'send', id, command, args })) this.#sent.set(id, { resolve, reject });
      else
        reject(
          new Error(
            `ctx.send("${command}") was not sent: the daemon has not read yet what the plugin has said before; ` +
              'say less at a time',
          ),
        );
    });
  }

  /** Reads everything and says so, where something is another than before. */
  #tell(): void {
    const state = this.#read();
    const text = JSON.stringify(state);
    if (text !== this.#lastState && this.#voice.say({ is: 'state', ...state })) this.#lastState = text;
    this.#cancelRead = this.#clock.after(READ_MS * Math.max(1, text.length / PACE), () => this.#tell());
  }

  #read(): State {
    const { statusFields, shareStatus, metrics } = this.#instance.ledger;
    const { shares } = this.#copies;
    const inWords = (error: unknown): string => this.#told(error);
    return {
      status: statusFields.map((entry) => read(() => entry.read(), inWords)),
      shareStatus: shareStatus.map((of) =>
        Object.fromEntries(shares.map((share) => [share, read(() => of.read(share), inWords)])),
      ),
      metrics: metrics.map((metric) => read(() => metric.read(), inWords)),
      late: this.#instance.late(),
    };
  }
}

/** The value as it can be sent, or why it cannot. */
function read(of: () => unknown, inWords: (error: unknown) => string): Read {
  try {
    const text = JSON.stringify(of()) as string | undefined;
    if (text === undefined) return {};
    if (text.length > MOST_MESSAGE_BYTES / 16) throw new UnfitValue('is too large');
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: inWords(error) };
  }
}

/** The scheduler with its libraries is loaded for plugins with jobs alone. */
function lateScheduler(clock: Clock, log: Logger): JobScheduler {
  let made: Promise<JobScheduler> | undefined;
  return {
    add: async (job): Promise<Release> => {
      made ??= import('../../../platform/scheduler.ts').then(({ createScheduler }) =>
        createScheduler({ clock, log, stopMs: STOP_MS }),
      );
      return (await made).add(job);
    },
  };
}
