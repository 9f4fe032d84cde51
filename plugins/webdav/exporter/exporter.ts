import { randomUUID } from 'node:crypto';
import { chmod } from 'node:fs/promises';
import { join } from 'node:path';
import { entranceOf, manageServer, ownAddress, createExportTable, shareAccess, sizeBytes } from 'mountkeeper';
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
  Secrets,
  ServingExporter,
  ShareAccess,
  ShareSpec,
  ExportTable,
} from 'mountkeeper';
import { isAnswering, isShown } from './health-check.ts';
import type { Address } from './health-check.ts';
import { plainHttpAdvice, ProxyCertificate } from './certificate.ts';
import type { WebdavConfig } from '../config.ts';
import { Backends } from '../backends/backends.ts';
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
  tell,
} from './proxy-process.ts';
import type { ProxyShare, ProxyState } from '../proxy/state.ts';
import { giveFolders, rightsIn, SPOOL } from './folders.ts';
import { webdavPaths, pathsProblem } from './paths.ts';
import { resolveUsers } from './users.ts';

const ANSWER_MS = 2_000;
/** Less than the 5 s that the core gives an exporter. */
const TELL_MS = 4_000;
/** A proxy that is alive but answers nobody in this many checks in a row is ended. */
const PATIENCE = 5;
/** Clients wait this long, because a share that was removed usually returns. */
const RETURN_MS = 15_000;

export interface WebdavTools extends ExporterTools {
  readonly secrets: Secrets;
  readonly certificates: Pick<CertificatesService, 'keep'>;
  readonly settings: WebdavConfig;
  readonly config: () => Config;
  /** The program that shares are mounted with. */
  readonly rclone: () => string;
}

/** By the share's name; shares that name nobody are left out. */
function accessOf(config: Config, shares: readonly string[]): Readonly<Record<string, ShareAccess>> {
  return Object.fromEntries(
    shares.flatMap((name) => {
      const access = shareAccess(config, name);
      return access ? [[name, access] as const] : [];
    }),
  );
}

