/**
 * Checks a plugin's manifest before anything of it is used. Every refusal is a sentence that says what to
 * repair.
 */
import type { ObjectSchema } from 'joi';
import type { Plugin } from '../../contract/plugin.ts';
import type { Permission } from '../../contract/services.ts';
import Joi from '#joi';
import { described } from '../../config/schema/described.ts';
import { permissionsIn } from '../permissions.ts';

export const API_VERSION = 1;
export const NAME = /^[a-z][a-z0-9]*(?:-[a-z0-9]+)*$/;
/** Names that mean something else in the configuration. */
const IN_CONFIGURATION = ['core', 'dirs'];
/** What types of our own notifications begin with: those of a stranger's begin with its name. */
const IN_NOTIFICATIONS = ['cache', 'file', 'nas', 'share', 'writeback'];
/** What lines of the daemon's own name as their plugin. */
const IN_LOG = ['supervisor'];
const RESERVED = new Set([...IN_CONFIGURATION, ...IN_NOTIFICATIONS, ...IN_LOG]);
/** Packages that a plugin must take from its host. */
const HOST_PACKAGES = /^(?:mountkeeper|joi|tapable|@hapi\/.+)$/;

export function isOfHost(packageName: string): boolean {
  return HOST_PACKAGES.test(packageName);
}

/** The export that is a plugin: the default one, or the only one that looks like a plugin. */
export function pickPlugin(namespace: Readonly<Record<string, unknown>>): unknown {
  if (namespace['default'] !== undefined) return namespace['default'];
  const candidates = new Set(Object.values(namespace).filter(looksLikePlugin));
  if (candidates.size === 1) return [...candidates][0];
  throw new Error(
    candidates.size === 0
      ? 'the entry exports no plugin; export the result of definePlugin({ … }) as default'
      : 'the entry exports several plugins; keep one per folder',
  );
}

function looksLikePlugin(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'register' in value && 'name' in value;
}

/** One for each, so that a plugin that has not changed stays the same. */
const completed = new WeakMap<object, object>();

/** The plugin with the version of its package.json, where it gives none itself. */
export function versioned(value: unknown, version: string | undefined): unknown {
  if (typeof value !== 'object' || value === null || version === undefined) return value;
  if ((value as Partial<Plugin>).version !== undefined) return value;
  const made = completed.get(value) ?? withVersion(value, version);
  completed.set(value, made);
  return made;
}

function withVersion(plugin: object, version: string): object {
  const { register } = plugin as { readonly register?: unknown };
  return Object.create(plugin, {
    version: { value: version, enumerable: true },
    // Private fields of a class are the original's alone.
    ...(typeof register === 'function' && { register: { value: register.bind(plugin) as unknown } }),
  }) as object;
}

/** Undefined when all is well, else the first problem. `folder` is the plugin's folder name. */
export function manifestProblem(value: unknown, folder: string): string | undefined {
  if (typeof value !== 'object' || value === null)
    return 'the entry does not export an object; export the result of definePlugin({ … }) as default';
  const plugin = value as Partial<Plugin>;
  if (plugin.apiVersion !== API_VERSION) return apiProblem(plugin.apiVersion);
  if (typeof plugin.name !== 'string' || !NAME.test(plugin.name))
    return `its name ${JSON.stringify(plugin.name)} is not kebab-case; use small letters, digits and single hyphens`;
  if (RESERVED.has(plugin.name)) return `the name "${plugin.name}" is reserved; choose another`;
  if (plugin.name !== folder)
    return `its name is "${plugin.name}" but its folder is called "${folder}"; give both the same name`;
  return textProblem(plugin) ?? listProblem(plugin) ?? configProblem(plugin);
}

function apiProblem(written: unknown): string {
  return (
    `it is written for apiVersion ${String(written)}, this Mountkeeper has apiVersion ` +
    `${String(API_VERSION)}; install a version of the plugin made for it`
  );
}

function textProblem(plugin: Partial<Plugin>): string | undefined {
  if (typeof plugin.version !== 'string' || !/^\d+\.\d+\.\d+/.test(plugin.version))
    return 'version must be a text like "1.0.0", here or in its package.json';
  if (typeof plugin.description !== 'string' || plugin.description === '')
    return 'description is missing; say in one sentence what the plugin does';
  if (typeof plugin.register !== 'function')
    return 'register(ctx) is missing; it declares what the plugin contributes';
  return undefined;
}

function listProblem(plugin: Partial<Plugin>): string | undefined {
  const { requires, guard, config = {} } = plugin;
  if (typeof config !== 'object' || config === null) return 'config must be an object with a schema';
  if (
    requires !== undefined &&
    !(Array.isArray(requires) && requires.every((name) => typeof name === 'string'))
  )
    return 'requires must be a list of service names';
  if (guard !== undefined && typeof guard !== 'boolean') return 'guard must be true or false';
  return undefined;
}

function configProblem({ config, name }: Partial<Plugin>): string | undefined {
  if (config === undefined) return undefined;
  const { section, schema, share } = config;
  if (section !== undefined && !/^[a-z][a-z0-9_]*$/.test(section))
    return `config.section ${JSON.stringify(section)} must be a name like "my_section"`;
  const problem =
    migrateProblem(config) ??
    schemaProblem('config.schema', schema) ??
    (share === undefined ? undefined : schemaProblem('config.share', share));
  if (problem !== undefined || section !== undefined || !hasKey(schema, 'enabled')) return problem;
  return `config.schema must not have the key "enabled": it belongs to [plugins.${String(name)}] itself`;
}

