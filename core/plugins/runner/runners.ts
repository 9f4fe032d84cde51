/**
 * Plugins in processes of their own, as discovery asks for them: by what they declare in a first, short run.
 */
import type { Plugin } from '../../contract/plugin.ts';
import { KEPT_CONTENTS } from '../discovery/stage.ts';
import type { RunnerRequest } from './process/first-run.ts';

interface CarriedState {
  /** Why its process is not there though the plugin is up; undefined while it is. */
  absence: string | undefined;
  /** Its process has the daemon's network though it may not use it. */
  hasOurNetwork: boolean;
}

const carried = new WeakMap<Plugin, CarriedState>();

/** Whether the plugin's code is in a process of its own. */
export function isCarried(plugin: Plugin): boolean {
  return carried.has(plugin);
}

/** Why its process is not there though the plugin is up; undefined while it is. */
export function absenceOf(plugin: Plugin): string | undefined {
  return carried.get(plugin)?.absence;
}

/** What its process may do beyond its permissions on this machine; undefined where it is kept from all of it. */
export function notKeptFrom(plugin: Plugin): string | undefined {
  return carried.get(plugin)?.hasOurNetwork
    ? 'it can use the network though it has no permission for it: on this machine the daemon cannot make a network ' +
        'of its own for the process (by unshare; without root that needs user namespaces)'
    : undefined;
}

export class Runners {
  readonly #onGivenUp: (plugin: Plugin, reason: string) => void;
  /** By entry, which is another for each content. */
  readonly #known = new Map<string, Plugin>();

  /** `onGivenUp`: the plugin's process has ended by itself too often; it is to be switched off. */
  constructor(onGivenUp: (plugin: Plugin, reason: string) => void = () => undefined) {
    this.#onGivenUp = onGivenUp;
  }

  /** The very same plugin for the same content. Rejects with the sentence why it cannot be carried. */
  async load(request: RunnerRequest): Promise<Plugin> {
    const { entry, name, folder, declared } = request;
    const known = this.#known.get(entry);
    if (known) return known;
    // Loaded here: most daemons need none of it, and what draws pages comes with it.
    const [{ carriedPlugin }, { declarationFrom }] = await Promise.all([
      import('./carried/carried-plugin.ts'),
      import('./process/first-run.ts'),
    ]);
    const state: CarriedState = { absence: undefined, hasOurNetwork: false };
    const onNetwork = (isOurs: boolean): void => {
      state.hasOurNetwork = isOurs;
    };
    const plugin: Plugin = carriedPlugin({
      declaration: await declarationFrom({ ...request, onNetwork }),
      begin: { entry, name, declared },
      confinement: { entry, folder, permissions: declared.permissions },
      onGivenUp: (reason) => this.#onGivenUp(plugin, reason),
      onAbsence: (why) => {
        state.absence = why;
      },
      onNetwork,
    });
    this.#known.set(entry, plugin);
    this.#forgetOlder(name);
    carried.set(plugin, state);
    return plugin;
  }

  /** As many contents of each plugin are remembered as there are copies of it. */
  #forgetOlder(name: string): void {
    const entries = [...this.#known].filter(([, plugin]) => plugin.name === name).map(([entry]) => entry);
    for (const entry of entries.slice(0, -KEPT_CONTENTS)) this.#known.delete(entry);
  }
}
