import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { keepServer } from 'mountkeeper';
import type { Clock, Exporter, KeptServer, Logger, Mount, MountTable, Notice, Paths, Processes, ProcessSpec, ShareSpec, SharesService } from 'mountkeeper';
import { askForRoot, isExported } from './ask.ts';
import type { Address } from './ask.ts';
import { allows } from './config.ts';
import type { NfsConfig } from './config.ts';
import { ExportBook } from './export-book.ts';
import { addressProblem, awaitReady, findGanesha, forgetClients, GRACE_MS, ownAddress, PROCESS_KEY, reread, serverSpec } from './ganesha.ts';
import { placeIn, placeProblem, preparePlace, writeWhole } from './place.ts';
import { pathProblem, renderConfig, standing } from './server-config.ts';
import type { ServedExport } from './server-config.ts';

const ANSWER_MS = 2_000;
/** A server that is alive and answers nobody for so many looks is ended. */
const PATIENCE = 5;
/** Shares of a former daemon that nobody has claimed by then go. */
const CLAIM_MS = 30_000;

export interface NfsTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly mountTable: MountTable;
  readonly paths: Paths;
  readonly shares: SharesService;
  readonly owner: { readonly uid: number; readonly gid: number };
  readonly settings: NfsConfig;
}

export class NfsExporter implements Exporter {
  readonly #tools: NfsTools;
  readonly #place;
  readonly #book: ExportBook;
  readonly #server: KeptServer;
  readonly #address: Address;
  readonly #served = new Map<string, ServedExport>();
  /** Taken over from a former daemon, and not claimed yet. */
  readonly #unclaimed = new Set<string>();
  readonly #refused = new Map<string, string>();
  /** What the file holds that the server has read. */
  #loaded: readonly ServedExport[] = [];
  #written: string | undefined;
  #isReady = false;
  #openedAtMs = 0;
  #lost: readonly string[] = [];
  #isAnswering = false;
  #silences = 0;
  #turn: Promise<void> = Promise.resolve();

  constructor(tools: NfsTools) {
    this.#tools = tools;
    this.#place = placeIn(tools.paths.stateDir);
    this.#book = new ExportBook(this.#place.book);
    this.#address = { host: tools.settings.listen, port: tools.settings.port };
    this.#server = keepServer({
      clock: tools.clock, log: tools.log, processes: tools.processes, key: PROCESS_KEY, graceMs: GRACE_MS,
      plan: () => this.#inTurn(() => this.#plan()),
      ready: async (process, signal) => {
        await awaitReady(this.#address, process, { clock: tools.clock, signal });
        this.#isReady = true;
        // What changed while it started may have been read or not.
        await this.#inTurn(() => this.#apply());
        await this.look(signal);
      },
      cleanUp: async () => {
        this.#isReady = false;
        this.#isAnswering = false;
        this.#loaded = [];
        this.#written = undefined;
        await forgetClients(this.#place);
      },
    });
  }

  /** True while a client finds every share that is to be found, and there is one. */
  get isServing(): boolean {
    return this.#tools.settings.enabled && this.#isAnswering && this.#server.process !== undefined && this.#served.size > 0 && this.#lost.length === 0;
  }

