/**
 * A plugin as discovery found it, usable or not.
 */
import type { ConfigContribution, Plugin } from '../api.ts';
import { Joi } from '../api.ts';
import type { ContributionEntry } from '../config/schema.ts';
import type { Ledger } from './ledger.ts';

export type { ContributionEntry };

interface FoundFolder {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly folder: string;
  readonly thirdParty: boolean;
  /** True when its absence must keep the door shut. A broken plugin that comes with the package counts as one: nobody can tell. */
  readonly guard: boolean;
}

export interface UsablePlugin extends FoundFolder {
  readonly plugin: Plugin;
  /** Written by a dry run. */
  readonly ledger: Ledger;
  /** The copy it was loaded from; third parties only. */
  readonly stagedFolder?: string;
}

export interface BrokenPlugin extends FoundFolder {
  readonly plugin?: undefined;
  /** One sentence that says what to mend. */
  readonly problem: string;
}

export type FoundPlugin = UsablePlugin | BrokenPlugin;

/** For plugins without keys of their own: they still have their switch. */
const noKeys: ConfigContribution = { schema: Joi.object({}) };

/** What the configuration needs to know of a usable plugin, active or not. */
export function entryOf(found: FoundPlugin): ContributionEntry[] {
  if (!found.plugin) return [];
  const { name, version, thirdParty } = found;
  return [{ owner: name, version, thirdParty, enabledByDefault: enabledByDefault(found), contribution: found.plugin.config ?? noKeys }];
}

/** Strangers' plugins are off until switched on, whatever they say themselves. */
export function enabledByDefault(found: FoundPlugin): boolean {
  return !found.thirdParty && found.plugin?.enabledByDefault !== false;
}

/** Plugins that come with the package go first; names decide the rest. */
export function compareFound(a: FoundPlugin, b: FoundPlugin): number {
  return Number(a.thirdParty) - Number(b.thirdParty) || (a.name < b.name ? -1 : Number(a.name > b.name));
}
