/**
 * What every exporter with its own server does, whatever the protocol: start, take shares, be checked,
 * stop.
 */
import type {
  ClientSession,
  Exporter,
  ExportersService,
  ListenAddress,
  Offer,
} from '../../contract/exporter.ts';
import type { Notice } from '../../contract/notifications.ts';
import type { Made, PluginContext } from '../../contract/plugin.ts';
import type { Clock, Logger, MountTable, Paths, Processes } from '../../contract/platform.ts';
import type { SharesService } from '../../contract/shares.ts';
import type { ManagedServer } from './managed-server.ts';
import type { ExportTable } from './export-table.ts';

const LOOK_MS = 3_000;

/** An exporter together with its server. */
export interface ServingExporter extends Exporter {
  /** Starts the server without waiting for it; when switched off, ends what a former daemon left of it. */
  open(): Promise<void>;
  /** Ends the server, or leaves it for the next daemon to adopt. */
  close(keepsRunning: boolean): Promise<void>;
  /** Asks the server as a client would, and does overdue work. Called every 3 s. */
  look(signal: AbortSignal): Promise<void>;
  notices(): readonly Notice[];
  /** True while a client with access would be served. */
  readonly isServing: boolean;
}

/** The parts of an exporter that differ by protocol. */
export interface ExporterParts<Entry> {
  /** The protocol's name for people. */
  readonly label: string;
  /** False: nothing is exported, and what a former daemon left of the server is ended. */
  readonly isEnabled?: boolean;
  /** False once the running document switches it off, which may be before it is replaced. Default: it does not. */
  readonly isMeant?: () => boolean;
  /** See `Exporter.listensAt`. */
  readonly listensAt?: ListenAddress;
  readonly server: ManagedServer;
  readonly shown: ExportTable<Entry>;
  /** What a server of a former daemon still exports. */
  readonly former?: () => Promise<ReadonlyMap<string, Entry>>;
  /** Called before the server is checked. */
  readonly beforeLook?: () => void;
  /** Notices in addition to the server's problem and the shares that cannot be exported. */
  readonly notices?: () => readonly Notice[];
  /** Called only while it serves. */
  readonly offers?: () => readonly Offer[];
  /** See `Exporter.sessions`; called only while its server runs. */
  readonly sessions?: () => Promise<readonly ClientSession[]>;
  /** See `Exporter.enforce`; called only while its server runs. */
  readonly enforce?: () => Promise<void>;
  /** See `Exporter.endSession`. */
  readonly endSession?: (id: string) => Promise<boolean>;
  /** A further condition; the server must answer in any case. */
  readonly isServing?: () => boolean;
}

export function exporterOf<Entry>(parts: ExporterParts<Entry>): ServingExporter {
  const { label, isEnabled = true, server, shown } = parts;
  let isStopped = false;
  const isServing = (): boolean => isEnabled && server.isAnswering && (parts.isServing?.() ?? true);
  return {
    isEnabled,
    ...(parts.listensAt && { listensAt: parts.listensAt }),
    get isServing() {
      return isServing();
    },
    open: async () => {
      if (!isEnabled) {
        await server.stop();
        isStopped = true;
        return;
      }
      await shown.open(async () => (await parts.former?.()) ?? new Map<string, Entry>());
      server.start();
    },
    close: (keepsRunning) => (keepsRunning && isEnabled ? server.release() : server.stop()),
    add: async (spec, mount) => {
      if (isEnabled) await shown.add(spec, mount);
    },
    remove: (share) => shown.remove(share),
    look: async (signal) => {
      if (!isEnabled) return;
      await shown.dropUnclaimed();
      await shown.catchUp();
      parts.beforeLook?.();
      await server.look(signal);
    },
    notices: () => {
      if (!isEnabled) return [];
      const { problem, isStarting } = server;
      const down: readonly Notice[] =
        problem === undefined
          ? []
          : [{ level: isStarting ? 'info' : 'error', message: `${label}: ${problem}` }];
      return [...down, ...(parts.notices?.() ?? []), ...shown.notices()];
    },
    offers: () => (isServing() ? (parts.offers?.() ?? []) : []),
    ...(parts.sessions && {
      sessions: async () => (server.process && (await parts.sessions?.())) ?? [],
    }),
    ...(parts.enforce && {
      enforce: async () => {
        const isWanted = isEnabled && (parts.isMeant?.() ?? true);
        if (!isWanted && !isStopped) throw new Error('its server is being stopped');
        if (!isWanted) return;
        if (server.isStarting) throw new Error('its server is just being taken over');
        if (server.process) await parts.enforce?.();
      },
    }),
    ...(parts.endSession && {
      endSession: async (id: string) => (server.process && (await parts.endSession?.(id))) ?? false,
    }),
  };
}

/** Tools for `manageServer`, `createExportTable` and the server's files. */
export interface ExporterTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly mountTable: MountTable;
  readonly paths: Paths;
  readonly shares: SharesService;
  readonly exporters: ExportersService;
}

export interface ExporterWiring<E extends ServingExporter> {
  /** As in a share's `protocols`. */
  readonly protocol: string;
  /** The server's name for people. */
  readonly server: string;
  /** Called once, when the plugin is activated. */
  readonly make: (tools: ExporterTools) => E;
  /** While it returns false, the server is not checked. */
  readonly isEnabled?: () => boolean;
}

/**
 * Declares everything that an exporter with a server needs: the service, its notices, start and stop, a
 * check every 3 s. Returns a function for what `make` made, once it has run.
 */
export function provideExporter<E extends ServingExporter, C extends object>(
  ctx: PluginContext<C>,
  { protocol, server, make, isEnabled = () => true }: ExporterWiring<E>,
): Made<E> {
  const exporter = ctx.provide(`exporter:${protocol}`, () =>
    make({
      clock: ctx.use('clock'),
      log: ctx.log,
      processes: ctx.use('processes'),
      mountTable: ctx.use('mountTable'),
      paths: ctx.use('paths'),
      shares: ctx.use('shares'),
      exporters: ctx.use('exporters'),
    }),
  );
  ctx.tap('collectNotices', () => exporter()?.notices() ?? []);
  // It comes up on its own time: shares need not wait for it.
  ctx.effect(server, (signal) => {
    // Held here: a release that comes late finds the verb's own function empty.
    const made = exporter();
    const opening = made
      ?.open()
      .catch((error: unknown) => ctx.log.error({ err: error, server }, 'server could not be started'));
    return async () => {
      await opening;
      await made?.close(signal.reason === 'handover' || signal.reason === 'reload');
    };
  });
  ctx.every({
    name: `look at the ${server}`,
    ms: () => (isEnabled() ? LOOK_MS : 0),
    run: async (signal) => exporter()?.look(signal),
  });
  return exporter;
}
