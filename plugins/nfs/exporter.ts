import { readFileSync } from 'node:fs';
import {
  addressProblem,
  exporterOf,
  isShownOver,
  manageServer,
  ownAddress,
  portProblem,
  createExportTable,
  tcpClients,
  writeWhole,
} from 'mountkeeper';
import type {
  ClientSession,
  Config,
  ListenAddress,
  ExporterParts,
  ExporterTools,
  HandleFolder,
  ManagedServer,
  ManagedProcess,
  Mount,
  Notice,
  Offer,
  ProcessSpec,
  ServerAddress,
  ServingExporter,
  ShareSpec,
  ExportTable,
} from 'mountkeeper';
import { askForRoot, isExported } from './health-check.ts';
import { allows, clientsOf, isMapped, NOBODY } from './config.ts';
import type { NfsConfig } from './config.ts';
import { ExportBook } from './export-ids.ts';
import {
  awaitReady,
  findGanesha,
  forgetClients,
  GRACE_MS,
  PROCESS_KEY,
  reread,
  serverRights,
  serverSpec,
} from './ganesha.ts';
import { nfsPaths, pathsProblem, preparePaths } from './paths.ts';
import { sessionsOf } from './clients.ts';
import { pathProblem, renderConfig, standing } from './server-config.ts';
import type { ServedExport } from './server-config.ts';

const ANSWER_MS = 2_000;
const ORIGIN = { section: 'nfs', suspect: 'an NFS server of the system' } as const;
const UNREAD = 'NFS-Ganesha did not say that it has read its exports';

export interface NfsTools extends ExporterTools {
  readonly owner: { readonly uid: number; readonly gid: number };
  readonly settings: NfsConfig;
  readonly config: () => Config;
}

export interface NfsExporter extends ServingExporter {
  /** Called when a document has been applied: shares may name other clients. */
  realign(): Promise<void>;
}

export function createNfsExporter(tools: NfsTools): NfsExporter {
  const parts = new NfsParts(tools);
  return Object.assign(exporterOf(parts), { realign: () => parts.shown.redescribe() });
}

/** A share's folder of handles, and the process that keeps it. */
interface Mirror {
  readonly folder: HandleFolder;
  readonly instance: string;
}

class NfsParts implements ExporterParts<ServedExport> {
  readonly label = 'NFS';
  readonly isEnabled: boolean;
  readonly listensAt: ListenAddress;
  readonly server: ManagedServer;
  readonly shown: ExportTable<ServedExport>;
  readonly #tools: NfsTools;
  readonly #paths;
  readonly #book: ExportBook;
  readonly #address: ServerAddress;
  /** The exports that the server has confirmed to have read. */
  #loaded: readonly ServedExport[] = [];
  #written: string | undefined;
  #isReady = false;
  /** False while it is not certain that the server goes by the file. */
  #hasRead = true;
  /** It was told in vain. After a start it is only owed. */
  #isUnread = false;
  #isTelling = false;
  #lost: readonly string[] = [];
  /** By share: its folder of handles; undefined when it could not be had. */
  readonly #mirrors = new Map<string, Mirror | undefined>();