export class WebdavExporter implements ServingExporter {
  readonly #tools: WebdavTools;
  readonly #paths;
  readonly #address: Address;
  readonly #certificate: ProxyCertificate;
  readonly #server: ManagedServer;
  readonly #shown: ExportTable<ProxyShare>;
  readonly #backends: Backends;
  readonly #frozen = new Set<string>();
  /** The spec and mount that each share was last shown with. */
  readonly #given = new Map<string, { readonly spec: ShareSpec; readonly mount: Mount }>();
  /** Until when the clients of a removed share wait for it. */
  readonly #returning = new Map<string, number>();
  #userProblems: readonly string[] = [];
  /** Of the last plan. */
  #planned: { readonly spool: string; readonly rights: ProcessRights | undefined } | undefined;
  #possible: Promise<ProcessRights | undefined> | undefined;
  #told: string | undefined;
  /** Of the certificate that the proxy shows, by its own report. */
  #fingerprint: string | undefined;
  #isReady = false;
  #isAnswering = false;
  #isClosed = false;
  /** Tells the proxy which requests are this daemon's own. */
  readonly #mark = randomUUID();
  #lost: readonly string[] = [];
  #silences = 0;

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
          [this.#fingerprint, this.#certificate.pair?.fingerprint].includes(fingerprint),
      }),
    };
    this.#certificate = new ProxyCertificate({
      certificates: tools.certificates,
      config: tools.config,
      onChange: () => void this.realign(),
    });
    this.#backends = new Backends({
      clock,
      log,
      processes,
      paths: this.#paths,
      rclone: tools.rclone,
      onFreeze: (share) => this.#freeze(share),
      onReady: (share) => this.#addAgain(share),
      // The mount's process has made it as its own user. Who may come this far is the folder's affair.
      onSocket: (socket) => chmod(socket, 0o777),
    });
    this.#shown = createExportTable<ProxyShare>({
      clock,
      log,
      mountTable: tools.mountTable,
      shares: tools.shares,
      protocol: 'webdav',
      describe: (spec, mount, former) => this.#describe(spec, mount, former),
      apply: () => this.#apply(),
      appliesAll: true,
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
        await this.#shown.inTurn(() => this.#tell());
        await this.#ask(signal);
      },
      cleanUp: async () => {
        this.#isReady = false;
        this.#isAnswering = false;
        this.#told = undefined;
        this.#fingerprint = undefined;
        if (this.#planned) await giveFolders(this.#paths, this.#planned.spool, this.#planned.rights?.user);
      },
    });
  }

  /** True while a client with access would be served, for every share that is shown. */
  get isServing(): boolean {
    return (
      this.#tools.settings.enabled &&
      this.#isAnswering &&
      this.#server.process !== undefined &&
      this.#lost.length === 0 &&
      this.#missing().length === 0
    );
  }

  async open(): Promise<void> {
    if (!this.#tools.settings.enabled) {
      await this.#server.stop();
      return this.#backends.keepOnly(new Set());
    }
    await this.#certificate.keep();
    await this.#shown.open(() => this.#former());
    this.#server.start();
  }

  async close(keepsRunning: boolean): Promise<void> {
    this.#isClosed = true;
    this.#isAnswering = false;
    await this.#certificate.close();
    const { enabled } = this.#tools.settings;
    if (keepsRunning && enabled) {
      await this.#server.release();
    } else {
      await this.#server.stop();
    }
    await this.#backends.close(keepsRunning && enabled);
  }

  async add(spec: ShareSpec, mount: Mount): Promise<void> {
    if (!this.#tools.settings.enabled) return;
    await this.#shown.add(spec, mount);
    // It may name other users, and be shown as before.
    await this.realign();
  }

  async remove(share: string): Promise<void> {
    const { clock, config } = this.#tools;
    this.#frozen.delete(share);
    this.#given.delete(share);
    const isWanted = config().shares.some(
      ({ name, protocols }) => name === share && protocols.includes('webdav'),
    );
    if (isWanted && this.#shown.entries.has(share)) this.#returning.set(share, clock.monotonic() + RETURN_MS);
    await this.#shown.remove(share);
  }

  /** Called when a document has been applied, and with a new certificate: shares, or groups, may name others. */
  async realign(): Promise<void> {
    if (!this.#tools.settings.enabled) return;
    await this.#certificate.keep();
    // It has its folders open, and gets others with a start.
    if (this.#planned && this.#planned.spool !== this.#wantedSpool()) this.#server.renew();
    await this.#shown.inTurn(() => this.#tellOrLog());
  }

  /** Asks the proxy as a client would, and does overdue work. */
  async look(signal: AbortSignal): Promise<void> {
    if (!this.#tools.settings.enabled) return;
    await this.#shown.dropUnclaimed();
    await this.#shown.catchUp();
    for (const share of [...this.#missing(), ...this.#lost]) this.#addAgain(share);
    await this.#shown.inTurn(() => this.#tell());
    if (this.#server.process && this.#isReady) await this.#ask(signal);
    else this.#isAnswering = false;
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
    const known = settings.users.length - this.#userProblems.length;
    const nobody =
      settings.users.length > 0 && known <= 0
        ? ['nobody can log in over WebDAV: no user has a password that is known']
        : [];
    return [
      ...(problem === undefined
        ? []
        : [
            {
              level: this.#server.isStarting ? ('info' as const) : ('error' as const),
              message: `WebDAV: ${problem}`,
            },
          ]),
      ...(settings.users.length === 0
        ? [
            {
              level: 'warning' as const,
              message: 'everybody who reaches its port is let in over WebDAV: add [[webdav.users]]',
            },
          ]
        : []),
      ...[...nobody, ...this.#hidden(), ...this.#userProblems].map((message) => ({
        level: 'warning' as const,
        message,
      })),
      ...this.#lost.map((share) => ({
        level: 'error' as const,
        message: `the share '${share}' does not answer over WebDAV`,
      })),
      ...this.#certificate.notices(this.#fingerprint !== undefined),
      ...(plain === undefined ? [] : [{ level: 'warning' as const, message: plain }]),
      ...this.#shown.notices(),
    ];
  }

  /** Without users nobody can show that a share is theirs. */
  #hidden(): readonly string[] {
    const { settings, config } = this.#tools;
    if (settings.users.length > 0) return [];
    return [...this.#shown.entries.keys()]
      .filter((share) => shareAccess(config(), share) !== undefined)
      .map((share) => `the share '${share}' names its users and WebDAV has none: nobody finds it there`);
  }

  // ------------------------------------------------------------ the proxy

  async #plan(): Promise<ProcessSpec> {
    const problem = pathsProblem(this.#paths);
    if (problem !== undefined) throw new Error(problem);
    const spool = this.#wantedSpool();
    const rights = await this.#rightsFor(spool);
    const spec = await proxySpec({ paths: this.#paths, address: this.#address, rights, spool });
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

  #state(): ProxyState {
    const { settings, secrets, config, clock, log } = this.#tools;
    const { users, problems } = resolveUsers(settings.users, secrets);
    for (const reason of problems.filter((one) => !this.#userProblems.includes(one)))
      log.error({ reason }, 'WebDAV user left out');
    this.#userProblems = problems;
    for (const [share, end] of this.#returning)
      if (this.#shown.entries.has(share) || end <= clock.monotonic()) this.#returning.delete(share);
    const { cache, web } = config();
    return {
      users,
      ...(this.#certificate.pair && { certificate: this.#certificate.pair }),
      isOpen: settings.users.length === 0,
      hostnames: web.hostnames,
      trustedProxies: web.trusted_proxies,
      spool: this.#planned?.spool ?? this.#wantedSpool(),
      minFreeBytes: sizeBytes(cache.min_free_space),
      shares: [...this.#shown.entries.values()],
      access: accessOf(config(), [...this.#shown.entries.keys(), ...this.#returning.keys()]),
      returning: [...this.#returning.keys()],
      mark: this.#mark,
    };
  }

  /**
   * Resolves once the proxy has accepted the current state, or is not running. A state that it did not
   * accept is sent again at the next check.
   */
  async #tell(): Promise<void> {
    if (!this.#isReady || this.#isClosed || !this.#server.process) return;
    const state = this.#state();
    const text = JSON.stringify(state);
    if (text === this.#told) return;
    this.#told = undefined;
    const { fingerprint } = await tell(this.#paths, state, this.#tools.clock.deadline(TELL_MS));
    this.#fingerprint = fingerprint;
    this.#told = text;
  }

  async #tellOrLog(): Promise<void> {
    await this.#tell().catch((error: unknown) =>
      this.#tools.log.error({ err: error }, 'the WebDAV proxy did not accept the list of shares'),
    );
  }

  async #apply(): Promise<void> {
    await this.#tellOrLog();
    await this.#backends.keepOnly(new Set(this.#shown.entries.keys()));
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#tools;
    // Nobody can connect, and its notice says why.
    if (this.#address.isOurs && this.#fingerprint === undefined) {
      this.#isAnswering = false;
      return;
    }
    const deadline = clock.deadline(ANSWER_MS, signal);
    try {
      this.#isAnswering = await this.#isLetIn(undefined, deadline);
      this.#silences = 0;
    } catch (error) {
      if (signal.aborted) return;
      this.#isAnswering = false;
      this.#silences += 1;
      log.warn(
        { reason: (error as Error).message, silences: this.#silences },
        'the WebDAV proxy does not answer',
      );
      if (this.#silences < PATIENCE) return;
      this.#silences = 0;
      // Wrong passwords from this machine slow down the daemon's own request, too: an answer that says so
      // still counts.
      const isDeaf = !(await isAnswering(this.#own, clock.deadline(ANSWER_MS, signal)));
      if (isDeaf && !signal.aborted) this.#server.process?.signal('SIGKILL');
      return;
    }
    const names = [...this.#shown.entries.keys()];
    const found = await Promise.all(
      // Lost for its clients, however it fails.
      names.map((name) => this.#isLetIn(name, deadline).catch(() => false)),
    );
    if (!signal.aborted)
      this.#lost = names.filter((name, index) => found[index] === false && this.#shown.entries.has(name));
  }

  /** Asks for the share, or for the list of shares, as the first user who may. */
  async #isLetIn(share: string | undefined, signal: AbortSignal): Promise<boolean> {
    const { settings, secrets, config } = this.#tools;
    const { users } = resolveUsers(settings.users, secrets);
    const access = share === undefined ? undefined : shareAccess(config(), share);
    const user = users.find(({ name }) => entranceOf(access, name) !== 'none');
    // None of its users is one of this server: nobody is to find it.
    if (access && !user) return true;
    if (settings.users.length > 0 && !user) return false;
    const path = share === undefined ? '/' : `/${encodeURIComponent(share)}/`;
    return isShown(this.#own, path, { user, mark: this.#mark }, signal);
  }

  /** Where this machine itself reaches the proxy. */
  get #own(): Address {
    return { ...this.#address, ...ownAddress(this.#address) };
  }

  // ------------------------------------------------------------ shares

  /** Healthy shares that should be shown and are not. */
  #missing(): readonly string[] {
    const wanted = this.#tools.shares
      .list()
      .filter(
        ({ spec, mount, health }) => mount && health === 'healthy' && spec.share.protocols.includes('webdav'),
      );
    return wanted.map(({ spec }) => spec.share.name).filter((name) => !this.#shown.entries.has(name));
  }

  async #describe(spec: ShareSpec, mount: Mount, former: ProxyShare | undefined): Promise<ProxyShare> {
    const { name, read_only: readOnly } = spec.share;
    this.#given.set(name, { spec, mount });
    // A backend that hangs or restarts stays visible to clients: they wait for it.
    const backend = await this.#backends
      .obtain(spec, mount)
      .catch((error: unknown) => (former ? former.backend : Promise.reject(error as Error)));
    if (former && former.backend.instance !== backend.instance) this.#frozen.delete(name);
    return {
      name,
      path: mount.plan.mountPoint,
      readOnly,
      isFrozen: this.#frozen.has(name),
      backend,
    };
  }

  async #freeze(share: string): Promise<void> {
    if (this.#isClosed) return;
    this.#frozen.add(share);
    this.#addAgain(share);
    await this.#shown.inTurn(() => Promise.resolve());
  }

  #addAgain(share: string): void {
    const given =
      this.#given.get(share) ?? this.#tools.shares.list().find(({ spec }) => spec.share.name === share);
    if (given?.mount && !this.#isClosed)
      void this.#shown
        .add(given.spec, given.mount)
        .catch((error: unknown) => this.#tools.log.error({ share, err: error }, 'share not shown'));
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
