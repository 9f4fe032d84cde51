/** A plugin as discovery found it, usable or not. */
import type { ConfigContribution } from '../../contract/config.ts';
import type { Plugin } from '../../contract/plugin.ts';
import type { Permission } from '../../contract/services.ts';
import type { PluginInfo } from '../../contract/services.ts';
import Joi from 'joi';
import type { ProtocolName } from '../../config/checks/protocols.ts';
import { PROTOCOL } from '../../config/schema/core-schema.ts';
import type { ContributionEntry } from '../../config/schema/schema.ts';
import type { Ledger } from '../instance/ledger.ts';
import type { Declared } from './manifest.ts';

export type { ContributionEntry };

/** Of services that show shares by a protocol. */
export const EXPORTER = 'exporter:';

interface FoundFolder {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly folder: string;
  readonly thirdParty: boolean;
  /**
   * True when requests must be refused while it is missing. A broken in-tree plugin counts as one, because
   * it cannot be asked.
   */
  readonly guard: boolean;
  /** Of a third party's: where its code runs, or would. */
  readonly isolation?: PluginInfo['isolation'];
  /** Of a third party's whose package.json could be read. */
  readonly permissions?: readonly Permission[];
  /** Of a third party's: protocols that its package.json names. */
  readonly protocols?: readonly string[];
}

export interface UsablePlugin extends FoundFolder {
  readonly plugin: Plugin;
  readonly problem?: undefined;
  /** Recorded by a dry run. */
  readonly ledger: Ledger;
  /** The copy that it was loaded from; third-party plugins only. */
  readonly stagedFolder?: string;
}

export interface BrokenPlugin extends FoundFolder {
  readonly plugin?: undefined;
  /** One sentence that says what to repair. */
  readonly problem: string;
  /** What its package.json says of its keys, so that the document stays valid without it. */
  readonly contribution?: ConfigContribution;
  /** The machine may have been the cause: it is worth another try. */
  readonly mayPass?: boolean;
  /** True for a whole folder of `[plugins] dirs`: it is no plugin and has no switch. */
  readonly isWholeFolder?: true;
}

/** A third-party plugin that is off. Its code is not imported: only its package.json is known. */
export interface DormantPlugin extends FoundFolder {
  readonly plugin?: undefined;
  readonly problem?: undefined;
  readonly contribution: ConfigContribution;
}

export type FoundPlugin = UsablePlugin | BrokenPlugin | DormantPlugin;

/** For plugins without keys of their own, which still have their switch. */
const noKeys: ConfigContribution = { schema: Joi.object({}) };

/** What the configuration needs to know about a plugin: usable, off, or refused and known by its package.json. */
export function entryOf(found: FoundPlugin): ContributionEntry[] {
  const contribution = found.plugin
    ? (found.plugin.config ?? noKeys)
    : 'contribution' in found
      ? found.contribution
      : undefined;
  if (!contribution) return [];
  const { name, version, thirdParty, guard } = found;
  return [
    { owner: name, version, thirdParty, enabledByDefault: enabledByDefault(found), guard, contribution },
  ];
}

/** Any keys: of plugins that are off. One schema, so that the configuration describes it once for all of them. */
const anyKeys = Joi.object().unknown();
const dormant = new Map<string, ConfigContribution>();
/** More kinds of them than plugins: then a plugin changes its package.json all the time. */
const MOST_DORMANT = 500;

/**
 * The keys of a plugin that is off pass unchecked, and are masked: no schema knows that they are harmless. The very
 * same object for the same keys: the configuration keeps what it has made of it.
 */
export function dormantContribution({
  section,
  shareKeys,
}: Partial<Declared> & Pick<Declared, 'shareKeys'>): ConfigContribution {
  const key = JSON.stringify([section, shareKeys]);
  const known = dormant.get(key);
  if (known) return known;
  if (dormant.size >= MOST_DORMANT) dormant.clear();
  const made = {
    schema: anyKeys,
    ...(section !== undefined && { section }),
    ...(shareKeys.length > 0 && {
      share: Joi.object(Object.fromEntries(shareKeys.map((one) => [one, Joi.any()]))),
    }),
  };
  dormant.set(key, made);
  return made;
}

/** Protocols that shares may name, and those that are there for shares that name none. */
export function protocolsOf(found: FoundPlugin): ProtocolName[] {
  const { name: plugin, thirdParty, protocols: declared = [] } = found;
  const provided = (found.plugin ? found.ledger.services : []).flatMap(({ name }) =>
    name.startsWith(EXPORTER) ? [name.slice(EXPORTER.length)] : [],
  );
  return [...new Set([...provided, ...declared])]
    .filter((name) => PROTOCOL.test(name))
    .map((name) => ({
      name,
      plugin,
      isProvided: provided.includes(name),
      isNameable: !thirdParty || declared.includes(name),
    }));
}

/** Strangers' plugins are off until switched on, whatever they say themselves. */
export function enabledByDefault(found: FoundPlugin): boolean {
  return !found.thirdParty && found.plugin?.enabledByDefault !== false;
}

/** Whether the plugin is on when the document does not say. */
export function onUnlessSaid(found: FoundPlugin): boolean {
  return enabledByDefault(found) || ('isWholeFolder' in found && found.isWholeFolder === true);
}

/** Whether it is worth another try. */
export function isPassing(found: FoundPlugin): found is BrokenPlugin {
  return 'mayPass' in found && found.mayPass === true;
}

/** Sorts in-tree plugins first, then by name. */
export function compareFound(a: FoundPlugin, b: FoundPlugin): number {
  return Number(a.thirdParty) - Number(b.thirdParty) || (a.name < b.name ? -1 : Number(a.name > b.name));
}
