/**
 * Third parties' plugins that are switched off since they broke off: by an error that nobody caught, or by a
 * process of their own that ended too often. Each stays off until its files change or somebody
 * brings it back: by `mountkeeper plugin enable`, or by switching it off and on.
 */
import { LONGEST_SENTENCE as LONGEST, oneLine } from '../sdk/one-line.ts';
import { reasonOf } from '../sdk/reason-of.ts';
import type { Config } from '../contract/config.ts';
import type { Logger } from '../contract/platform.ts';
import type { Plugin } from '../contract/plugin.ts';
import { ownPlaceOf, pluginToBlame } from './blame.ts';
import type { FoundPlugin, UsablePlugin } from './discovery/found.ts';
import { actorNow } from './instance/acting-plugin.ts';
import type { Actor } from './instance/acting-plugin.ts';
import { isEnabled } from './instance/own-config.ts';
import { isCarried } from './runner/runners.ts';

/** Who caused an uncaught error. */
export interface Guilt {
  readonly plugin: string;
  /** False where it was left behind by a former version, or by one that is off: nothing is left to switch off. */
  readonly isSwitchedOff: boolean;
}

export interface BrokenOffOptions {
  readonly log: Logger;
  /** Told of each with the reason, and with undefined once that is over. */
  readonly onSwitchedOff?: ((plugin: string, reason: string | undefined) => void) | undefined;
}

export class BrokenOff {
  readonly #options: BrokenOffOptions;
  readonly #reasons = new Map<Plugin, string>();
  #told: ReadonlySet<string> = new Set();
  /** Copies that have been found, and why others broke off while they were loaded. */
  readonly #met = new Set<string>();
  readonly #early = new Map<string, string>();

  constructor(options: BrokenOffOptions) {
    this.#options = options;
  }

  /** Why each is off; a plugin whose files have changed is another one. */
  get reasons(): ReadonlyMap<Plugin, string> {
    return this.#reasons;
  }

  /** Takes notice of what is found now: one may have broken off before it was. */
  meet(found: readonly FoundPlugin[]): void {
    for (const { plugin, stagedFolder } of found.filter(isUsable)) {
      if (stagedFolder === undefined) continue;
      const reason = this.#early.get(stagedFolder);
      if (reason !== undefined) this.#reasons.set(plugin, reason);
      this.#early.delete(stagedFolder);
      this.#met.add(stagedFolder);
    }
  }

  /** Puts aside the plugin that caused an uncaught error. Undefined when it was none. */
  blame(error: unknown, found: readonly FoundPlugin[]): Guilt | undefined {
    const usable = found.filter(isUsable);
    const folders = usable.flatMap(({ name, stagedFolder }) =>
      stagedFolder === undefined ? [] : [[name, stagedFolder] as const],
    );
    const actor = actorNow();
    const plugin = pluginToBlame(error, new Map(folders), actor?.name);
    if (plugin === undefined) return undefined;
    const guilty = usable.find((one) => one.name === plugin && isOf(actor, one));
    const folder = guilty ? guilty.stagedFolder : actor?.folder;
    const at = folder === undefined ? '' : ownPlaceOf(error, [folder]);
    const reason = `it caused an uncaught error: ${reasonOf(error, LONGEST)}${at}; ${wayBack(plugin)}`;
    if (guilty) this.#reasons.set(guilty.plugin, reason);
    return { plugin, isSwitchedOff: guilty !== undefined || this.#keepEarly(folder, reason) };
  }

  /** Keeps it for a copy that has not been found yet: that is being loaded, beside its former version. Else false. */
  #keepEarly(folder: string | undefined, reason: string): boolean {
    if (folder === undefined || this.#met.has(folder)) return false;
    this.#early.set(folder, reason);
    return true;
  }

  /** Puts aside one whose process has ended too often. */
  giveUp(plugin: Plugin, reason: string): void {
    this.#reasons.set(plugin, `${oneLine(reason)}; ${wayBack(plugin.name)}`);
    this.#options.log.error({ plugin: plugin.name, reason }, 'a plugin is switched off');
  }

  /** Brings back the one of this name. False where it is not off: one whose files have changed is another one. */
  enable(name: string, found: readonly FoundPlugin[]): boolean {
    const plugin = found.find((one) => one.name === name)?.plugin;
    return plugin !== undefined && this.#reasons.delete(plugin);
  }

  /** One that the configuration switches off may come back when it is switched on. */
  forgive(config: Config): void {
    // One that is off is found without its code: it is known by its name alone.
    for (const plugin of this.#reasons.keys())
      if (!isEnabled(plugin.name, false, config)) this.#reasons.delete(plugin);
  }

  /** Tells people what has changed since the last call. */
  tell(found: readonly FoundPlugin[]): void {
    const now = new Map(
      found.flatMap(({ name, plugin }) => {
        const reason = plugin && this.#reasons.get(plugin);
        return reason === undefined ? [] : [[name, reason] as const];
      }),
    );
    for (const name of new Set([...now.keys(), ...this.#told]))
      this.#options.onSwitchedOff?.(name, now.get(name));
    this.#told = new Set(now.keys());
  }
}

function isUsable(one: FoundPlugin): one is UsablePlugin {
  return one.plugin !== undefined;
}

/** What a former version left behind says nothing of the one that is there now. */
function isOf(actor: Actor | undefined, { name, plugin, stagedFolder }: UsablePlugin): boolean {
  if (actor?.name !== name) return true;
  return actor.plugin ? actor.plugin === plugin : actor.folder === stagedFolder && !isCarried(plugin);
}

function wayBack(name: string): string {
  return `mend it, or bring it back with 'mountkeeper plugin enable ${name}'`;
}