function migrateProblem({ migrate, section }: NonNullable<Plugin['config']>): string | undefined {
  const isUsable = migrate === undefined || (typeof migrate === 'function' && section === undefined);
  return isUsable
    ? undefined
    : 'config.migrate must be a function, of a plugin whose keys stand in its own table, without a section';
}

function schemaProblem(where: string, schema: unknown): string | undefined {
  const mend = "import { Joi } from 'mountkeeper' and build the schema with that";
  try {
    if (!Joi.isSchema(schema)) return `${where} is not a Joi schema; ${mend}`;
  } catch {
    // Joi throws for a schema of another version.
    return `${where} was made with another version of Joi; ${mend}`;
  }
  return schema.type === 'object' ? undefined : `${where} must be a Joi.object({ … })`;
}

function hasKey(schema: unknown, key: string): boolean {
  return keysOf(schema as ObjectSchema).includes(key);
}

/**
 * What a third-party plugin must declare in its package.json, because its code is not run while it is off.
 */
export interface Declared {
  /** Of the package: the plugin's, where that gives none itself. */
  readonly version?: string;
  readonly guard: boolean;
  /** `config.section`. */
  readonly section?: string;
  /** Keys of `config.share`. */
  readonly shareKeys: readonly string[];
  readonly permissions: readonly Permission[];
}

/** Further rules for third-party plugins. */
export function thirdPartyProblem(
  plugin: Plugin,
  declared: Omit<Declared, 'permissions'>,
): string | undefined {
  if (plugin.guard === true && !declared.guard) {
    return (
      'a guard must say so in its package.json too ("mountkeeper": { "guard": ' +
      'true }), so that requests are refused when it cannot be loaded'
    );
  }
  const { section, share } = plugin.config ?? {};
  const why = 'so that the configuration stays valid while the plugin is off';
  if (section !== declared.section)
    return (
      'config.section must stand in its package.json too ("mountkeeper": { "section": ' +
      `${JSON.stringify(section ?? '')} }), ${why}`
    );
  const keys = share === undefined ? [] : keysOf(share);
  const missing = keys.filter((key) => !declared.shareKeys.includes(key));
  if (missing.length === 0) return undefined;
  return (
    'the keys of config.share must stand in its package.json too ("mountkeeper": { "shareKeys": ' +
    `${JSON.stringify(keys)} }), ${why}`
  );
}

function keysOf(schema: ObjectSchema): readonly string[] {
  return Object.keys((described(schema) as { keys?: object }).keys ?? {});
}

export interface PackageManifest extends Declared {
  readonly description: string;
  /** Protocols that it shows shares by, as in a share's `protocols`. */
  readonly protocols: readonly string[];
  /** Relative path of the ESM entry. */
  readonly entry: string;
}

/**
 * Reads what matters from a third-party plugin's package.json. Throws a sentence that says what to repair.
 */
export function readPackage(text: string): PackageManifest {
  const json = parseObject(text);
  const clashes = Object.keys(asObject(json['dependencies'])).filter(isOfHost);
  if (clashes.length > 0) {
    throw new Error(
      `package.json lists ${clashes.join(', ')} under dependencies; take them from Mountkeeper: ` +
        'move "mountkeeper" to peerDependencies, drop the others and import Joi and Boom from ' +
        `'mountkeeper'`,
    );
  }
  const own = asObject(json['mountkeeper']);
  const api = own['apiVersion'] ?? API_VERSION;
  if (api !== API_VERSION) throw new Error(apiProblem(api));
  return {
    entry: checkedEntry(json),
    ...(typeof json['version'] === 'string' && { version: json['version'] }),
    description: typeof json['description'] === 'string' ? json['description'] : '',
    guard: own['guard'] === true,
    ...(typeof own['section'] === 'string' && { section: own['section'] }),
    shareKeys: textsIn(own['shareKeys']),
    permissions: permissionsIn(own['permissions']),
    protocols: textsIn(own['protocols']),
  };
}

function textsIn(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function checkedEntry(json: Readonly<Record<string, unknown>>): string {
  const entry = entryOf(json);
  if (/\.[jt]s$/.test(entry) && json['type'] !== 'module')
    throw new Error('package.json lacks "type": "module"; add it, or name the entry .mjs');
  if (!/\.m?[jt]s$/.test(entry))
    throw new Error(
      `the entry ${entry} is not an ES module; name a .js, .mjs or .ts file as "exports" in package.json`,
    );
  if (entry.startsWith('/') || entry.split('/').includes('..'))
    throw new Error(`the entry ${entry} lies outside the plugin's folder`);
  return entry.replace(/^\.\//, '');
}

function parseObject(text: string): Record<string, unknown> {
  try {
    return asObject(JSON.parse(text));
  } catch (error) {
    throw new Error('package.json is not valid JSON', { cause: error });
  }
}

function asObject(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as Record<string, unknown>)
    : {};
}

function entryOf(json: Readonly<Record<string, unknown>>): string {
  const dot = json['exports'];
  const inner = asObject(dot)['.'] ?? dot;
  for (const candidate of [inner, asObject(inner)['import'], asObject(inner)['default'], json['main']]) {
    if (typeof candidate === 'string') return candidate;
  }
  return 'index.js';
}
