import { readFile, rename } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { exporterOf, manageServer, createExportTable, shareAccess, writeWhole } from 'mountkeeper';
import type {
  ListenAddress,
  Config,
  ExporterParts,
  ExporterTools,
  ManagedServer,
  Mount,
  Notice,
  Offer,
  ProcessSpec,
  Secrets,
  ServingExporter,
  ShareSpec,
  ExportTable,
} from 'mountkeeper';
import { GUEST, ownerName } from './accounts.ts';
import type { Owner } from './accounts.ts';
import { listenProblem, resolveListen } from './addresses.ts';
import type { Listening } from './addresses.ts';
import type { SmbConfig } from './config.ts';
import { smbPaths, pathsProblem, preparePaths } from './paths.ts';
import { findSamba } from './samba.ts';
import type { Samba } from './samba.ts';
import { pathProblem, renderConfig } from './server-config.ts';
import type { ServedShare } from './server-config.ts';
import { disconnectChanged, endSessions, reload } from './sessions.ts';
import type { SessionTools } from './sessions.ts';
import {
  askEverywhere,
  awaitReady,
  configProblem,
  endHelper,
  GRACE_MS,
  PROCESS_KEY,
  serverEnvironment,
  serverSpec,
} from './smbd.ts';
import { resolveUsers, settleUsers } from './users.ts';

export interface SmbTools extends ExporterTools {
  readonly secrets: Secrets;
  readonly owner: Owner;
  readonly settings: SmbConfig;
  readonly config: () => Config;
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
  #samba: Samba | undefined;
  #listening: Listening | undefined;
  #configProblem: string | undefined;
  #written: string | undefined;
  /** What sessions may have entered the shares by. */
  #entered: ReadonlyMap<string, ServedShare> = new Map();
  #isLate = false;

