import { join } from 'node:path';
import { logIgnored, manageServer } from 'mountkeeper';
import type {
  CertificatesService,
  ClientSession,
  ListenAddress,
  Config,
  ExporterTools,
  ManagedServer,
  Mount,
  Notice,
  Offer,
  ProcessRights,
  ProcessSpec,
  RefusedSignIns,
  Secrets,
  ServingExporter,
  ShareSpec,
} from 'mountkeeper';
import { ClientView } from './client-view.ts';
import type { Address } from './health-check.ts';
import { plainHttpAdvice, ProxyCertificate } from './certificate.ts';
import type { WebdavConfig } from '../config.ts';
import { ShownShares } from './shown-shares.ts';
import {
  awaitReady,
  endSession,
  proxyRights,
  proxySpec,
  GRACE_MS,
  listenProblem,
  PROCESS_KEY,
  report,
  sessions,
  takeRefused,
} from './proxy-process.ts';
import type { ProxyShare } from '../proxy/state.ts';
import { giveFolders, rightsIn, SPOOL } from './folders.ts';
import { webdavPaths, pathsProblem } from './paths.ts';
import { KeptUploads } from './kept-uploads.ts';
import { ToldState } from './told-state.ts';
import { loginNotices } from './users.ts';
import { SystemAccounts } from '../system/accounts.ts';

const ANSWER_MS = 2_000;

export interface WebdavTools extends ExporterTools {
  readonly secrets: Secrets;
  readonly certificates: Pick<CertificatesService, 'keep'>;
  readonly settings: WebdavConfig;
  readonly config: () => Config;
  /** The program that shares are mounted with. */
  readonly rclone: () => string;
  readonly onRefused: (refused: RefusedSignIns) => void;
}

export class WebdavExporter implements ServingExporter {
  readonly #tools: WebdavTools;
  readonly #paths;
  readonly #address: Address;
  readonly #certificate: ProxyCertificate;
  readonly #server: ManagedServer;
  readonly #view: ClientView;
  readonly #told: ToldState;
  readonly #kept: KeptUploads;
  readonly #accounts: SystemAccounts;
  readonly #shown: ShownShares;
  /** Of the last plan. */
  #planned: { readonly spool: string; readonly rights: ProcessRights | undefined } | undefined;
  #possible: Promise<ProcessRights | undefined> | undefined;
  #isReady = false;
  /** True once it is known what the proxy of a former daemon, or of a former exporter, shows. */
  #knowsFormer = false;
  /** Set where WebDAV is off and no proxy runs. */
  #isStopped = false;
  #isClosed = false;

