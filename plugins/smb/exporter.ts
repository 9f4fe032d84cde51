import { readFile, rename } from 'node:fs/promises';
import { isDeepStrictEqual } from 'node:util';
import { keepServer } from 'mountkeeper';
import type { Clock, Config, Exporter, KeptServer, Logger, Mount, MountTable, Notice, Paths, Processes, ProcessSpec, Secrets, ShareSpec, SharesService } from 'mountkeeper';
import { ownerGroupName, ownerName } from './accounts.ts';
import type { Owner } from './accounts.ts';
import { portProblem, resolveListen } from './addresses.ts';
import type { Listening } from './addresses.ts';
import type { SmbConfig } from './config.ts';
import { placeIn, placeProblem, preparePlace, writeWhole } from './place.ts';
import { findSamba } from './samba.ts';
import type { Samba } from './samba.ts';
import { pathProblem, renderConfig } from './server-config.ts';
import type { ServedShare } from './server-config.ts';
import { askEverywhere, awaitReady, closeShare, configProblem, endHelper, GRACE_MS, PROCESS_KEY, reload, serverEnvironment, serverSpec } from './smbd.ts';
import { resolveUsers, settleUsers } from './users.ts';

const ANSWER_MS = 1_500;
/** A server that is alive and answers nobody for so many looks is ended. */
const PATIENCE = 5;
/** Shares of a former daemon that nobody has claimed by then go. */
const CLAIM_MS = 30_000;

export interface SmbTools {
  readonly clock: Clock;
  readonly log: Logger;
  readonly processes: Processes;
  readonly secrets: Secrets;
  readonly mountTable: MountTable;
  readonly paths: Paths;
  readonly shares: SharesService;
  readonly owner: Owner;
  readonly settings: SmbConfig;
  readonly config: () => Config;
}

export class SmbExporter implements Exporter {
  readonly #tools: SmbTools;
  readonly #place;
  readonly #server: KeptServer;
  readonly #served = new Map<string, ServedShare>();
  /** Taken over from a former daemon, and not claimed yet. */
  readonly #unclaimed = new Set<string>();
  readonly #refused = new Map<string, string>();
  #userProblems: readonly string[] = [];
  #users: readonly string[] = [];
  #samba: Samba | undefined;
  #listening: Listening | undefined;
  #configProblem: string | undefined;
  #written: string | undefined;
  #openedAtMs = 0;
  #isAnswering = false;
  #silences = 0;
  #turn: Promise<void> = Promise.resolve();

  constructor(tools: SmbTools) {
    this.#tools = tools;
    this.#place = placeIn(tools.paths.stateDir);
    this.#server = keepServer({
      clock: tools.clock, log: tools.log, processes: tools.processes, key: PROCESS_KEY, graceMs: GRACE_MS,
      plan: () => this.#inTurn(() => this.#plan()),
      ready: async (process, signal) => {
        await awaitReady(this.#door(), process, { clock: tools.clock, signal });
        // What changed while it started may have been read or not.
        await reload(tools.processes, this.#place);
        this.#isAnswering = true;
      },
      cleanUp: () => endHelper(this.#place, tools.clock),
    });
  }

  /** True while every client that may come in would be served. */
  get isServing(): boolean {
    const { settings } = this.#tools;
    return settings.enabled && this.#isAnswering && this.#server.process !== undefined && this.#configProblem === undefined && (settings.guest || this.#users.length > 0);
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
    if (problem !== undefined && this.#refused.get(name) !== problem) this.#tools.log.error({ share: name, reason: problem }, 'share cannot be shown over SMB');
    if (problem === undefined) this.#refused.delete(name);
    else this.#refused.set(name, problem);
    if (problem !== undefined || !spec.share.protocols.includes('smb')) return this.remove(name);
    const next: ServedShare = { name, path: mount.plan.mountPoint, readOnly: spec.share.read_only, isShared: this.#isShared(spec) };
    await this.#inTurn(async () => {
      const former = this.#served.get(name);
      if (isDeepStrictEqual(former, next)) return;
      this.#served.set(name, next);
      await this.#apply(former ? [name] : []);
    });
  }

  async remove(share: string): Promise<void> {
    this.#unclaimed.delete(share);
    await this.#inTurn(async () => {
      if (this.#served.delete(share)) await this.#apply([share]);
    });
  }