  constructor(tools: SmbTools) {
    this.#tools = tools;
    this.isEnabled = tools.settings.enabled;
    this.listensAt = { port: tools.settings.port, addresses: tools.settings.listen };
    this.#paths = smbPaths(tools.paths.stateDir);
    this.shown = createExportTable({
      ...tools,
      protocol: 'smb',
      describe: (spec, mount) => this.#describe(spec, mount),
      apply: () => this.#apply(),
    });
    this.server = manageServer({
      ...tools,
      key: PROCESS_KEY,
      graceMs: GRACE_MS,
      plan: () => this.shown.inTurn(() => this.#plan()),
      ready: async (process, signal) => {
        await awaitReady(this.#endpoint(), process, { clock: tools.clock, signal });
        // Changes during its start may or may not have been read.
        await reload(tools.processes, this.#paths);
        await this.shown.inTurn(() => this.#disconnectChanged());
      },
      ask: (signal) => askEverywhere(this.#endpoint(), signal),
      cleanUp: () => endHelper(this.#paths, tools.clock),
    });
  }

  /** True when every client with access would be served. */
  isServing(): boolean {
    return this.#configProblem === undefined && (this.#tools.settings.guest || this.#users.length > 0);
  }

  beforeLook(): void {
    if (this.#isMoreThere()) this.server.renew();
    if (this.#isLate) void this.shown.inTurn(() => this.#disconnectChanged());
  }

  offers(): readonly Offer[] {
    if (!this.#listening) return [];
    const { interfaces, addresses } = this.#listening;
    return [
      {
        service: '_smb._tcp',
        port: this.#tools.settings.port,
        addresses: interfaces.length === 0 ? ['0.0.0.0'] : addresses,
      },
    ];
  }

  notices(): readonly Notice[] {
    const { settings } = this.#tools;
    const nobody =
      !settings.guest && settings.users.length === 0
        ? ['nobody can log in over SMB: add [[smb.users]], or set smb.guest = true']
        : [];
    const missing = (this.#listening?.missing ?? []).map(
      (entry) => `SMB does not listen on ${entry}: this machine has no such address or network interface now`,
    );
    return [
      ...(this.#configProblem === undefined
        ? []
        : [{ level: 'error' as const, message: `SMB: ${this.#configProblem}` }]),
      ...[...nobody, ...missing, ...this.#userProblems].map((message) => ({
        level: 'warning' as const,
        message,
      })),
    ];
  }

  // ------------------------------------------------------------ the server

  async #plan(): Promise<ProcessSpec> {
    const { processes, settings } = this.#tools;
    this.#samba = await findSamba(processes);
    const problem = pathsProblem(this.#paths);
    if (problem !== undefined) throw new Error(problem);
    this.#listening = resolveListen(settings.listen);
    if (!this.server.process && !(await processes.adopt(PROCESS_KEY)))
      await this.#askForPort(this.#listening);
    await preparePaths(this.#paths);
    await this.#settleUsers(this.#samba);
    return serverSpec(this.#samba, this.#paths, [settings.port, this.#listening.interfaces]);
  }

  async #settleUsers(samba: Samba): Promise<void> {
    const { processes, settings, secrets, log, owner } = this.#tools;
    const { passwords, problems } = resolveUsers(settings.users, secrets);
    this.#users = [...passwords.keys()];
    const wasOpen = !settings.guest && this.#written?.includes('map to guest = Bad User') === true;
    await this.#apply();
    if (this.#configProblem !== undefined) throw new Error(this.#configProblem);
    const env = serverEnvironment(samba, this.#paths);
    const cut = (users: readonly string[]): Promise<void> => this.#cut(users, env);
    if (wasOpen) await cut([GUEST]);
    const failures = await settleUsers(
      passwords,
      { paths: this.#paths, processes, secrets, log, owner, cut },
      env,
    );
    this.#users = this.#users.filter((name) => !failures.has(name));
    const all = [
      ...problems,
      ...[...failures].map(([name, reason]) => `the SMB user "${name}" cannot log in: ${reason}`),
    ];
    for (const reason of all.filter((one) => !this.#userProblems.includes(one)))
      log.error({ reason }, 'SMB user left out');
    this.#userProblems = all;
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

  /** Sessions whose user may do something else by now leave the share. What failed is done at the next look. */
  async #disconnectChanged(): Promise<void> {
    const now = new Map(this.shown.entries);
    if (!this.server.process || !this.#samba || isDeepStrictEqual(this.#entered, now)) return;
    const tools: SessionTools = {
      processes: this.#tools.processes,
      paths: this.#paths,
      env: serverEnvironment(this.#samba, this.#paths),
    };
    try {
      await disconnectChanged(this.#entered, now, tools);
      // Written last: a daemon that is killed before this leaves the rest to the next one.
      await writeWhole(this.#paths.shares, JSON.stringify([...now.values()]));
      this.#entered = now;
      this.#isLate = false;
    } catch (error) {
      this.#isLate = true;
      this.#tools.log.error({ err: error }, 'sessions whose access has changed are not disconnected yet');
    }
  }

  async #askForPort(listening: Listening): Promise<void> {
    const problem = await listenProblem(this.#tools.settings.port, listening);
    if (problem !== undefined) throw new Error(problem);
  }

  /**
   * Writes the configuration, makes the server read it, and disconnects clients of shares that were removed
   * or changed.
   */
  async #apply(): Promise<void> {
    const { processes } = this.#tools;
    if (!this.#samba || !this.#listening) return;
    const text = this.#render(this.#samba, this.#listening);
    if (text !== this.#written) {
      const next = `${this.#paths.conf}.next`;
      await writeWhole(next, text);
      this.#configProblem = await configProblem(processes, next);
      if (this.#configProblem !== undefined)
        this.#tools.log.error(
          { reason: this.#configProblem },
          'configuration of smbd is not valid, the former one stays',
        );
      else await this.#take(next, text);
    }
    await this.#disconnectChanged();
  }

  async #take(file: string, text: string): Promise<void> {
    await rename(file, this.#paths.conf);
    if (this.server.process) await reload(this.#tools.processes, this.#paths);
    // Last: a server that could not be told is told again.
    this.#written = text;
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

  #endpoint(): { addresses: readonly string[]; port: number } {
    return { addresses: this.#listening?.addresses ?? [], port: this.#tools.settings.port };
  }

  #isMoreThere(): boolean {
    const before = this.#listening?.missing ?? [];
    if (before.length === 0) return false;
    const now = missingNow(this.#tools.settings.listen);
    return before.some((entry) => !now.includes(entry));
  }

  // ------------------------------------------------------------ shares

  /** The shares of a server that a former daemon left. */
  async former(): Promise<ReadonlyMap<string, ServedShare>> {
    if (!(await this.#tools.processes.adopt(PROCESS_KEY))) return new Map();
    // Then it is written anew, and the server reads it.
    this.#written = await readFile(this.#paths.conf, 'utf8').catch(() => undefined);
    try {
      const shares = JSON.parse(await readFile(this.#paths.shares, 'utf8')) as ServedShare[];
      this.#entered = new Map(shares.map((share) => [share.name, share]));
      return this.#entered;
    } catch {
      // Nothing is known of what it shows: shares are added as they come.
      return new Map();
    }
  }

  #describe({ share }: ShareSpec, { plan: { mountPoint: path } }: Mount): ServedShare {
    const problem = pathProblem(path);
    if (problem !== undefined) throw new Error(problem);
    // Whether other protocols may write the same files.
    const isShared = share.protocols.some(
      (protocol) => protocol !== 'smb' && this.#tools.exporters.mayServe(protocol),
    );
    const access = shareAccess(this.#tools.config(), share.name);
    return { name: share.name, path, readOnly: share.read_only, isShared, ...(access && { access }) };
  }
}

function missingNow(listen: readonly string[]): readonly string[] {
  try {
    return resolveListen(listen).missing;
  } catch {
    // What cannot be resolved is not there.
    return listen;
  }
}
