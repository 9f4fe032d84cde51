/**
 * A plugin as discovery found it, usable or not.
 */
import type { ConfigContribution } from '../../contract/config.ts';
import type { Plugin } from '../../contract/plugin.ts';
import Joi from 'joi';
import type { ContributionEntry } from '../../config/schema/schema.ts';
import type { Ledger } from '../instance/ledger.ts';
import type { Declared } from './manifest.ts';

export type { ContributionEntry };

interface FoundFolder {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly folder: string;
  readonly thirdParty: boolean;
  /**
   * True when its absence must keep the door shut. A broken plugin that comes with the package counts as one:
   * nobody can tell.
   */
  readonly guard: boolean;
}

export interface UsablePlugin extends FoundFolder {
  readonly plugin: Plugin;
  readonly problem?: undefined;
  /** Written by a dry run. */
  readonly ledger: Ledger;
  /** The copy it was loaded from; third parties only. */
  readonly stagedFolder?: string;
}

export interface BrokenPlugin extends FoundFolder {
  readonly plugin?: undefined;
  /** One sentence that says what to mend. */
  readonly problem: string;
  /** It is no plugin but a folder of `[plugins] dirs`, which no switch belongs to. */
  readonly isWholeFolder?: true;
}

/** A third party's plugin that is off. Code that is off is not imported: only its package.json is known. */
export interface DormantPlugin extends FoundFolder {
  readonly plugin?: undefined;
  readonly problem?: undefined;
  readonly contribution: ConfigContribution;
}

export type FoundPlugin = UsablePlugin | BrokenPlugin | DormantPlugin;

/** For plugins without keys of their own: they still have their switch. */
const noKeys: ConfigContribution = { schema: Joi.object({}) };

/** What the configuration needs to know of a plugin that can be used, active or not. */
export function entryOf(found: FoundPlugin): ContributionEntry[] {
  const contribution = found.plugin
    ? (found.plugin.config ?? noKeys)
    : 'contribution' in found
      ? found.contribution
      : undefined;
  if (!contribution) return [];
  const { name, version, thirdParty } = found;
  return [{ owner: name, version, thirdParty, enabledByDefault: enabledByDefault(found), contribution }];
}

/**
 * Whatever a plugin that is off has in the document passes unchecked, and is shown to nobody: no schema knows
 * that it is harmless.
 */
export function dormantContribution({ section, shareKeys }: Declared): ConfigContribution {
  return {
    schema: Joi.object().unknown(),
    ...(section !== undefined && { section }),
    ...(shareKeys.length > 0 && {
      share: Joi.object(Object.fromEntries(shareKeys.map((key) => [key, Joi.any()]))),
    }),
  };
}

/** Strangers' plugins are off until switched on, whatever they say themselves. */
export function enabledByDefault(found: FoundPlugin): boolean {
  return !found.thirdParty && found.plugin?.enabledByDefault !== false;
}

/** Whether it is on, where the document says nothing of it. */
export function onUnlessSaid(found: FoundPlugin): boolean {
  return enabledByDefault(found) || ('isWholeFolder' in found && found.isWholeFolder === true);
}

/** Plugins that come with the package go first; names decide the rest. */
export function compareFound(a: FoundPlugin, b: FoundPlugin): number {
  return Number(a.thirdParty) - Number(b.thirdParty) || (a.name < b.name ? -1 : Number(a.name > b.name));
}