  async open(): Promise<void> {
    if (!this.#tools.settings.enabled) return this.#server.stop();
    this.#openedAtMs = this.#tools.clock.monotonic();
    await this.#inTurn(() => this.#takeOver());
    for (const { spec, mount, health } of this.#tools.shares.list()) if (mount && health === 'healthy') await this.add(spec, mount);
    this.#server.start();
  }

  async close(keepsRunning: boolean): Promise<void> {
    this.#isAnswering = false;
    if (keepsRunning && this.#tools.settings.enabled) await this.#server.release();
    else await this.#server.stop();
  }

  async add(spec: ShareSpec, mount: Mount): Promise<void> {
    const { name } = spec.share;
    this.#unclaimed.delete(name);
    if (!this.#tools.settings.enabled) return;
    const problem = pathProblem(mount.plan.mountPoint);
    if (problem !== undefined && this.#refused.get(name) !== problem) this.#tools.log.error({ share: name, reason: problem }, 'share cannot be shown over NFS');
    if (problem === undefined) this.#refused.delete(name);
    else this.#refused.set(name, problem);
    if (problem !== undefined || !spec.share.protocols.includes('nfs')) return this.remove(name);
    const next = { share: name, path: mount.plan.mountPoint, readOnly: spec.share.read_only, instance: instanceOf(mount.pid) };
    await this.#inTurn(async () => {
      const former = this.#served.get(name);
      const isSame = former?.instance === next.instance && former.path === next.path;
      if (isSame && former.readOnly === next.readOnly) return;
      await preparePlace(this.#place);
      const id = isSame ? former.id : await this.#book.draw([...this.#served.values()]);
      this.#served.set(name, { ...next, id });
      await this.#apply();
    });
  }

  async remove(share: string): Promise<void> {
    this.#unclaimed.delete(share);
    await this.#inTurn(async () => {
      if (this.#served.delete(share)) await this.#apply();
    });
  }

  /** Asks the server as a client would, and sees to what is overdue. */
  async look(signal: AbortSignal): Promise<void> {
    if (!this.#tools.settings.enabled) return;
    for (const share of this.#overdue()) await this.remove(share);
    if (!this.#server.process || !this.#isReady) {
      this.#isAnswering = false;
      return;
    }
    const { clock, log } = this.#tools;
    try {
      this.#lost = await this.#findLost(clock.deadline(ANSWER_MS, signal));
      this.#isAnswering = true;
      this.#silences = 0;
    } catch (error) {
      if (signal.aborted) return;
      this.#isAnswering = false;
      this.#silences += 1;
      log.warn({ reason: (error as Error).message, silences: this.#silences }, 'NFS-Ganesha does not answer');
      if (this.#silences >= PATIENCE) this.#server.process?.signal('SIGKILL');
    }
  }

  notices(): readonly Notice[] {
    const { settings } = this.#tools;
    if (!settings.enabled) return [];
    const problem = this.#server.problem;
    return [
      ...(problem === undefined ? [] : [{ level: this.#server.isStarting ? 'info' as const : 'error' as const, message: `NFS: ${problem}` }]),
      ...(settings.allowed_clients.length === 0 ? [{ level: 'warning' as const, message: 'no machine is let in over NFS: name some in nfs.allowed_clients' }] : []),
      ...this.#lost.map((share) => ({ level: 'error' as const, message: `the share '${share}' is not found over NFS; reconnect it` })),
      ...[...this.#refused].map(([share, reason]) => ({ level: 'warning' as const, message: `the share '${share}' is not shown over NFS: ${reason}` })),
    ];
  }

  // ------------------------------------------------------------ the server

  async #plan(): Promise<ProcessSpec> {
    const ganesha = await findGanesha();
    const problem = placeProblem(this.#place);
    if (problem !== undefined) throw new Error(problem);
    const spec = serverSpec(ganesha, this.#place, this.#address);
    const running = this.#server.process ?? (await this.#tools.processes.adopt(PROCESS_KEY));
    if (running?.fingerprint === spec.fingerprint) return spec;
    const taken = running ? undefined : await addressProblem(this.#address);
    if (taken !== undefined) throw new Error(taken);
    await preparePlace(this.#place);
    await this.#write([...this.#served.values()]);
    this.#loaded = [...this.#served.values()];
    return spec;
  }

  /** Writes the exports and has the server read them; what comes back under another number goes first. */
  async #apply(): Promise<void> {
    if (!this.#isReady || !this.#server.process) return;
    const wanted = [...this.#served.values()];
    const kept = standing(this.#loaded, wanted);
    if (kept.length < wanted.length) await this.#show(kept);
    await this.#show(wanted);
  }

  async #show(exports: readonly ServedExport[]): Promise<void> {
    const { server, clock, log } = { server: this.#server.process, ...this.#tools };
    if (!(await this.#write(exports)) || !server) return;
    if (!(await reread(server, clock))) log.warn('NFS-Ganesha did not say that it has read its exports');
    this.#loaded = exports;
  }

  /** False when the file says this already. */
  async #write(exports: readonly ServedExport[]): Promise<boolean> {
    const { settings, owner } = this.#tools;
    const text = renderConfig({ place: this.#place, port: settings.port, listen: settings.listen, allowedClients: settings.allowed_clients, ...owner }, exports);
    if (text === this.#written) return false;
    await writeWhole(this.#place.conf, text);
    this.#written = text;
    await this.#book.keep(exports);
    return true;
  }

  /** Shares that a client of this machine does not find. Where it is not let in, the server itself must answer. */
  async #findLost(signal: AbortSignal): Promise<readonly string[]> {
    const address = ownAddress(this.#address);
    await askForRoot(address, signal);
    if (!allows(this.#tools.settings.allowed_clients, address.host)) return [];
    const shares = [...this.#served.keys()];
    // A share that hangs or fails is lost for clients; the server itself has answered.
    const found = await Promise.all(shares.map((share) => isExported(address, share, signal).catch(() => false)));
    return shares.filter((share, index) => !found[index] && this.#served.has(share));
  }

  // ------------------------------------------------------------ shares

  /** A server that a former daemon left goes on with the shares it has, as far as they are mounted still. */
  async #takeOver(): Promise<void> {
    const { processes, mountTable } = this.#tools;
    await this.#book.open();
    const { former } = this.#book;
    if (!(await processes.adopt(PROCESS_KEY))) return;
    this.#loaded = former;
    for (const one of former) {
      if (!(await mountTable.find(one.path))) continue;
      this.#served.set(one.share, one);
      this.#unclaimed.add(one.share);
    }
    this.#written = await readFile(this.#place.conf, 'utf8').catch(() => undefined);
  }

  #overdue(): readonly string[] {
    const { clock, shares } = this.#tools;
    const isLate = clock.monotonic() - this.#openedAtMs > CLAIM_MS;
    const living = new Map(shares.list().map((share) => [share.spec.share.name, share]));
    return [...this.#unclaimed].filter((name) => living.get(name)?.health === 'failed' || (isLate && !living.get(name)?.mount));
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.then(() => undefined, () => undefined);
    return result;
  }
}

/** A process by its number and start: the number alone comes again. */
function instanceOf(pid: number): string {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    return `${readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim()} ${pid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`;
  } catch {
    return `gone ${pid}`;
  }
}