  /** Asks the server as a client would, and sees to what is overdue. */
  async look(signal: AbortSignal): Promise<void> {
    if (!this.#tools.settings.enabled) return;
    for (const share of this.#overdue()) await this.remove(share);
    if (this.#isMoreThere()) this.#server.renew();
    if (this.#server.process && this.#server.problem === undefined) await this.#ask(signal);
    else this.#isAnswering = false;
  }

  async #ask(signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#tools;
    try {
      await askEverywhere(this.#door(), clock.deadline(ANSWER_MS, signal));
      this.#isAnswering = true;
      this.#silences = 0;
    } catch (error) {
      if (signal.aborted) return;
      this.#isAnswering = false;
      this.#silences += 1;
      log.warn({ reason: (error as Error).message, silences: this.#silences }, 'smbd does not answer');
      if (this.#silences >= PATIENCE) this.#server.process?.signal('SIGKILL');
    }
  }

  notices(): readonly Notice[] {
    const { settings } = this.#tools;
    if (!settings.enabled) return [];
    const nobody = !settings.guest && settings.users.length === 0 ? ['nobody can log in over SMB: add [[smb.users]], or set smb.guest = true'] : [];
    const missing = (this.#listening?.missing ?? []).map((entry) => `SMB does not listen on ${entry}: this machine has no such address or network interface now`);
    const problems = [this.#server.problem, this.#configProblem].filter((one) => one !== undefined).map((one) => `SMB: ${one}`);
    return [
      ...problems.map((message) => ({ level: this.#server.isStarting ? 'info' as const : 'error' as const, message })),
      ...[...nobody, ...missing, ...this.#userProblems, ...[...this.#refused].map(([share, reason]) => `the share '${share}' is not shown over SMB: ${reason}`)].map((message) => ({ level: 'warning' as const, message })),
    ];
  }

  // ------------------------------------------------------------ the server

  async #plan(): Promise<ProcessSpec> {
    const { processes, settings, secrets, log, owner } = this.#tools;
    this.#samba = await findSamba(processes);
    const problem = placeProblem(this.#place);
    if (problem !== undefined) throw new Error(problem);
    this.#listening = resolveListen(settings.listen);
    if (!this.#server.process && !(await processes.adopt(PROCESS_KEY))) await this.#askForPort(this.#listening);
    const known = resolveUsers(settings.users, secrets);
    for (const reason of known.problems.filter((one) => !this.#userProblems.includes(one))) log.error({ reason }, 'SMB user left out');
    this.#userProblems = known.problems;
    this.#users = [...known.passwords.keys()];
    await preparePlace(this.#place);
    await this.#apply([]);
    if (this.#configProblem !== undefined) throw new Error(this.#configProblem);
    await settleUsers(known.passwords, { place: this.#place, processes, secrets, log, owner }, serverEnvironment(this.#samba, this.#place));
    return serverSpec(this.#samba, this.#place, [settings.port, this.#listening.interfaces]);
  }

  async #askForPort(listening: Listening): Promise<void> {
    const problem = await portProblem(this.#tools.settings.port, listening);
    if (problem !== undefined) throw new Error(problem);
  }

  /** Writes the configuration, has the server read it and cuts the connections to what went or changed. */
  async #apply(cut: readonly string[]): Promise<void> {
    const { processes } = this.#tools;
    if (!this.#samba || !this.#listening) return;
    const text = this.#render(this.#samba, this.#listening);
    if (text !== this.#written) {
      const next = `${this.#place.conf}.next`;
      await writeWhole(next, text);
      this.#configProblem = await configProblem(processes, next);
      if (this.#configProblem !== undefined) this.#tools.log.error({ reason: this.#configProblem }, 'configuration of smbd is not valid, the former one stays');
      else await this.#take(next, text);
    }
    if (this.#server.process) await Promise.all(cut.map((share) => closeShare(processes, this.#place, share)));
  }

  async #take(file: string, text: string): Promise<void> {
    await rename(file, this.#place.conf);
    this.#written = text;
    await writeWhole(this.#place.shares, JSON.stringify([...this.#served.values()]));
    if (this.#server.process) await reload(this.#tools.processes, this.#place);
  }

  #render(samba: Samba, listening: Listening): string {
    const { settings, owner } = this.#tools;
    return renderConfig({
      place: this.#place, port: settings.port, listen: listening.interfaces, guest: settings.guest,
      users: this.#users, hasFruit: samba.hasFruit, owner: ownerName(owner), ownerGroup: ownerGroupName(owner),
    }, [...this.#served.values()]);
  }

  #door(): { addresses: readonly string[]; port: number } {
    return { addresses: this.#listening?.addresses ?? [], port: this.#tools.settings.port };
  }

  #isMoreThere(): boolean {
    const before = this.#listening?.missing ?? [];
    if (before.length === 0) return false;
    const now = missingNow(this.#tools.settings.listen);
    return before.some((entry) => !now.includes(entry));
  }

  // ------------------------------------------------------------ shares

  /** A server that a former daemon left goes on with the shares it has, as far as they are mounted still. */
  async #takeOver(): Promise<void> {
    const { processes, mountTable } = this.#tools;
    if (!(await processes.adopt(PROCESS_KEY))) return;
    for (const share of await this.#formerShares()) {
      if (!(await mountTable.find(share.path))) continue;
      this.#served.set(share.name, share);
      this.#unclaimed.add(share.name);
    }
    this.#written = await readFile(this.#place.conf, 'utf8').catch(() => undefined);
  }

  async #formerShares(): Promise<readonly ServedShare[]> {
    try {
      return JSON.parse(await readFile(this.#place.shares, 'utf8')) as ServedShare[];
    } catch {
      return [];
    }
  }

  #overdue(): readonly string[] {
    const { clock, shares } = this.#tools;
    const isLate = clock.monotonic() - this.#openedAtMs > CLAIM_MS;
    const living = new Map(shares.list().map((share) => [share.spec.share.name, share]));
    return [...this.#unclaimed].filter((name) => living.get(name)?.health === 'failed' || (isLate && !living.get(name)?.mount));
  }

  /** Whether other protocols may write the same files. */
  #isShared({ share }: ShareSpec): boolean {
    const config = this.#tools.config() as unknown as Record<string, { enabled?: boolean } | undefined>;
    return share.protocols.some((protocol) => protocol !== 'smb' && config[protocol]?.enabled === true);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#turn.then(work);
    this.#turn = result.then(() => undefined, () => undefined);
    return result;
  }
}

function missingNow(listen: readonly string[]): readonly string[] {
  try {
    return resolveListen(listen).missing;
  } catch {
    return listen;
  }
}
