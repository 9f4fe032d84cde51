import { readFile, rename } from 'node:fs/promises';
import { exporterOf, keepServer, showShares, writeWhole } from 'mountkeeper';
import type {
  Config,
  ExporterParts,
  ExporterTools,
  KeptServer,
  Mount,
  Notice,
  Offer,
  ProcessSpec,
  Secrets,
  ServingExporter,
  ShareSpec,
  ShownShares,
} from 'mountkeeper';
import { GUEST, ownerName } from './accounts.ts';
import type { Owner } from './accounts.ts';
import { listenProblem, resolveListen } from './addresses.ts';
import type { Listening } from './addresses.ts';
import type { SmbConfig } from './config.ts';
import { placeIn, placeProblem, preparePlace } from './paths.ts';
import { findSamba } from './samba.ts';
import type { Samba } from './samba.ts';
import { pathProblem, renderConfig } from './server-config.ts';
import type { ServedShare } from './server-config.ts';
import {
  askEverywhere,
  awaitReady,
  closeShare,
  configProblem,
  endHelper,
  endSessions,
  GRACE_MS,
  PROCESS_KEY,
  reload,
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
   * Another protocol may have been switched on or off: files are lent to clients only where no other one
   * writes them.
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
  readonly server: KeptServer;
  readonly shown: ShownShares<ServedShare>;
  readonly #tools: SmbTools;
  readonly #place;
  #userProblems: readonly string[] = [];
  #users: readonly string[] = [];
  #samba: Samba | undefined;
  #listening: Listening | undefined;
  #configProblem: string | undefined;
  #written: string | undefined;

  constructor(tools: SmbTools) {
    this.#tools = tools;
    this.isEnabled = tools.settings.enabled;
    this.#place = placeIn(tools.paths.stateDir);
    this.shown = showShares({
      ...tools,
      protocol: 'smb',
      describe: (spec, mount) => this.#describe(spec, mount),
      apply: (changed) => this.#apply(changed),
    });
    this.server = keepServer({
      ...tools,
      key: PROCESS_KEY,
      graceMs: GRACE_MS,
      plan: () => this.shown.inTurn(() => this.#plan()),
      ready: async (process, signal) => {
        await awaitReady(this.#endpoint(), process, { clock: tools.clock, signal });
        // What changed while it started may have been read or not.
        await reload(tools.processes, this.#place);
      },
      ask: (signal) => askEverywhere(this.#endpoint(), signal),
      cleanUp: () => endHelper(this.#place, tools.clock),
    });
  }

  /** Every client that may come in would be served. */
  isServing(): boolean {
    return this.#configProblem === undefined && (this.#tools.settings.guest || this.#users.length > 0);
  }

  beforeLook(): void {
    if (this.#isMoreThere()) this.server.renew();
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
    const problem = placeProblem(this.#place);
    if (problem !== undefined) throw new Error(problem);
    this.#listening = resolveListen(settings.listen);
    if (!this.server.process && !(await processes.adopt(PROCESS_KEY)))
      await this.#askForPort(this.#listening);
    await preparePlace(this.#place);
    await this.#settleUsers(this.#samba);
    return serverSpec(this.#samba, this.#place, [settings.port, this.#listening.interfaces]);
  }

  async #settleUsers(samba: Samba): Promise<void> {
    const { processes, settings, secrets, log, owner } = this.#tools;
    const { passwords, problems } = resolveUsers(settings.users, secrets);
    this.#users = [...passwords.keys()];
    const wasOpen = !settings.guest && this.#written?.includes('map to guest = Bad User') === true;
    await this.#apply(undefined);
    if (this.#configProblem !== undefined) throw new Error(this.#configProblem);
    const env = serverEnvironment(samba, this.#place);
    const cut = (users: readonly string[]): Promise<void> => this.#cut(users, env);
    if (wasOpen) await cut([GUEST]);
    const failures = await settleUsers(
      passwords,
      { place: this.#place, processes, secrets, log, owner, cut },
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

  /** Who may enter no more is out at once, not when the session ends. */
  async #cut(users: readonly string[], env: Readonly<Record<string, string>>): Promise<void> {
    const { processes } = this.#tools;
    if (!this.server.process && !(await processes.adopt(PROCESS_KEY))) return;
    await reload(processes, this.#place);
    await endSessions(new Set(users.map((name) => name.toLowerCase())), {
      processes,
      place: this.#place,
      env,
    });
  }

  async #askForPort(listening: Listening): Promise<void> {
    const problem = await listenProblem(this.#tools.settings.port, listening);
    if (problem !== undefined) throw new Error(problem);
  }

  /** Writes the configuration, has the server read it and cuts the connections to what went or changed. */
  async #apply(cut: string | undefined): Promise<void> {
    const { processes } = this.#tools;
    if (!this.#samba || !this.#listening) return;
    const text = this.#render(this.#samba, this.#listening);
    if (text !== this.#written) {
      const next = `${this.#place.conf}.next`;
      await writeWhole(next, text);
      this.#configProblem = await configProblem(processes, next);
      if (this.#configProblem !== undefined)
        this.#tools.log.error(
          { reason: this.#configProblem },
          'configuration of smbd is not valid, the former one stays',
        );
      else await this.#take(next, text);
    }
    if (this.server.process && cut !== undefined) await closeShare(processes, this.#place, cut);
  }

  async #take(file: string, text: string): Promise<void> {
    await rename(file, this.#place.conf);
    this.#written = text;
    await writeWhole(this.#place.shares, JSON.stringify([...this.shown.entries.values()]));
    if (this.server.process) await reload(this.#tools.processes, this.#place);
  }

  #render(samba: Samba, listening: Listening): string {
    const { settings, owner } = this.#tools;
    return renderConfig(
      {
        place: this.#place,
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

  /** What a server that a former daemon left shows. */
  async former(): Promise<ReadonlyMap<string, ServedShare>> {
    if (!(await this.#tools.processes.adopt(PROCESS_KEY))) return new Map();
    this.#written = await readFile(this.#place.conf, 'utf8').catch(() => undefined);
    try {
      const shares = JSON.parse(await readFile(this.#place.shares, 'utf8')) as ServedShare[];
      return new Map(shares.map((share) => [share.name, share]));
    } catch {
      return new Map();
    }
  }

  #describe({ share }: ShareSpec, { plan: { mountPoint: path } }: Mount): ServedShare {
    const problem = pathProblem(path);
    if (problem !== undefined) throw new Error(problem);
    // Whether other protocols may write the same files.
    const config = this.#tools.config() as unknown as Record<string, { enabled?: boolean } | undefined>;
    const isShared = share.protocols.some(
      (protocol) => protocol !== 'smb' && config[protocol]?.enabled === true,
    );
    return { name: share.name, path, readOnly: share.read_only, isShared };
  }
}

function missingNow(listen: readonly string[]): readonly string[] {
  try {
    return resolveListen(listen).missing;
  } catch {
    return listen;
  }
}
