/**
 * Reads the few keys that are needed before the configuration can be read in full: plugin folders, which
 * plugins are switched on, whether anybody is asked for a password, the state folder and the log. Tolerant: whatever
 * is wrong with the document is reported later, by its validation.
 */
import { readFile } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { parse } from 'smol-toml';
import { isAnybodyAsked } from '../sdk/http/route-access.ts';
import { isolationIn } from './checks/third-party.ts';
import type { Isolation } from './checks/third-party.ts';

export interface Peeked {
  readonly stateDir: string;
  readonly pluginDirs: readonly string[];
  /** `[plugins.<name>] enabled`, for the plugins that set it. */
  readonly switched: ReadonlyMap<string, boolean>;
  /** Where the code of third parties' plugins runs; one that is not named here has a process of its own. */
  readonly isolation: ReadonlyMap<string, Isolation>;
  /** Whether `[web]` names anybody who is asked for a password. */
  readonly isAnybodyAsked: boolean;
  readonly logFile: string;
  readonly logLevel: string;
}

const LEVELS = ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'];

/** The plugins that are explicitly switched on. */
export function enabledIn({ switched }: Pick<Peeked, 'switched'>): ReadonlySet<string> {
  return new Set([...switched].filter(([, isOn]) => isOn).map(([name]) => name));
}

export async function peekConfig(file: string): Promise<Peeked> {
  const document = await readDocument(file);
  const base = dirname(resolve(file));
  const at = (section: string, key: string): unknown =>
    (document[section] as Record<string, unknown> | undefined)?.[key];
  const text = (value: unknown, fallback: string): string => (typeof value === 'string' ? value : fallback);
  const dirs = at('plugins', 'dirs');
  const logFile = text(at('log', 'file'), '');
  const level = text(at('log', 'level'), 'info');
  return {
    stateDir: resolve(base, text(at('supervisor', 'state_dir'), '/var/lib/mountkeeper')),
    pluginDirs: Array.isArray(dirs)
      ? dirs.filter((dir) => typeof dir === 'string').map((dir) => resolve(base, dir))
      : [],
    switched: switchedPlugins(document['plugins']),
    isolation: isolationsIn(document['plugins']),
    isAnybodyAsked: isAnybodyAsked(Object(document['web']) as object),
    logFile: logFile === '' ? '' : resolve(base, logFile),
    logLevel: LEVELS.includes(level) ? level : 'info',
  };
}

function switchedPlugins(plugins: unknown): ReadonlyMap<string, boolean> {
  const sections =
    typeof plugins === 'object' && plugins !== null
      ? Object.entries(plugins as Record<string, { enabled?: unknown } | undefined>)
      : [];
  return new Map(
    sections.flatMap(([name, section]) =>
      typeof section?.enabled === 'boolean' ? [[name, section.enabled] as const] : [],
    ),
  );
}

/** Where the plugins in `[plugins]` run that are not to have a process of their own. */
export function isolationsIn(plugins: unknown): ReadonlyMap<string, Isolation> {
  const sections = Object.entries((plugins ?? {}) as Record<string, unknown>);
  return new Map(
    sections
      .map(([name, section]) => [name, isolationIn(section)] as const)
      .filter(([, isolation]) => isolation !== 'own'),
  );
}

async function readDocument(file: string): Promise<Record<string, unknown>> {
  try {
    return parse(await readFile(file, 'utf8'));
  } catch {
    // Whoever loads the document in earnest says what is wrong with it.
    return {};
  }
}