  constructor(tools: WebdavTools) {
    const { clock, log, processes } = tools;
    this.#tools = tools;
    this.#paths = webdavPaths(tools.paths.stateDir);
    this.#address = {
      host: tools.settings.listen,
      port: tools.settings.port,
      // The proxy may have it before it is known that it has.
      ...(tools.settings.tls && {
        isOurs: (fingerprint) =>
          [this.#told.fingerprint, this.#certificate.pair?.fingerprint].includes(fingerprint),
      }),
    };
    this.#certificate = new ProxyCertificate({
      certificates: tools.certificates,
      config: tools.config,
      onChange: () => void this.realign(),
    });
    this.#shown = new ShownShares({
      ...tools,
      webdavPaths: this.#paths,
      tell: () => this.#tellOrLog(),
      onGoing: (share) => this.#told.expectBack(share),
    });
    this.#view = new ClientView({
      ...tools,
      address: this.#address,
      shares: () => this.#shown.names,
      onDeaf: () => this.#server.process?.signal('SIGKILL'),
    });
    this.#accounts = new SystemAccounts({ ...tools, paths: this.#paths });
    this.#kept = new KeptUploads({ ...tools, paths: this.#paths });
    this.#told = new ToldState({
      ...tools,
      paths: this.#paths,
      shares: () => this.#shown.table.entries,
      certificate: () => this.#certificate.pair,
      spool: () => this.#planned?.spool ?? this.#wantedSpool(),
      mark: this.#view.mark,
      own: this.#view.own,
      systemUsers: (group) => this.#accounts.members(group),
    });
    this.#server = manageServer({
      clock,
      log,
      processes,
      key: PROCESS_KEY,
      graceMs: GRACE_MS,
      plan: () => this.#plan(),
      ready: async (process, signal) => {
        await awaitReady(this.#paths, process, { clock, signal });
        this.#isReady = true;
        this.#accounts.answer();
        await this.#shown.table.inTurn(() => this.#tell());
        await this.#ask(signal);
      },
      cleanUp: async () => {
        this.#isReady = false;
        this.#accounts.stop();
        this.#view.setDown();
        this.#told.forget();
        if (this.#planned) await giveFolders(this.#paths, this.#planned.spool, this.#planned.rights?.user);
      },
    });
  }

  /** True while a client with access would be served, for every share that is shown. */
  get isServing(): boolean {
    return (
      this.#tools.settings.enabled &&
      this.#view.isAnswering &&
      this.#server.process !== undefined &&
      this.#view.lost.length === 0 &&
      this.#shown.isComplete
    );
  }

  async open(): Promise<void> {
    if (!this.#tools.settings.enabled) {
      await this.#server.stop();
      this.#isStopped = true;
      return this.#shown.clear();
    }
    await this.#certificate.keep();
    // Before the proxy of a former daemon is told: whom it serves stays.
    await this.#accounts.read();
    await this.#shown.table.open(async () => {
      const former = await this.#former();
      this.#knowsFormer = former.size > 0;
      // Shares may take seconds each until they are ready: who has another password, or no account any more, is put out
      // before them.
      if (former.size > 0) void this.#shown.table.inTurn(() => this.#tellFirst());
      return former;
    });
    this.#server.start();
  }

  async close(keepsRunning: boolean): Promise<void> {
    this.#isClosed = true;
    this.#accounts.close();
    this.#view.setDown();
    await this.#certificate.close();
    const { enabled } = this.#tools.settings;
    if (keepsRunning && enabled) {
      await this.#server.release();
    } else {
      await this.#server.stop();
    }
    await this.#shown.close(keepsRunning && enabled);
  }

  async add(spec: ShareSpec, mount: Mount): Promise<void> {
    if (!this.#tools.settings.enabled) return;
    await this.#shown.add(spec, mount);
    // It may name other users, and be shown as before.
    await this.realign();
  }

  remove(share: string): Promise<void> {
    return this.#shown.remove(share);
  }

  quiesce(share: string): Promise<void> {
    return this.#shown.freeze(share);
  }

  /** Called when a document has been applied, and with a new certificate: shares, or groups, may name others. */
  async realign(): Promise<void> {
    if (!this.#tools.settings.enabled) return;
    await this.#certificate.keep();
    // It has its folders open, and gets others with a start.
    if (this.#planned && this.#planned.spool !== this.#wantedSpool()) this.#server.renew();
    await this.#shown.table.inTurn(() => this.#tellOrLog());
  }

  /** Asks the proxy as a client would, and does overdue work. */
  async look(signal: AbortSignal): Promise<void> {
    if (!this.#tools.settings.enabled) return;
    void this.#tellRefused(signal);
    if (this.#isReady && this.#server.process) void this.#kept.read(signal);
    // Not waited for: a directory that hangs must not hold up the look at the proxy.
    void this.#accounts.read();
    if (this.#isReady) this.#accounts.answer();
    await this.#shown.table.dropUnclaimed();
    await this.#shown.table.catchUp();
    for (const share of [...this.#shown.missing, ...this.#view.lost]) this.#shown.addAgain(share);
    // One that takes no word is asked all the same: it may hang.
    await this.#shown.table.inTurn(() => this.#tellOrLog());
    await this.#ask(signal);
  }

  /** Not in turn: a share that is looked at would keep a former password right. */
  async enforce(): Promise<void> {
    const { settings } = this.#tools;
    if (!settings.enabled && !this.#isStopped) throw new Error('the WebDAV proxy is being stopped');
    if (!settings.enabled) return;
    // No proxy, nobody who comes in.
    if (!this.#isClosed && !this.#server.process && !this.#server.isStarting) return;
    if (this.#isClosed || !(this.#knowsFormer || this.#isReady))
      throw new Error('the WebDAV proxy is just being taken over');
    await this.#told.tell();
  }

  /** Another process reads from the NAS for this share. */
  readAnew(share: string): void {
    if (this.#tools.settings.enabled) this.#shown.readAnew(share);
  }

  get isEnabled(): boolean {
    return this.#tools.settings.enabled;
  }

  get listensAt(): ListenAddress {
    return { port: this.#address.port, addresses: [this.#address.host] };
  }

  offers(): readonly Offer[] {
    const { host, port, isOurs } = this.#address;
    const service = isOurs ? '_webdavs._tcp' : '_webdav._tcp';
    return this.isServing ? [{ service, port, addresses: [host], details: { path: '/' } }] : [];
  }

  async sessions(): Promise<readonly ClientSession[]> {
    if (!this.#server.process) return [];
    return sessions(this.#paths, this.#tools.clock.deadline(ANSWER_MS));
  }

  async endSession(id: string): Promise<boolean> {
    if (!this.#server.process) return false;
    return endSession(this.#paths, id, this.#tools.clock.deadline(ANSWER_MS));
  }

  notices(): readonly Notice[] {
    const { settings } = this.#tools;
    if (!settings.enabled) return [];
    const problem = this.#server.problem;
    const plain = plainHttpAdvice(this.#tools.config());
    return [
      ...(problem === undefined
        ? []
        : [
            {
              level: this.#server.isStarting ? ('info' as const) : ('error' as const),
              message: `WebDAV: ${problem}`,
            },
          ]),
      ...loginNotices({
        config: this.#tools.config(),
        settings,
        shares: this.#shown.names,
        problems: this.#told.userProblems,
        systemProblems: this.#accounts.problems,
      }),
      ...this.#view.lost.map((share) => ({
        level: 'error' as const,
        message: `the share '${share}' does not answer over WebDAV`,
      })),
      ...this.#certificate.notices(this.#told.fingerprint !== undefined),
      ...(plain === undefined ? [] : [{ level: 'warning' as const, message: plain }]),
      ...this.#shown.table.notices(),
      ...this.#kept.notices(),
    ];
  }

  // ------------------------------------------------------------ the proxy

  async #plan(): Promise<ProcessSpec> {
    const problem = pathsProblem(this.#paths);
    if (problem !== undefined) throw new Error(problem);
    const spool = this.#wantedSpool();
    const rights = await this.#rightsFor(spool);
    const spec = await proxySpec({
      paths: this.#paths,
      address: this.#address,
      rights,
      spool,
    });
    this.#planned = { spool, rights };
    const running = this.#server.process ?? (await this.#tools.processes.adopt(PROCESS_KEY));
    const taken = running ? undefined : await listenProblem(this.#address);
    if (taken !== undefined) throw new Error(taken);
    return spec;
  }

  #wantedSpool(): string {
    return join(this.#tools.config().cache.dir, SPOOL);
  }

  /** What is possible on this machine is found out once: a proxy goes on as it was started. */
  async #rightsFor(spool: string): Promise<ProcessRights | undefined> {
    this.#possible ??= proxyRights(this.#address, this.#tools.processes);
    const possible = await this.#possible;
    const rights = await rightsIn(spool, possible);
    if (rights !== possible)
      this.#tools.log.warn(
        { spool },
        'this folder cannot be given to another user: the WebDAV proxy stays root',
      );
    return rights;
  }

  /** Resolves once the proxy has accepted the current state, or is not running. */
  async #tell(): Promise<void> {
    if (this.#isReady && !this.#isClosed && this.#server.process) await this.#told.tell();
  }

  async #tellOrLog(): Promise<void> {
    await this.#tell().catch((error: unknown) =>
      this.#tools.log.error({ err: error }, 'the WebDAV proxy did not accept the list of shares'),
    );
  }

  async #tellFirst(): Promise<void> {
    try {
      await this.#told.tell();
    } catch {
      // It is told again when it is ready, or ended by then.
    }
  }

  /** Never rejects. Counts of an answer that does not arrive are lost: the proxy has given them away. */
  async #tellRefused(signal: AbortSignal): Promise<void> {
    if (!this.#isReady || !this.#server.process) return;
    const { clock, log, onRefused } = this.#tools;
    const refused = await takeRefused(this.#paths, clock.deadline(ANSWER_MS, signal)).catch(
      logIgnored(log, 'asking the WebDAV proxy whom it has refused'),
    );
    if (refused) onRefused(refused);
  }

  async #ask(signal: AbortSignal): Promise<void> {
    // Without a certificate nobody can connect, and its notice says why.
    const isBare = this.#address.isOurs !== undefined && this.#told.fingerprint === undefined;
    if (this.#server.process && this.#isReady && !isBare) await this.#view.ask(signal);
    else this.#view.setDown();
  }

  /** The shares that the proxy of a former daemon shows. */
  async #former(): Promise<ReadonlyMap<string, ProxyShare>> {
    const { processes, clock } = this.#tools;
    if (!(await processes.adopt(PROCESS_KEY))) return new Map();
    const shares = await report(this.#paths, clock.deadline(ANSWER_MS)).then(
      (one) => one.shares,
      () => [],
    );
    return new Map(shares.map((share) => [share.name, share]));
  }
}
