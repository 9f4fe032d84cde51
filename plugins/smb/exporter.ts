import { isDeepStrictEqual } from 'node:util';
import { exporterOf, manageServer, createExportTable, isShownOver, shareAccess } from 'mountkeeper';
import type {
  ClientSession,
  ListenAddress,
  Config,
  ExporterParts,
  ExporterTools,
  ManagedServer,
  Mount,
  Notice,
  Offer,
  ProcessSpec,
  RefusedSignIns,
  Secrets,
  ServingExporter,
  ShareSpec,
  ExportTable,
} from 'mountkeeper';
import { ApplyAgain } from './apply-again.ts';
import { GUEST, ownerName } from './users/accounts.ts';
import { clientsOf, disconnectClient } from './clients.ts';
import type { ClientTools } from './clients.ts';
import type { Owner } from './users/accounts.ts';
import { listenProblem, resolveListen } from './addresses.ts';
import type { Listening } from './addresses.ts';
import type { SmbConfig } from './config.ts';
import { Reach, Restart } from './reach.ts';
import { smbPaths, pathsProblem, preparePaths } from './paths.ts';
import { findSamba } from './samba.ts';
import type { Samba } from './samba.ts';
import { pathProblem, renderConfig } from './server-config.ts';
import type { ServedShare } from './server-config.ts';
import { endSessions, hasHeard, reload, sessionsOf } from './sessions.ts';
import { isAudit } from './sign-ins/refusal.ts';
import { RefusedSignInsWatch } from './sign-ins/refused-sign-ins.ts';
import {
  awaitReady,
  endHelper,
  Enforcement,
  GRACE_MS,
  PROCESS_KEY,
  serverEnvironment,
  serverRights,
  specFor,
} from './smbd.ts';
import type { Wanted } from './smbd.ts';
import { createBasis, isUnread, UNREAD } from './unread.ts';
import {
  forgetGuests,
  mayHaveGuests,
  noteGuests,
  resolveUsers,
  settleUsers,
  unsureUsers,
} from './users/users.ts';
import { PasswordFiles } from './users/password-files.ts';

/** Passwords that could not be set are tried again this often. */
const TRY_EVERY_MS = 10_000;
const UNSEEN = 'nobody can look whether passwords of SMB users were changed past the configuration';

export interface SmbTools extends ExporterTools {
  readonly secrets: Secrets;
  readonly owner: Owner;
  readonly settings: SmbConfig;
  readonly config: () => Config;
  readonly onRefused: (refused: RefusedSignIns) => void;
}

export interface SmbExporter extends ServingExporter {
  /**
   * Called when a document has been applied. Groups may have other members; and another protocol may have been
   * switched on or off: oplocks and leases are allowed only where no other protocol writes the same files.
   */
  realign(): Promise<void>;
}

export function createSmbExporter(tools: SmbTools): SmbExporter {
  const parts = new SmbParts(tools);
  return Object.assign(exporterOf(parts), { realign: () => parts.shown.redescribe() });
}

class SmbParts implements ExporterParts<ServedShare> {
  readonly label = 'SMB';
  readonly isEnabled: boolean;
  readonly listensAt: ListenAddress;
  readonly server: ManagedServer;
  readonly shown: ExportTable<ServedShare>;
  readonly #tools: SmbTools;
  readonly #paths;
  #userProblems: readonly string[] = [];
  #users: readonly string[] = [];
  /** Why a user's password could not be set, so that the former one may be right; undefined where all could. */
  #keptPassword: string | undefined;
  /** Why nobody knows whether passwords in the database are still those that were set; undefined when that is known. */
  #unseen: string | undefined;
  /** Why users could not be settled at all, so that nobody knows who has which password. */
  #unsettled: string | undefined;
  #nextTryMs = 0;
  readonly #files: PasswordFiles;
  #samba: Samba | undefined;
  #listening: Listening | undefined;
  readonly #reach: Reach;
  readonly #restart: Restart;
  /** Before it answers, it cannot be told anything either. */
  #isReady = false;
  readonly #enforcement: Enforcement;
  readonly #refused: RefusedSignInsWatch;
  /** What failed before, or was changed while the server started. */
  readonly #again: ApplyAgain;

