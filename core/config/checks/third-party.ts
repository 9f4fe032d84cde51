/**
 * Plugins of third parties that a document switches on. Their keys can only be checked once they are
 * imported, which runs their code: so it happens for what somebody with a shell wrote into the file, and
 * never for what comes over HTTP.
 */
import type { Config, ConfigOrigin, ConfigProblem } from '../../contract/config.ts';
import { isTable, parseDocument } from '../../sdk/toml/document.ts';
import { joinPath } from '../../sdk/toml/path.ts';

/** What the checks ask of the plugin host. */
export interface StrangerPlugins {
  /** Whether a plugin of this name comes with the package. */
  comesWithUs(name: string): boolean;
  /**
   * Imports those of the named plugins that were found and are not loaded. What cannot be loaded is found
   * broken.
   */
  load(names: readonly string[]): Promise<void>;
}

export interface Admission {
  readonly origin: ConfigOrigin;
  /** The running configuration, if there is one. */
  readonly current: Config | undefined;
  readonly strangers: StrangerPlugins;
}

/**
 * Problems, or none once every plugin that the document switches on is known. A text that cannot be parsed
 * has none here.
 */
export async function admitStrangers(
  text: string,
  { origin, current, strangers }: Admission,
): Promise<readonly ConfigProblem[]> {
  const parsed = parseDocument(text);
  const names = 'document' in parsed ? strangersIn(parsed.document, strangers) : [];
  if (origin === 'file') {
    await strangers.load(names);
    return [];
  }
  return names
    .filter((name) => !isOn(current?.plugins?.[name]))
    .map((name) => {
      const path = joinPath(['plugins', name, 'enabled']);
      return {
        path,
        message: `${path}: the plugin "${name}" does not come with Mountkeeper; it cannot be switched on over HTTP, edit the configuration file`,
      };
    });
}

function strangersIn(
  { plugins }: Record<string, unknown>,
  { comesWithUs }: StrangerPlugins,
): readonly string[] {
  return isTable(plugins)
    ? Object.keys(plugins).filter((name) => isOn(plugins[name]) && !comesWithUs(name))
    : [];
}

function isOn(section: unknown): boolean {
  return isTable(section) && section['enabled'] === true;
}
