/**
 * Exporters as others get them. What a plugin says of its server is read in a try and checked here, once for all
 * who ask: it may be a stranger's.
 */
import type { Logger } from 'pino';
import type { Config } from '../contract/config.ts';
import type { Clock } from '../contract/platform.ts';
import type { Exporter, ExportersService, ListenAddress, Offer } from '../contract/exporter.ts';
import { EXPORTER, onUnlessSaid, protocolsOf } from './discovery/found.ts';
import { reasonOf } from '../sdk/reason-of.ts';
import { enforced } from '../sdk/servers/enforced.ts';
import type { Guarding } from '../sdk/servers/enforced.ts';
import { plainCopy, UnfitValue } from './instance/given-values.ts';
import { clientSessions } from './instance/given-sessions.ts';
import type { Instance } from './instance/instance.ts';
import { isEnabled } from './instance/own-config.ts';
import type { Member } from './plugin-set.ts';

type Listed = ReturnType<ExportersService['list']>[number];

/** A service type over TCP, as DNS service discovery names it. */
const SERVICE = /^_[a-z0-9-]+\._tcp$/;
const MOST_OFFERS = 100;

export interface FoundExporter {
  readonly plugin: string;
  readonly protocol: string;
  readonly exporter: Exporter;
}

/** The plugins that there are now. */
export interface ExportingPlugins {
  readonly members: () => readonly Member[];
  /** Instances that are no member's any more, until they have let go of what they hold. */
  readonly leaving: () => readonly Instance[];
  /** The running document, which may be newer than the members. Undefined before there is one. */
  readonly config: () => Config | undefined;
}

/** For a protocol whose server is on its way out: nobody is sure until it is gone. */
const LEAVING: Guarding['exporter'] = {
  enforce: () => Promise.reject(new Error('its plugin is just being switched off')),
};

/** The service `exporters`, over the plugins that there are now. */
export function createExporters(
  { members, leaving, config }: ExportingPlugins,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): ExportersService {
  const guards = new GuardedExporters(log);
  const list = (): readonly Listed[] =>
    members()
      .flatMap(exportersOf)
      .map((found) => guards.guard(found));
  const isMeant = ({ found }: Member): boolean => {
    const running = config();
    return running === undefined || isEnabled(found.name, onUnlessSaid(found), running);
  };
  const guarding = (): readonly Guarding[] => {
    const meant = members().filter(isMeant);
    const up = meant.flatMap(exportersOf).map((found) => guards.guard(found));
    const wanted = meant
      .filter(({ enabled }) => enabled)
      .flatMap(({ found }) => protocolsOf(found).map(({ name }) => name));
    const stays = [...new Set([...up.map(({ protocol }) => protocol), ...wanted])];
    const goes = [
      ...members().flatMap(({ instance }) => (instance?.active ? protocolsIn(instance) : [])),
      ...leaving().flatMap(protocolsIn),
    ].filter((protocol) => !stays.includes(protocol));
    return [
      ...stays.map((protocol) => ({
        protocol,
        exporter: up.find((one) => one.protocol === protocol)?.exporter,
      })),
      ...[...new Set(goes)].map((protocol) => ({ protocol, exporter: LEAVING })),
    ];
  };
  return {
    list,
    enforce: () => enforced({ clock, log, guarding }),
    mayServe: (protocol) => {
      const up = list().find((one) => one.protocol === protocol);
      if (up) return up.exporter.isEnabled !== false;
      return members().some(
        ({ enabled, found }) => enabled && protocolsOf(found).some(({ name }) => name === protocol),
      );
    },
  };
}

function exportersOf({ instance }: Member): readonly FoundExporter[] {
  if (!instance?.active) return [];
  return protocolsIn(instance)
    .map((protocol) => ({
      plugin: instance.plugin.name,
      protocol,
      exporter: instance.provided(EXPORTER + protocol) as Exporter,
    }))
    .filter(({ exporter }) => typeof exporter === 'object' && (exporter as Exporter | null) !== null);
}

function protocolsIn({ ledger }: Instance): readonly string[] {
  return ledger.services
    .filter(({ name }) => name.startsWith(EXPORTER))
    .map(({ name }) => name.slice(EXPORTER.length));
}

export class GuardedExporters {
  readonly #log: Logger;
  readonly #guarded = new WeakMap<Exporter, Listed>();
  /** The last problem that was logged of each plugin's exporter and property. */
  readonly #told = new Map<string, string>();

  constructor(log: Logger) {
    this.#log = log;
  }

