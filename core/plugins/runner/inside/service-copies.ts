/**
 * Services as a runner has them: copies of the daemon's that show what it last sent, and refuse what only
 * the daemon can do.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Secret } from '../../../contract/config.ts';
import type { Clock, Logger } from '../../../contract/platform.ts';
import type { Snapshot } from '../../../contract/status.ts';
import type { LiveShare } from '../../../contract/shares.ts';
import { PluginStore } from '../../instance/store.ts';
import { CARRIED_SERVICES } from '../protocol.ts';
import type { Begin, DaemonSnapshot } from '../protocol.ts';

const CARRIED = [...CARRIED_SERVICES].join(', ');

/** What of the daemon each of these shows. */
const SHOWN_BY: Readonly<Record<string, keyof DaemonSnapshot>> = {
  status: 'notices',
  shares: 'shares',
  config: 'config',
  secrets: 'secrets',
};

type PlainShare = Pick<LiveShare, 'spec'>;

export interface ServiceCopies {
  /** Undefined, with a line in the log, for a service that cannot be carried. */
  service(name: string, plugin: string): unknown;
  show(news: DaemonSnapshot): void;
  /** Names of the shares. */
  readonly shares: readonly string[];
}

export function createServiceCopies({ paths, world }: Begin, clock: Clock, log: Logger): ServiceCopies {
  let shown: DaemonSnapshot = world;
  const listeners = new Set<(snapshot: Snapshot) => void>();
  const store = new PluginStore({ stateDir: paths.stateDir, clock, log });
  const snapshot = (): Snapshot => shown.snapshot as Snapshot;
  const shares = (): readonly PlainShare[] => shown.shares as readonly PlainShare[];
  const services: Readonly<Record<string, unknown>> = {
    clock,
    paths,
    status: closed('status', {
      get snapshot() {
        return snapshot();
      },
      get notices() {
        return shown.notices;
      },
      onPublish: (fn: (of: Snapshot) => void) => {
        listeners.add(fn);
        return () => void listeners.delete(fn);
      },
    }),
    shares: closed('shares', {
      list: () => shares().map(shownShare),
      get: (name: string) => {
        const share = shares().find(({ spec }) => spec.share.name === name);
        return share && shownShare(share);
      },
    }),
    config: closed('config', {
      redacted: () => structuredClone(shown.config),
      get current() {
        return closed('config', { config: structuredClone(shown.config), warnings: [] });
      },
    }),
    secrets: closed('secrets', { resolve: (secret: Secret) => clearText(secret, shown) }),
  };
  const told = new Set<string>();
  /** Of those that show the daemon, only those that the plugin requires are sent. */
  const problemWith = (name: string): string | undefined => {
    if (!CARRIED_SERVICES.has(name))
      return `it cannot be carried into a process of its own; only ${CARRIED} can`;
    const part = SHOWN_BY[name];
    return part === undefined || part in shown ? undefined : 'name it in requires, so that it is sent';
  };
  return {
    service: (name, plugin) => {
      if (name === 'store') return store.of(plugin);
      const problem = problemWith(name);
      if (problem === undefined) return services[name];
      if (!told.has(name)) log.warn({ service: name, problem }, 'the plugin asks for a service in vain');
      told.add(name);
      return undefined;
    },
    show: (news) => {
      shown = { ...shown, ...news };
      if (news.snapshot === undefined) return;
      for (const listener of listeners) {
        try {
          listener(snapshot());
        } catch (error) {
          log.error({ err: error }, 'a listener of the status failed');
        }
      }
    },
    get shares() {
      return snapshot()?.record.shares.map(({ name }) => name) ?? [];
    },
  };
}

function clearText(secret: Secret, { secrets = [] }: DaemonSnapshot): string {
  if (typeof secret === 'string') return secret;
  const known = secrets.find(({ reference }) => isDeepStrictEqual(reference, secret));
  if (known === undefined)
    throw new Error("this secret does not stand in the plugin's own section of the configuration");
  if ('problem' in known) throw new Error(known.problem);
  return known.value;
}

function shownShare(share: PlainShare): PlainShare {
  return closed('shares', { ...share }, ['figures', 'remoteEvidence']);
}

/** Says so where something is asked for that it does not have, instead of having nothing there. */
function closed<T extends object>(service: string, members: T, absent: readonly string[] = []): T {
  return new Proxy(Object.freeze(members), {
    get: (target, key) => {
      if (
        typeof key === 'symbol' ||
        key in target ||
        key === 'then' ||
        key === 'toJSON' ||
        absent.includes(key)
      )
        return Reflect.get(target, key) as unknown;
      throw new Error(`"${key}" of the service "${service}" cannot be carried into a process of its own`);
    },
  });
}
