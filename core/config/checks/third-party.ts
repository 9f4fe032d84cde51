/**
 * Third-party plugins that a document switches on. Their keys can only be checked after importing them,
 * which runs their code; so that is done for documents from the file, which somebody with a shell wrote,
 * and never for documents from HTTP.
 */
import type { Config, ConfigOrigin, ConfigProblem } from '../../contract/config.ts';
import { isTable, parseDocument } from '../../sdk/toml/document.ts';
import { joinPath } from '../../sdk/toml/path.ts';

/** What the checks need from the plugin host. */
export interface ThirdPartyPlugins {
  /** Whether a plugin of this name comes with the package. */
  comesWithUs(name: string): boolean;
  /**
   * Imports those of the named plugins that were found and are not loaded yet. A plugin that cannot be
   * loaded is listed as broken. `inProcess`: those of them whose code runs inside the daemon; each other one
   * gets a process of its own.
   */
  load(names: readonly string[], inProcess: readonly string[]): Promise<void>;
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
    const isVouchedFor = (name: string): boolean => isInProcess(plugins?.[name]);
    await strangers.load(names, names.filter(isVouchedFor));
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

/** Whether a plugin's own table lets its code run inside the daemon; a word that nobody knows does not. */
export function isInProcess(section: unknown): boolean {
  return isTable(section) && section['isolation'] === 'none';
}

function isOn(section: unknown): boolean {
  return isTable(section) && section['enabled'] === true;
}
