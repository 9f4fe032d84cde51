/**
 * What an exporter with a server of its own does the same whatever its protocol: come up, take shares, be
 * looked after, go.
 */
import type { Exporter, Offer } from '../../contract/exporter.ts';
import type { Notice } from '../../contract/notifications.ts';
import type { PluginContext } from '../../contract/plugin.ts';
import type { Clock, Logger, MountTable, Paths, Processes } from '../../contract/platform.ts';
import type { SharesService } from '../../contract/shares.ts';
import type { KeptServer } from './managed-server.ts';
import type { ShownShares } from './export-table.ts';

const LOOK_MS = 3_000;

/** An exporter together with its server. */
export interface ServingExporter extends Exporter {
  /** Brings the server up, without waiting for it; switched off, ends what a former daemon left of it. */
  open(): Promise<void>;
  /** Ends the server, or leaves it to whoever adopts it next. */
  close(keepsRunning: boolean): Promise<void>;
  /** Asks the server as a client would, and sees to what is overdue. Called every 3 s. */
  look(signal: AbortSignal): Promise<void>;
  notices(): readonly Notice[];
  /** True while a client that may come in would be served. */
  readonly isServing: boolean;
}

/** The parts of an exporter, and what is particular to it. */
export interface ExporterParts<Entry> {
  /** As people call the protocol. */
  readonly label: string;
  /** False: nothing is shown, and what a former daemon left of the server is ended. */
  readonly isEnabled?: boolean;
  readonly server: KeptServer;
  readonly shown: ShownShares<Entry>;
  /** What a server that a former daemon left shows. */
  readonly former?: () => Promise<ReadonlyMap<string, Entry>>;
  /** Before the server is asked. */
  readonly beforeLook?: () => void;
  /** Beside the server's problem and the shares that cannot be shown. */
  readonly notices?: () => readonly Notice[];
  /** Asked for while it serves. */
  readonly offers?: () => readonly Offer[];
  /** Beside the server's answer, which is needed anyway. */
  readonly isServing?: () => boolean;
}

export function exporterOf<Entry>(parts: ExporterParts<Entry>): ServingExporter {
  const { label, isEnabled = true, server, shown } = parts;
  const isServing = (): boolean => isEnabled && server.isAnswering && (parts.isServing?.() ?? true);
  return {
    get isServing() {
      return isServing();
    },
    open: async () => {
      if (!isEnabled) return server.stop();
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
  };
}

/** What `keepServer`, `showShares` and the server's files take. */
export interface ExporterTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly mountTable: MountTable;
  readonly paths: Paths;
  readonly shares: SharesService;
}

export interface ExporterWiring<E extends ServingExporter> {
  /** As in a share's `protocols`. */
  readonly protocol: string;
  /** As people call its server. */
  readonly server: string;
  /** Called once, when the plugin is up. */
  readonly make: (tools: ExporterTools) => E;
  /** While it says no, nothing is looked after. */
  readonly isEnabled?: () => boolean;
}

/**
 * Declares all that an exporter with a server takes: the service, its notices, coming up and going, looks
 * every 3 s. Gives what `make` made, once it has.
 */
export function provideExporter<E extends ServingExporter, C extends object>(
  ctx: PluginContext<C>,
  { protocol, server, make, isEnabled = () => true }: ExporterWiring<E>,
): () => E | undefined {
  let made: E | undefined;
  const exporter = (): E =>
    (made ??= make({
      clock: ctx.use('clock'),
      log: ctx.log,
      processes: ctx.use('processes'),
      mountTable: ctx.use('mountTable'),
      paths: ctx.use('paths'),
      shares: ctx.use('shares'),
    }));
  ctx.provide(`exporter:${protocol}`, exporter);
  ctx.tap('collectNotices', () => exporter().notices());
  // It comes up on its own time: shares need not wait for it.
  ctx.effect(server, (signal) => {
    const opening = exporter()
      .open()
      .catch((error: unknown) => ctx.log.error({ err: error, server }, 'server not brought up'));
    return async () => {
      await opening;
      await exporter().close(signal.reason === 'handover' || signal.reason === 'reload');
    };
  });
  ctx.every({
    name: `look at the ${server}`,
    ms: () => (isEnabled() ? LOOK_MS : 0),
    run: (signal) => exporter().look(signal),
  });
  return () => made;
}