  /** The same object for the same exporter. Its properties and `offers()` never throw. */
  guard(found: FoundExporter): Listed {
    const known = this.#guarded.get(found.exporter);
    if (known?.protocol === found.protocol) return known;
    const listed = { protocol: found.protocol, exporter: this.#guard(found) };
    this.#guarded.set(found.exporter, listed);
    return listed;
  }

  #guard(found: FoundExporter): Exporter {
    const { exporter } = found;
    const read = <T>(what: string, take: () => T): T | undefined => this.#read(found, what, take);
    return Object.freeze({
      add: (...given: Parameters<Exporter['add']>) => exporter.add(...given),
      remove: (shareName: string) => exporter.remove(shareName),
      // A getter, because an exporter may switch itself off. One that cannot be read counts as left out.
      get isEnabled() {
        return read('isEnabled', () => flag(exporter.isEnabled));
      },
      get listensAt() {
        return read('listensAt', () => listenAddress(exporter.listensAt));
      },
      offers: () => this.#offers(found),
      ...(read('sessions', () => typeof exporter.sessions === 'function') && {
        sessions: async () => clientSessions(await exporter.sessions?.()),
      }),
      ...(read('endSession', () => typeof exporter.endSession === 'function') && {
        endSession: async (id: string) => (await exporter.endSession?.(id)) === true,
      }),
      ...(read('quiesce', () => typeof exporter.quiesce === 'function') && {
        quiesce: async (shareName: string) => exporter.quiesce?.(shareName),
      }),
      ...(read('enforce', () => typeof exporter.enforce === 'function') && {
        enforce: async () => exporter.enforce?.(),
      }),
    } as Exporter);
  }

  #offers(found: FoundExporter): readonly Offer[] {
    const given = this.#read(found, 'offers', () => offersOf(found.exporter)) ?? [];
    return given.flatMap((one, index) => this.#read(found, `offers()[${index}]`, () => offerOf(one)) ?? []);
  }

  /** Undefined, and a line in the log until it is another problem, when it cannot be used. */
  #read<T>({ plugin, protocol }: FoundExporter, what: string, take: () => T): T | undefined {
    const key = `${plugin} ${protocol} ${what}`;
    try {
      const value = take();
      this.#told.delete(key);
      return value;
    } catch (error) {
      const reason = reasonOf(error);
      if (this.#told.get(key) !== reason)
        this.#log.error(
          { plugin, protocol, what, reason },
          'what the plugin says of its server cannot be used and is left out',
        );
      this.#told.set(key, reason);
      return undefined;
    }
  }
}

function flag(value: unknown): boolean | undefined {
  if (value === undefined || typeof value === 'boolean') return value;
  throw new UnfitValue('is neither true nor false');
}

function listenAddress(value: unknown): ListenAddress | undefined {
  if (value === undefined) return undefined;
  const { port, addresses } = tableOf(value);
  return { port: portOf(port), addresses: textsOf(addresses) };
}

function offersOf(exporter: Exporter): readonly unknown[] {
  const given: unknown = exporter.offers?.() ?? [];
  // Nobody waits for it; what it gives is refused below.
  if (given instanceof Promise) given.catch(() => undefined);
  if (!Array.isArray(given)) throw new UnfitValue('is no list');
  if (given.length > MOST_OFFERS) throw new UnfitValue(`has more than ${MOST_OFFERS} entries`);
  // Not by its own map(), which may be anything.
  return Array.from(given as unknown[]);
}

function offerOf(value: unknown): Offer {
  const { service, port, addresses, details } = tableOf(value);
  if (typeof service !== 'string' || !SERVICE.test(service))
    throw new UnfitValue('needs a service such as _smb._tcp');
  const offer = { service, port: portOf(port), addresses: textsOf(addresses) };
  return details === undefined ? offer : { ...offer, details: detailsOf(details) };
}

/** Copied, so that a getter says one thing only. */
function tableOf(value: unknown): Readonly<Record<string, unknown>> {
  const copy = plainCopy(value);
  if (typeof copy === 'object' && copy !== null && !Array.isArray(copy))
    return copy as Readonly<Record<string, unknown>>;
  throw new UnfitValue('is no table');
}

function portOf(value: unknown): number {
  if (Number.isInteger(value) && (value as number) >= 1 && (value as number) <= 65_535)
    return value as number;
  throw new UnfitValue('needs a port from 1 to 65535');
}

function textsOf(value: unknown): readonly string[] {
  if (Array.isArray(value) && value.every((one) => typeof one === 'string')) return value;
  throw new UnfitValue('needs a list of texts as addresses');
}

function detailsOf(value: unknown): Readonly<Record<string, string>> {
  const table = tableOf(value);
  if (Object.values(table).every((one) => typeof one === 'string')) return table as Record<string, string>;
  throw new UnfitValue('needs texts as details');
}
