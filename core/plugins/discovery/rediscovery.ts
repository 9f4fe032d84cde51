/**
 * When the plugin folders are read again: one reading after the other. However often it is asked for during one,
 * one more follows, which sees all that was changed until it began. Where a noticed change could not be put
 * into effect, it is tried again: nobody else would.
 */
import type { LoadedConfig } from '../../contract/config.ts';
import type { Clock, Logger } from '../../contract/platform.ts';
import { createLatestQueue } from '../../sdk/latest.ts';
import { isolationsIn } from '../../config/peek.ts';
import type { Isolation } from '../../config/checks/third-party.ts';
import type { DiscoveryRequest } from './discover.ts';
import { searchedFolders } from './installed.ts';

const AGAIN_MS = 10_000;
/** Waits for what may be loaded later; the last one again and again. */
const PASSING_MS = [AGAIN_MS, 60_000, 600_000] as const;
const LONGEST_MS = 3_600_000;

export interface RediscoveryOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** One whole reading with its effects; never run twice at a time. */
  readonly run: () => Promise<void>;
}

export class Rediscovery {
  readonly #options: RediscoveryOptions;
  readonly #queue = createLatestQueue<undefined>(() => this.#options.run());
  #isClosed = false;
  #cancel: () => void = () => undefined;
  /** Readings in a row without one that loaded all. */
  #tries = 0;

  constructor(options: RediscoveryOptions) {
    this.#options = options;
  }

  /** Settles with a reading that began after the call, or rejects as that does. */
  ask(): Promise<void> {
    return this.#queue.push(undefined);
  }

  /**
   * After each reading: whether something could not be loaded that may be loaded later. Nobody else would try it again;
   * each time it waits longer, since a module that loops takes its time at each try.
   */
  passing(isPassing: boolean): void {
    if (!isPassing) {
      this.#tries = 0;
      return;
    }
    const waitMs = PASSING_MS[this.#tries] ?? LONGEST_MS;
    this.#tries += 1;
    this.#cancel();
    if (!this.#isClosed) this.#cancel = this.#options.clock.after(waitMs, () => this.#look());
  }

  /** As `ask`, for those who do not wait: a failure is logged, and it is tried again after ten seconds. */
  noticed(): void {
    this.#tries = 0;
    this.#look();
  }

  #look(): void {
    const { clock, log } = this.#options;
    this.#cancel();
    if (this.#isClosed) return;
    this.ask().catch((err: unknown) => {
      log.error({ err }, 'plugin folders not read');
      this.#cancel();
      if (!this.#isClosed) this.#cancel = clock.after(AGAIN_MS, () => this.#look());
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }
}

/**
 * Calls `discover` with what `current()` says at that very moment. A configuration that comes while the names of
 * folders are read must not be followed by a look for the plugins of the former one: it would be the last.
 */
export async function discoverBy(
  current: () => LoadedConfig,
  discover: (request: DiscoveryRequest) => Promise<void>,
): Promise<LoadedConfig> {
  const loaded = current();
  const { plugins, supervisor } = loaded.config;
  const thirdPartyDirs = await searchedFolders(plugins.dirs, supervisor.state_dir);
  if (current() !== loaded) return discoverBy(current, discover);
  await discover({
    thirdPartyDirs,
    stateDir: supervisor.state_dir,
    enabled: enabledPlugins(loaded),
    isolation: isolationsOf(loaded),
  });
  return loaded;
}

/** By the text alone: no schema of a plugin decides where its code runs. */
export function isolationsOf({ document }: LoadedConfig): ReadonlyMap<string, Isolation> {
  return isolationsIn(document['plugins']);
}

/** Names of plugins that the document switches on; in-tree plugins are on by default. */
export function enabledPlugins({ config: { plugins } }: LoadedConfig): ReadonlySet<string> {
  const isOn = ([, section]: readonly [string, unknown]): boolean =>
    (section as { enabled?: unknown } | undefined)?.enabled === true;
  return new Set(
    Object.entries(plugins)
      .filter(isOn)
      .map(([name]) => name),
  );
}
