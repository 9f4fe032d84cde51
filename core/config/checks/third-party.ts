/**
 * Third-party plugins that a document switches on. Their keys can only be checked after importing them,
 * which runs their code; so that is done for documents from the file, which somebody with a shell wrote,
 * and never for documents from HTTP.
 */
import type { Config, ConfigOrigin, ConfigProblem } from '../../contract/config.ts';
import type { PluginInfo } from '../../contract/services.ts';
import { isTable, parseDocument } from '../../sdk/toml/document.ts';
import { joinPath } from '../../sdk/toml/path.ts';

/** In a process of its own, in one that it shares, or inside the daemon. */
export type Isolation = PluginInfo['isolation'];

/** What the checks need from the plugin host. */
export interface ThirdPartyPlugins {
  /** Whether a plugin of this name comes with the package. */
  comesWithUs(name: string): boolean;
  /**
   * Imports those of the named plugins that are not loaded yet; looks for those that were not found. A plugin that
   * cannot be loaded is listed as broken. `isolation`: where the code of each runs.
   */
  load(names: readonly string[], isolation: ReadonlyMap<string, Isolation>): Promise<void>;
}

export interface Admission {
  readonly origin: ConfigOrigin;
  /** The running configuration, if there is one. */
  readonly current: Config | undefined;
  readonly strangers: ThirdPartyPlugins;
}

/**
 * Problems; none once every plugin that the document switches on is loaded. A text that cannot be parsed
 * has no problems here.
 */
export async function admitThirdParty(
  text: string,
  { origin, current, strangers }: Admission,
): Promise<readonly ConfigProblem[]> {
  const parsed = parseDocument(text);
  const names = 'document' in parsed ? thirdPartyIn(parsed.document, strangers) : [];
  if (origin === 'file') {
    const { plugins } = (parsed as { document: { plugins?: Record<string, unknown> } }).document ?? {};
    await strangers.load(names, new Map(names.map((name) => [name, isolationIn(plugins?.[name])])));
    return [];
  }
  return names
    .filter((name) => !isOn(current?.plugins?.[name]))
    .map((name) => {
      const path = joinPath(['plugins', name, 'enabled']);
      return {
        path,
        message:
          `${path}: the plugin "${name}" does not come with Mountkeeper; ` +
          'it cannot be switched on over HTTP, edit the configuration file',
      };
    });
}

function thirdPartyIn(
  { plugins }: Record<string, unknown>,
  { comesWithUs }: ThirdPartyPlugins,
): readonly string[] {
  return isTable(plugins)
    ? Object.keys(plugins).filter((name) => isOn(plugins[name]) && !comesWithUs(name))
    : [];
}

/** Where a plugin's own table lets its code run: in a process of its own, also by a word that nobody knows. */
export function isolationIn(section: unknown): Isolation {
  const said = isTable(section) ? section['isolation'] : undefined;
  return said === 'none' || said === 'shared' ? said : 'own';
}

function isOn(section: unknown): boolean {
  return isTable(section) && section['enabled'] === true;
}
