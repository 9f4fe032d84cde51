/** The part of the configuration that belongs to one plugin, and what is needed to change it. */
import { isDeepStrictEqual } from 'node:util';
import type { Config } from '../../contract/config.ts';
import type { Plugin } from '../../contract/plugin.ts';
import Joi from 'joi';
import { described } from '../../config/schema/described.ts';
import { unfitFor } from '../../config/checks/unfit-table.ts';
import { LOG_LEVELS } from '../../config/schema/core-schema.ts';
import { SENTENCES } from '../../config/schema/sentences.ts';

interface Description {
  readonly type?: string;
  readonly keys?: Readonly<Record<string, Description>>;
  readonly items?: readonly Description[];
  readonly metas?: readonly { readonly tier?: string }[];
}

const none = Joi.object({});

function describe(plugin: Plugin): Description {
  return described(plugin.config?.schema ?? none) as Description;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/**
 * The plugin's own keys of its section, which it may share with others. Frozen. The keys of a plugin that
 * was added after the document was checked are validated and completed here: throws a sentence when they
 * are wrong.
 */
export function ownConfig(plugin: Plugin, config: Config): object {
  const document = config as unknown as Record<string, unknown>;
  const section =
    plugin.config?.section === undefined ? config.plugins?.[plugin.name] : document[plugin.config.section];
  const keys = Object.keys(describe(plugin).keys ?? {});
  const own = isTable(section)
    ? Object.fromEntries(keys.filter((key) => Object.hasOwn(section, key)).map((key) => [key, section[key]]))
    : {};
  if (isTable(section) && plugin.config?.section !== undefined) return Object.freeze(own);
  refuseUnfit(plugin, section);
  return Object.freeze(completed(plugin, own));
}

/** What it does not know is from a former version of it: it would run as if nothing had been set. */
function refuseUnfit({ name, config }: Plugin, section: unknown): void {
  const unfit = config?.migrate && unfitFor(name, config, section);
  if (unfit !== undefined) throw new Error(unfit);
}

function completed(plugin: Plugin, own: Record<string, unknown>): object {
  const { error, value } = (plugin.config?.schema ?? none).validate(own, {
    convert: false,
    errors: { wrap: { label: false } },
    messages: SENTENCES,
  });
  if (error)
    throw new Error(
      `its configuration [${plugin.config?.section ?? `plugins.${plugin.name}`}] is not valid: ${error.message}`,
    );
  return value as object;
}

/** True when `[plugins.<name>] enabled` or else the default says so. */
export function isEnabled(name: string, byDefault: boolean, config: Config): boolean {
  const own = config.plugins?.[name];
  return isTable(own) && typeof own['enabled'] === 'boolean' ? own['enabled'] : byDefault;
}

/** `[plugins.<name>] log_level`; undefined where the whole daemon's level holds. */
export function logLevelOf(name: string, config: Config): string | undefined {
  const own = config.plugins?.[name];
  const level = isTable(own) ? own['log_level'] : undefined;
  return typeof level === 'string' && LOG_LEVELS.includes(level) ? level : undefined;
}

export type ConfigStep = 'same' | 'live' | 'restart';

/** `live` when every changed key has the tier `live`; any other change needs a new instance. */
export function configStep(plugin: Plugin, before: object, after: object): ConfigStep {
  if (isDeepStrictEqual(before, after)) return 'same';
  return onlyLive(describe(plugin), { before, after }, undefined) ? 'live' : 'restart';
}

interface Pair {
  readonly before: unknown;
  readonly after: unknown;
}

function onlyLive(node: Description | undefined, pair: Pair, inherited: string | undefined): boolean {
  if (isDeepStrictEqual(pair.before, pair.after)) return true;
  const tier = node?.metas?.findLast((meta) => meta.tier !== undefined)?.tier ?? inherited;
  const parts = node && partsOf(node, pair);
  return parts ? parts.every(([part, inner]) => onlyLive(part, inner, tier)) : tier === 'live';
}

/**
 * The members of two tables, or the items of two lists of equal length; undefined for values that can only
 * change as a whole.
 */
function partsOf(
  node: Description,
  { before, after }: Pair,
): (readonly [Description | undefined, Pair])[] | undefined {
  const { keys, items } = node;
  if (keys && isTable(before) && isTable(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].map((name) => [keys[name], { before: before[name], after: after[name] }]);
  }
  if (items && Array.isArray(before) && Array.isArray(after) && before.length === after.length) {
    return before.map((value: unknown, index) => [
      items[0],
      { before: value, after: after[index] as unknown },
    ]);
  }
  return undefined;
}