  constructor(tools: SmbTools) {
    this.#tools = tools;
    this.isEnabled = tools.settings.enabled;
    this.listensAt = { port: tools.settings.port, addresses: tools.settings.listen };
    this.#paths = smbPaths(tools.paths.stateDir);
    this.#files = new PasswordFiles(tools.settings.users);
    this.#reach = new Reach({ listen: tools.settings.listen, port: tools.settings.port });
    this.#restart = new Restart(this.#reach, tools.clock);
    this.#enforcement = new Enforcement({ ...tools, paths: this.#paths });
    this.#refused = new RefusedSignInsWatch({
      ...tools,
      noteFile: this.#paths.read,
      hasGuests: tools.settings.guest,
      tell: tools.onRefused,
    });
    this.shown = createExportTable({
      ...tools,
      protocol: 'smb',
      isMeant: (share) => isShownOver(tools.config(), share, 'smb'),
      describe: (spec, mount) => this.#describe(spec, mount),
      apply: () => this.#apply(),
      appliesAll: true,
      basis: createBasis(tools.config, () => tools.shares.list()),
    });
    this.#again = new ApplyAgain(() => this.shown.inTurn(() => this.#apply()), tools.log);
    this.server = manageServer({
      ...tools,
      key: PROCESS_KEY,
      graceMs: GRACE_MS,
      isNoise: isAudit,
      plan: () => this.shown.inTurn(() => this.#plan()),
      ready: async (process, signal) => {
        const { clock } = tools;
        const { port } = tools.settings;
        await awaitReady(process, { clock, signal, port, ask: (end) => this.#reach.ask(process, end) });
        this.#isReady = true;
        // Changes during its start may or may not have been read.
        this.#enforcement.tellAgain();
        await this.#again.run();
      },
      ask: async (signal) => {
        if (this.server.process) await this.#reach.ask(this.server.process, signal);
      },
      cleanUp: () => {
        this.#isReady = false;
        return endHelper(this.#paths, tools.clock);
      },
    });
  }

  /** True when every client with access would be served. */
  isServing(): boolean {
    return this.#enforcement.problem === undefined && (this.#tools.settings.guest || this.#users.length > 0);
  }

  beforeLook(): void {
    this.#tryPasswordsAgain();
    void this.#restartForMore();
    void this.#files.haveChanged().then((isOther) => isOther && this.server.renew());
    this.#again.begin();
    const { process } = this.server;
    if (process) void this.#refused.look(process.logFile);
  }

  offers(): readonly Offer[] {
    if (!this.#listening) return [];
    const { interfaces } = this.#listening;
    return [
      {
        service: '_smb._tcp',
        port: this.#tools.settings.port,
        addresses: interfaces.length === 0 ? ['0.0.0.0'] : this.#reach.answering,
      },
    ];
  }

  async sessions(): Promise<readonly ClientSession[]> {
    const tools = this.#clientTools();
    return tools ? clientsOf(tools) : [];
  }

  async endSession(id: string): Promise<boolean> {
    const tools = this.#clientTools();
    return tools !== undefined && disconnectClient(id, tools);
  }

  #clientTools(): ClientTools | undefined {
    if (!this.#samba) return undefined;
    return {
      processes: this.#tools.processes,
      clock: this.#tools.clock,
      paths: this.#paths,
      env: serverEnvironment(this.#samba, this.#paths),
      port: this.#tools.settings.port,
      shares: new Set(this.shown.entries.keys()),
    };
  }

  isMeant(): boolean {
    return this.#tools.config().smb.enabled;
  }

  /** Accounts are settled by the exporter that was made with them, before it has a server. */
  async enforce(): Promise<void> {
    const { config, settings } = this.#tools;
    const { guest, users } = config().smb;
    if (!isDeepStrictEqual([users, guest], [settings.users, settings.guest]))
      throw new Error('smbd is just being given other users');
    if (!this.#isReady) throw new Error('smbd is just starting');
    await this.shown.redescribe();
    const problem = this.#enforcement.problem ?? this.#unsettled ?? this.#keptPassword;
    if (problem !== undefined) throw new Error(problem);
    await hasHeard(this.#tools.processes, this.#paths);
  }

  notices(): readonly Notice[] {
    const { settings } = this.#tools;
    const { problem } = this.#enforcement;
    const nobody =
      !settings.guest && settings.users.length === 0
        ? ['nobody can log in over SMB: add [[smb.users]], or set smb.guest = true']
        : [];
    // Before, the server itself is told to be down, and why.
    const unreached = this.#listening ? this.#reach.problems(this.server.process) : [];
    const unseen = this.#unseen === undefined ? [] : [`${UNSEEN}: ${this.#unseen}`];
    const errors = new Set([problem, this.#unsettled]);
    // Said already, or nothing to say.
    for (const one of [this.server.problem, undefined]) errors.delete(one);
    return [
      ...[...errors].map((one) => ({ level: 'error' as const, message: `SMB: ${one}` })),
      ...[...nobody, ...unreached, ...this.#userProblems, ...unseen].map((message) => ({
        level: 'warning' as const,
        message,
      })),
    ];
  }

  // ------------------------------------------------------------ the server

  async #plan(): Promise<ProcessSpec> {
    const { processes, settings } = this.#tools;
    const isRestart = this.#restart.take();
    this.#samba = await findSamba(processes);
    const problem = pathsProblem(this.#paths);
    if (problem !== undefined) throw new Error(problem);
    this.#listening = resolveListen(settings.listen);
    const running = this.server.process ?? (await processes.adopt(PROCESS_KEY));
    if (!running) await this.#askForPort(this.#listening);
    await preparePaths(this.#paths);
    try {
      await this.#settleUsers(this.#samba);
      this.#unsettled = undefined;
    } catch (error) {
      this.#unsettled = (error as Error).message;
      throw error;
    }
    const spec = specFor(
      { samba: this.#samba, paths: this.#paths, port: settings.port, listen: settings.listen },
      this.#listening,
      isRestart ? undefined : running,
    );
    return { ...spec, rights: await serverRights(settings.port, processes) };
  }

  /** Never rejects. */
  async #restartForMore(): Promise<void> {
    const { process } = this.server;
    if (!this.#samba || !process || !this.#isReady) return;
    const tools = {
      processes: this.#tools.processes,
      paths: this.#paths,
      env: serverEnvironment(this.#samba, this.#paths),
    };
    // Where it does not say who is connected, somebody may be.
    const isFree = (): Promise<boolean> =>
      sessionsOf(tools).then(
        (sessions) => sessions.length === 0,
        () => false,
      );
    if (await this.#restart.look(process, isFree)) this.server.renew();
  }

  #tryPasswordsAgain(): void {
    const now = this.#tools.clock.monotonic();
    if ((this.#unsettled ?? this.#keptPassword ?? this.#unseen) === undefined || now < this.#nextTryMs)
      return;
    this.#nextTryMs = now + TRY_EVERY_MS;
    this.server.renew();
  }

  async #settleUsers(samba: Samba): Promise<void> {
    const { processes, settings, secrets, log, owner } = this.#tools;
    await this.#files.aboutToRead();
    const { passwords, problems } = resolveUsers(settings.users, secrets);
    // Whoever has the former password yet is let in nowhere, also while the new one is tried again.
    const unsure = await unsureUsers(this.#paths);
    this.#users = [...passwords.keys()].filter((name) => !unsure.has(name));
    // A former version kept no note.
    const wasOpen =
      this.#enforcement.written?.includes('map to guest = Bad User') === true ||
      (await mayHaveGuests(this.#paths));
    if (settings.guest) await noteGuests(this.#paths);
    await this.#apply();
    const env = serverEnvironment(samba, this.#paths);
    const cut = (users: readonly string[]): Promise<void> => this.#cut(users, env);
    if (wasOpen && !settings.guest) {
      await cut([GUEST]);
      await forgetGuests(this.#paths);
    }
    const { failures, unseen } = await settleUsers(passwords, {
      paths: this.#paths,
      processes,
      env,
      log,
      owner,
      cut,
    });
    this.#users = [...passwords.keys()].filter((name) => !failures.has(name));
    this.#keptPassword = [...failures.values()][0];
    await this.#apply();
    const all = [
      ...problems,
      ...[...failures].map(([name, reason]) => `the SMB user "${name}" cannot log in: ${reason}`),
    ];
    for (const reason of all.filter((one) => !this.#userProblems.includes(one)))
      log.error({ reason }, 'SMB user left out');
    this.#userProblems = all;
    if (unseen !== undefined && unseen !== this.#unseen) log.warn({ reason: unseen }, UNSEEN);
    this.#unseen = unseen;
  }

  /** A user who lost access is disconnected at once, not when the session ends. */
  async #cut(users: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
    const { processes } = this.#tools;
    if (!this.server.process && !(await processes.adopt(PROCESS_KEY))) return;
    await reload(processes, this.#paths);
    await endSessions(new Set(users.map((name) => name.toLowerCase())), {
      processes,
      paths: this.#paths,
      env,
    });
  }

  async #askForPort(listening: Listening): Promise<void> {
    const problem = await listenProblem(this.#tools.settings.port, listening);
    if (problem !== undefined) throw new Error(problem);
  }

  async #apply(): Promise<void> {
    const wanted = this.#wanted();
    if (wanted) await this.#enforcement.apply(wanted);
  }

  /** Undefined before the first plan. */
  #wanted(): Wanted | undefined {
    if (!this.#samba || !this.#listening) return undefined;
    return {
      text: this.#render(this.#samba, this.#listening),
      shares: this.shown.entries,
      env: this.#isReady && this.server.process ? serverEnvironment(this.#samba, this.#paths) : undefined,
    };
  }

  #render(samba: Samba, listening: Listening): string {
    const { settings, owner } = this.#tools;
    return renderConfig(
      {
        paths: this.#paths,
        port: settings.port,
        listen: listening.interfaces,
        guest: settings.guest,
        users: this.#users,
        hasFruit: samba.hasFruit,
        owner: ownerName(owner),
      },
      [...this.shown.entries.values()],
    );
  }

  // ------------------------------------------------------------ shares

  /** The shares of a server that a former daemon left. */
  async former(): Promise<ReadonlyMap<string, ServedShare>> {
    if (!(await this.#tools.processes.adopt(PROCESS_KEY))) return new Map();
    try {
      return await this.#enforcement.recall();
    } catch {
      // Nothing is known of what it shows: shares are added as they come.
      return new Map();
    }
  }

  #describe({ share }: ShareSpec, { plan: { mountPoint: path } }: Mount): ServedShare {
    const problem = pathProblem(path);
    if (problem !== undefined) throw new Error(problem);
    const live = this.#tools.shares.get(share.name);
    if (live && isUnread(live)) throw new Error(UNREAD);
    // Whether other protocols may write the same files.
    const isShared = share.protocols.some(
      (protocol) => protocol !== 'smb' && this.#tools.exporters.mayServe(protocol),
    );
    const access = shareAccess(this.#tools.config(), share.name);
    return { name: share.name, path, readOnly: share.read_only, isShared, ...(access && { access }) };
  }
}
