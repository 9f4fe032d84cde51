/**
 * What the assembled schema is made of. Joi takes long to make and to describe schemas, and most of them are the same
 * after a change of one plugin: each part is made once for the same parts.
 */
import Joi from 'joi';
import type { ArraySchema, ObjectSchema } from 'joi';
import type { ConfigContribution } from '../../contract/config.ts';
import {
  connectionsKey,
  coreSections,
  LOG_LEVELS,
  pluginsKeys,
  shareKeys,
  sharesKey,
} from './core-schema.ts';
import { described } from './described.ts';
import { kept } from './kept.ts';
import { buildNode, mergeTables } from './key-tree.ts';
import type { KeyNode } from './key-tree.ts';

export interface ContributionEntry {
  readonly owner: string;
  readonly contribution: ConfigContribution;
  readonly thirdParty: boolean;
  readonly enabledByDefault: boolean;
  /** It decides about every request. */
  readonly guard?: boolean;
  readonly version: string;
}

export interface Part {
  readonly schema: ObjectSchema;
  readonly node: KeyNode;
}

/** What each share may say. */
export const SHARE = 'shares[]';

function part(schema: ObjectSchema, path: string, owner: string): Part {
  return { schema, node: buildNode(described(schema), { path, owner, tier: 'global' }) };
}

const partsOf = kept<ObjectSchema, Map<string, Part>>(() => new Map());

export function partOf(schema: ObjectSchema, path: string, owner: string): Part {
  const parts = partsOf(schema);
  const key = `${owner} ${path}`;
  const made = parts.get(key) ?? part(schema, path, owner);
  parts.set(key, made);
  return made;
}

interface Core {
  readonly sections: readonly (readonly [name: string, part: Part])[];
  readonly share: Part;
  readonly connections: ArraySchema;
  readonly plugins: Part;
}

let ours: Core | undefined;

/** What the core itself declares. */
export function core(): Core {
  return (ours ??= {
    sections: coreSections().map(([name, schema]) => [name, part(schema, name, 'core')] as const),
    share: part(shareKeys(), SHARE, 'core'),
    connections: connectionsKey(),
    plugins: part(pluginsKeys(), 'plugins', 'core'),
  });
}

/** A part with an addition. */
export const joinedPart = kept((existing: Part) =>
  kept((addition: Part): Part => ({
    schema: existing.schema.concat(addition.schema),
    node: mergeTables(existing.node, addition.node),
  })),
);

export const closed = kept((schema: ObjectSchema) => schema.unknown(false));
export const sharesOf = kept(sharesKey);
export const withDefault = kept((schema: ObjectSchema) => schema.default());

export function assertDisjoint(existing: Part | undefined, addition: Part): void {
  for (const [key, node] of addition.node.children) {
    const other = existing?.node.children.get(key);
    if (other !== undefined) {
      const holder = other.owner === 'core' ? 'the core' : `plugin ${other.owner}`;
      throw new Error(`plugin ${node.owner} and ${holder} both declare the key ${node.path}`);
    }
  }
}

/** `[plugins.<name>]`: the switch, and the plugin's keys when it has no section of its own. */
export function ownTable(entry: ContributionEntry): Part {
  const { owner, contribution, enabledByDefault, thirdParty, guard } = entry;
  const tables = tablesOf(contribution);
  const key = `${owner} ${enabledByDefault} ${thirdParty} ${guard}`;
  const table = tables.get(key) ?? tableAnew(entry);
  tables.set(key, table);
  return table;
}

const tablesOf = kept<ConfigContribution, Map<string, Part>>(() => new Map());

function tableAnew(entry: ContributionEntry): Part {
  const { owner, contribution } = entry;
  const path = `plugins.${owner}`;
  const base = switches(entry);
  const standing = part(base, path, 'core');
  if (contribution.section !== undefined) return standing;
  const addition = part(contribution.schema, path, owner);
  assertDisjoint(standing, addition);
  return { schema: withKeys(base)(contribution.schema), node: mergeTables(standing.node, addition.node) };
}

const withKeys = kept((base: ObjectSchema) => kept((keys: ObjectSchema) => base.concat(keys)));

const madeSwitches = new Map<string, ObjectSchema>();

/** The core's own keys of a plugin's table: the same for hundreds of plugins that are off. */
function switches({ enabledByDefault, thirdParty, guard = false }: ContributionEntry): ObjectSchema {
  const key = `${enabledByDefault} ${thirdParty} ${guard}`;
  const made = madeSwitches.get(key) ?? switchesAnew(enabledByDefault, thirdParty, guard);
  madeSwitches.set(key, made);
  return made;
}

function switchesAnew(isOn: boolean, thirdParty: boolean, entry: boolean): ObjectSchema {
  return Joi.object({
    // Switching a third-party plugin on runs its code.
    enabled: Joi.boolean()
      .default(isOn)
      .meta({ tier: 'live', fileOnly: thirdParty && 'but-default', entry })
      .description('Whether the plugin is on.'),
    log_level: Joi.string()
      .valid('', ...LOG_LEVELS)
      .meta({ tier: 'live' })
      .description(
        'Lowest level that the plugin logs; none or empty: `log.level`. A change needs no restart.',
      ),
    ...(thirdParty && {
      isolation: Joi.string()
        .valid('own', 'shared', 'none')
        .default('own')
        .meta({ tier: 'live', fileOnly: true })
        .description(
          'Where its code runs: `own`, in a process of its own that can hurt nobody by accident; `shared`, in one ' +
            'process with all others that say so and have the same permissions, which saves memory, and in which ' +
            'they can hurt each other; `none`, inside the daemon, for a plugin that you vouch for.',
        ),
    }),
  });
}
