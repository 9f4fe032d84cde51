/**
 * Plugins in processes of their own, as discovery asks for them: by what they declare in a first, short run.
 */
import type { Isolation } from '../../config/checks/third-party.ts';
import type { Logger } from '../../contract/platform.ts';
import type { Plugin } from '../../contract/plugin.ts';
import { KEPT_CONTENTS } from '../discovery/stage.ts';
import type { RunnerRequest } from './process/first-run.ts';
import type { RunnerUser } from './process/own-user.ts';
import type { SharedRunners } from './process/shared-runners.ts';

interface CarriedState {
  readonly isolation: Carriage;
  /** Why its process is not there though the plugin is up; undefined while it is. */
  absence: string | undefined;
  /** Its process has the daemon's network though it may not use it. */
  hasOurNetwork: boolean;
  /** Its process has the daemon's own user. */
  readonly hasOurUser: boolean;
  /** Sentences about its runs that take long. */
  late: readonly string[];
}

/** In a process of its own, or in one that it shares. */
type Carriage = Exclude<Isolation, 'none'>;

const carried = new WeakMap<Plugin, CarriedState>();

/** Whether the plugin's code is in another process than the daemon's. */
export function isCarried(plugin: Plugin): boolean {
  return carried.has(plugin);
}

/** Undefined for one whose code is in the daemon. */
export function carriedIn(plugin: Plugin): Carriage | undefined {
  return carried.get(plugin)?.isolation;
}

/** Why its process is not there though the plugin is up; undefined while it is. */
export function absenceOf(plugin: Plugin): string | undefined {
  return carried.get(plugin)?.absence;
}

/** Sentences about runs that take long, of one whose code is in another process. */
export function lateIn(plugin: Plugin): readonly string[] {
  return carried.get(plugin)?.late ?? [];
}

/** What its process may do beyond its permissions on this machine; undefined where it is kept from all of it. */
export function notKeptFrom(plugin: Plugin): string | undefined {
  return carried.get(plugin)?.hasOurNetwork
    ? 'it can use the network though it has no permission for it: on this machine the daemon cannot make a network ' +
        'of its own for the process (by unshare; without root that needs user namespaces)'
    : undefined;
}

/** Whether it is in another process than the daemon's that has the same user. */
export function hasOurUser(plugin: Plugin): boolean {
  return carried.get(plugin)?.hasOurUser ?? false;
}

export interface RunnersOptions {
  readonly log: Logger;
  /** The plugin's process has ended by itself too often; it is to be switched off. */
  readonly onGivenUp?: (plugin: Plugin, reason: string) => void;
}

export class Runners {
  readonly #onGivenUp: (plugin: Plugin, reason: string) => void;
  readonly #log: Logger;
  #shared: SharedRunners | undefined;
  /** By state folder; tried out once. */
  readonly #users = new Map<string, Promise<RunnerUser>>();
  /** By isolation and entry, which is another for each content. */
  readonly #known = new Map<string, Plugin>();

  constructor({ log, onGivenUp = () => undefined }: RunnersOptions) {
    this.#onGivenUp = onGivenUp;
    this.#log = log;
  }

  /** The very same plugin for the same content. Rejects with the sentence why it cannot be carried. */
  async load(request: Omit<RunnerRequest, 'user'>, isolation: Carriage): Promise<Plugin> {
    const { entry, name, folder, declared, stateDir } = request;
    const { permissions } = declared;
    // Loaded here: most daemons need none of it, and what draws pages comes with it.
    const [
      { carriedPlugin },
      { declarationFrom, migratedBy },
      ownUser,
      { RunnerProcess },
      { SharedRunners },
    ] = await Promise.all([
      import('./carried/carried-plugin.ts'),
      import('./process/first-run.ts'),
      import('./process/own-user.ts'),
      import('./process/runner-process.ts'),
      import('./process/shared-runners.ts'),
    ]);
    const shared = (this.#shared ??= new SharedRunners(this.#log));
    if (isolation === 'shared') shared.expect({ name, entry, stateDir, permissions });
    else shared.forget(name);
    const user = await this.#userIn(stateDir, ownUser.runnerUser);
    if (user) await ownUser.showCopy(folder, user);
    const key = `${isolation} ${entry}`;
    const known = this.#known.get(key);
    if (known) return known;
    const state: CarriedState = {
      isolation,
      absence: undefined,
      hasOurNetwork: false,
      hasOurUser: user === undefined,
      late: [],
    };
    const onNetwork = (isOurs: boolean): void => {
      state.hasOurNetwork = isOurs;
    };
    const plugin: Plugin = carriedPlugin({
      declaration: await declarationFrom({ ...request, user, onNetwork }),
      isolation,
      begin: { entry, folder, name, declared },
      migrate: async (table) => (await migratedBy({ ...request, user }, table)) as Record<string, unknown>,
      confinement: { entry, folder, permissions, user },
      launch: (options) => (isolation === 'shared' ? shared.seat(options) : new RunnerProcess(options)),
      giveUpSeat: () => shared.forget(name),
      onGivenUp: (reason) => this.#onGivenUp(plugin, reason),
      onAbsence: (why) => {
        state.absence = why;
      },
      onLate: (late) => {
        state.late = late;
      },
      onNetwork,
    });
    this.#known.set(key, plugin);
    this.#forgetOlder(name);
    carried.set(plugin, state);
    return plugin;
  }

  /** Whom its process runs as. */
  async #userIn(
    stateDir: string,
    find: (stateDir: string) => Promise<RunnerUser>,
  ): Promise<RunnerUser['user']> {
    const known = this.#users.get(stateDir);
    const found = known ?? find(stateDir);
    this.#users.set(stateDir, found);
    const { user, why } = await found;
    if (!known && why !== undefined)
      this.#log.info({ why }, "processes of third parties' plugins are root's, without capabilities");
    return user;
  }

  /** As many contents of each plugin are remembered as there are copies of it. */
  #forgetOlder(name: string): void {
    const entries = [...this.#known].filter(([, plugin]) => plugin.name === name).map(([entry]) => entry);
    for (const entry of entries.slice(0, -KEPT_CONTENTS)) this.#known.delete(entry);
  }
}