  constructor(tools: NfsTools) {
    this.#tools = tools;
    this.isEnabled = tools.settings.enabled;
    this.listensAt = { port: tools.settings.port, addresses: [tools.settings.listen] };
    this.#paths = nfsPaths(tools.paths.stateDir);
    this.#book = new ExportBook(this.#paths.book);
    this.#address = { host: tools.settings.listen, port: tools.settings.port };
    this.shown = createExportTable({
      ...tools,
      protocol: 'nfs',
      isMeant: (share) => isShownOver(tools.config(), share, 'nfs'),
      describe: (spec, mount, former) => this.#describe(spec, mount, former),
      apply: () => this.#apply(),
      appliesAll: true,
      basis: () => this.#basis(),
    });
    this.server = manageServer({
      ...tools,
      key: PROCESS_KEY,
      graceMs: GRACE_MS,
      answerMs: ANSWER_MS,
      plan: () => this.shown.inTurn(() => this.#plan()),
      ready: (process, signal) => this.#onReturn(process, signal),
      ask: async (signal) => {
        if (!this.#hasRead) this.#tellAgain();
        this.#lost = await this.#findLost(signal);
      },
      cleanUp: async () => {
        this.#isReady = false;
        // The next one reads the file at its start.
        this.#hasRead = true;
        this.#isUnread = false;
        this.#loaded = [];
        this.#written = undefined;
        await forgetClients(this.#paths);
      },
    });
  }

  /** True when there are shares, clients can find all of them, and it is certain whom the server lets in. */
  isServing(): boolean {
    return this.#isForAnybody() && this.#lost.length === 0 && this.#hasRead;
  }

  #isForAnybody(): boolean {
    return [...this.shown.entries.values()].some(
      ({ clients }) => clients.write.length + clients.read.length > 0,
    );
  }

  offers(): readonly Offer[] {
    const { host, port } = this.#address;
    return [{ service: '_nfs._tcp', port, addresses: [host], details: { path: '/' } }];
  }

  /**
   * Machines that hold a connection and may mount something. The server tells nobody which shares a client has
   * mounted, and a client whose connection is ended makes the next one unseen: so there is no `endSession`.
   */
  async sessions(): Promise<readonly ClientSession[]> {
    const connections = await tcpClients(this.#tools.processes, this.#address.port);
    const allowed = [...this.shown.entries.values()].flatMap(({ clients }) => [
      ...clients.read,
      ...clients.write,
    ]);
    return sessionsOf(connections.filter(({ address }) => allows(allowed, address)));
  }

  isMeant(): boolean {
    return this.#tools.config().nfs.enabled;
  }

  /** Ganesha judges each call by its exports, those by old handles too. */
  async enforce(): Promise<void> {
    await this.shown.redescribe();
    if (!this.#isReady) throw new Error('NFS-Ganesha is just starting');
    if (!this.#hasRead) throw new Error(UNREAD);
  }

  notices(): readonly Notice[] {
    return [
      ...(this.#tools.settings.allowed_clients.length === 0 && !this.#isForAnybody()
        ? [{ level: 'warning' as const, message: NOBODY }]
        : []),
      ...this.#tools.settings.allowed_clients.filter(isMapped).map((client) => ({
        level: 'warning' as const,
        message:
          `nfs.allowed_clients: ${client} is an IPv4 address in the form of IPv6 and means nobody; ` +
          'write it as IPv4',
      })),
      ...this.#openBeside().map((share) => ({
        level: 'warning' as const,
        message:
          `the share '${share}' names its users, and every user of the machines in nfs.allowed_clients enters it ` +
          `over NFS, which knows no users: name its clients, or leave "nfs" out of its protocols`,
      })),
      ...(this.#isUnread
        ? [
            {
              level: 'error' as const,
              message:
                `NFS: ${UNREAD}; until it does, it may let in whom it let in before. ` +
                'It is told again every few seconds',
            },
          ]
        : []),
      ...this.#lost.map((share) => ({
        level: 'error' as const,
        message: `the share '${share}' is not found over NFS; reconnect it`,
      })),
    ];
  }

  /** Shares that name users for the other protocols, and no clients. */
  #openBeside(): readonly string[] {
    const { config, settings } = this.#tools;
    if (settings.allowed_clients.length === 0) return [];
    return config()
      .shares.filter(({ name }) => this.shown.entries.has(name))
      .filter(({ users, read_only_users }) => users !== undefined || read_only_users !== undefined)
      .filter(({ clients, read_only_clients }) => clients === undefined && read_only_clients === undefined)
      .map(({ name }) => name);
  }

  // ------------------------------------------------------------ the server

  async #plan(): Promise<ProcessSpec> {
    const ganesha = await findGanesha();
    const problem = pathsProblem(this.#paths) ?? addressProblem(this.#address, ORIGIN);
    if (problem !== undefined) throw new Error(problem);
    const spec = serverSpec(ganesha, this.#paths, this.#address);
    const running = this.server.process ?? (await this.#tools.processes.adopt(PROCESS_KEY));
    if (running?.fingerprint === spec.fingerprint) return spec;
    const taken = running ? undefined : await portProblem(this.#address, ORIGIN);
    if (taken !== undefined) throw new Error(taken);
    await preparePaths(this.#paths);
    const exports = [...this.shown.entries.values()];
    await this.#write(exports);
    this.#loaded = exports;
    return { ...spec, rights: await serverRights(this.#address.port, this.#tools.processes) };
  }

  async #onReturn(process: ManagedProcess, signal: AbortSignal): Promise<void> {
    const { clock } = this.#tools;
    await awaitReady(this.#address, process, { clock, signal });
    this.#isReady = true;
    // Changes during its start may or may not have been read.
    await this.shown.inTurn(() => this.#apply());
    this.#lost = await this.#findLost(clock.deadline(ANSWER_MS, signal));
  }

  /**
   * Writes the exports and makes the server read them; an export that returns with another id is removed
   * first.
   */
  async #apply(): Promise<void> {
    if (!this.#isReady || !this.server.process) return;
    const wanted = [...this.shown.entries.values()];
    const kept = standing(this.#loaded, wanted);
    if (kept.length < wanted.length) {
      await this.#show(kept);
      // They would come back in the same step in which they go. The next look tells it again.
      if (!this.#hasRead) return;
    }
    await this.#show(wanted);
    await this.#endUnused();
  }

  /** A folder of handles keeps the share's mount busy, and no server has it open any more. */
  async #endUnused(): Promise<void> {
    for (const [share, mirror] of this.#mirrors) {
      if (!mirror || this.shown.entries.has(share)) continue;
      await mirror.folder.end();
      this.#mirrors.delete(share);
    }
  }

  async #show(exports: readonly ServedExport[]): Promise<void> {
    const { server, clock, log } = { server: this.server.process, ...this.#tools };
    if (!(await this.#write(exports)) || !server) return;
    this.#hasRead = await reread(server, clock, { owes: !this.#hasRead });
    this.#isUnread = !this.#hasRead;
    if (this.#hasRead) this.#loaded = exports;
    else log.warn(UNREAD);
  }

  /** A mount that hangs may have kept it from reading; until it has, it lets in whom it let in before. */
  #tellAgain(): void {
    if (this.#isTelling) return;
    this.#isTelling = true;
    void this.shown
      .inTurn(async () => {
        this.#written = undefined;
        await this.#apply();
      })
      .catch((err: unknown) => this.#tools.log.warn({ err }, UNREAD))
      .finally(() => (this.#isTelling = false));
  }

  /** False when the file is already up to date. */
  async #write(exports: readonly ServedExport[]): Promise<boolean> {
    const { settings, owner } = this.#tools;
    const text = renderConfig(
      {
        paths: this.#paths,
        port: settings.port,
        listen: settings.listen,
        ...owner,
      },
      exports,
    );
    if (text === this.#written) return false;
    await writeWhole(this.#paths.conf, text);
    await this.#book.keep(exports);
    // Last: what failed before is written and read again.
    this.#written = text;
    return true;
  }

  /**
   * Shares that a client on this machine cannot find. When this machine has no access, only the server
   * itself must answer.
   */
  async #findLost(signal: AbortSignal): Promise<readonly string[]> {
    const address = ownAddress(this.#address);
    await askForRoot(address, signal);
    const shares = [...this.shown.entries.values()]
      .filter(({ clients }) => allows([...clients.read, ...clients.write], address.host))
      .map(({ share }) => share);
    // A share that hangs or fails is lost for clients; the server itself has answered.
    const found = await Promise.all(
      // As lost.
      shares.map((share) => isExported(address, share, signal).catch(() => false)),
    );
    return shares.filter((share, index) => !found[index] && this.shown.entries.has(share));
  }

  // ------------------------------------------------------------ shares

  /** The exports of a server that a former daemon left. */
  async former(): Promise<ReadonlyMap<string, ServedExport>> {
    await this.#book.open();
    if (!(await this.#tools.processes.adopt(PROCESS_KEY))) return new Map();
    // A former version knew no clients of single shares.
    const all = { write: this.#tools.settings.allowed_clients, read: [] };
    const former = this.#book.former.map((one) => ({
      ...one,
      clients: (one as Partial<ServedExport>).clients ?? all,
    }));
    this.#loaded = former;
    // It may owe the former daemon a confirmation.
    this.#hasRead = false;
    // It is written anew, and the server reads it: the former daemon may have ended between the two.
    this.#written = undefined;
    return new Map(former.map((one) => [one.share, one]));
  }

  /** An id for each process behind the mount, saved before it is used. */
  async #describe(
    { share }: ShareSpec,
    mount: Mount,
    former: ServedExport | undefined,
  ): Promise<ServedExport> {
    const { path, pid, isMirror } = await this.#placeOf(mount);
    const problem = pathProblem(path);
    if (problem !== undefined) throw new Error(problem);
    const instance = instanceOf(pid);
    const isSame = former?.instance === instance && former.path === path;
    const id = isSame ? former.id : await this.#book.draw([...this.shown.entries.values()]);
    const clients = clientsOf(this.#tools.config(), share.name);
    return { share: share.name, path, readOnly: share.read_only, clients, id, instance, isMirror };
  }

  /** NFS names files by handles, which the mount point may not have. */
  async #placeOf(mount: Mount): Promise<{ path: string; pid: number; isMirror: boolean }> {
    const { shareName, plan, pid } = mount;
    if (!mount.handleFolder) return { path: plan.mountPoint, pid, isMirror: false };
    this.#mirrors.set(shareName, undefined);
    const folder = await mount.handleFolder();
    this.#mirrors.set(shareName, { folder, instance: instanceOf(folder.pid) });
    return { path: folder.path, pid: folder.pid, isMirror: true };
  }

  /**
   * What shares are described by: another object than before where there is a new document, or where the process
   * of a mirror has ended or could not be started.
   */
  #basis(): unknown {
    const { config, shares } = this.#tools;
    const isWhole = shares.list().every(({ spec: { share }, mount }) => {
      if (!mount?.handleFolder || !this.#mirrors.has(share.name)) return true;
      const mirror = this.#mirrors.get(share.name);
      return mirror !== undefined && isRunning(mirror.instance);
    });
    return isWhole ? config() : {};
  }
}

/** Whether the process that `instanceOf` identified is still there. */
function isRunning(instance: string): boolean {
  return instanceOf(Number(instance.split(' ')[1])) === instance;
}

/** Identifies a process by its id and start time, because ids are reused. */
function instanceOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return (
      `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${pid} ` +
      `${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`
    );
  } catch {
    // The process is gone.
    return `gone ${pid}`;
  }
}
