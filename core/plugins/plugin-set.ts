/** Plans a change: which instance each plugin will have next. Computed without touching the current set. */
import type { Config } from '../contract/config.ts';
import type { Plugin } from '../contract/plugin.ts';
import { onUnlessSaid } from './discovery/found.ts';
import type { FoundPlugin } from './discovery/found.ts';
import { isCoreField, isCoreShareField } from './instance/given-values.ts';
import type { Instance } from './instance/instance.ts';
import { emptyLedger } from './instance/ledger.ts';
import { sentence } from '../platform/log/thrown.ts';
import type { Ledger } from './instance/ledger.ts';
import { configStep, isEnabled, ownConfig } from './instance/own-config.ts';

/** A failed attempt. It is not repeated before something has changed that could matter. */
export interface Failure {
  /**
   * `configure`: by what the document says; tried again as soon as that is another. `broken off`: while it ran; it is
   * tried again as soon as it is forgiven.
   */
  readonly stage: 'configure' | 'declare' | 'activate' | 'broken off';
  readonly reason: string;
  readonly plugin: Plugin;
  readonly config: object;
}

/** One discovered plugin within a plugin set. */
export interface Member {
  readonly found: FoundPlugin;
  readonly enabled: boolean;
  /** The projected instance: active, activating or waiting. */
  instance: Instance | undefined;
  /** The instance is new and must be activated. */
  fresh: boolean;
  /** The living instance that the new one replaces, to fall back on. */
  previous: Instance | undefined;
  failure: Failure | undefined;
  /** The living instance that the new one replaces, to go back to on a failure. */
  nextConfig: object | undefined;
}

export type Members = ReadonlyMap<string, Member>;
export type MakeInstance = (plugin: Plugin, config: object) => Instance;

export interface ChangeRequest {
  readonly found: readonly FoundPlugin[];
  readonly current: Members;
  readonly config: Config;
  readonly make: MakeInstance;
  readonly isCoreService: (name: string) => boolean;
  /**
   * Plugins that were switched off because of an uncaught error, with the reason. They stay off until their
   * code changes.
   */
  readonly condemned?: ReadonlyMap<Plugin, string>;
  /** Plugins whose keys in the document do not fit, with the reason. */
  readonly unfit?: ReadonlyMap<string, string> | undefined;
}

/** The next plugin set. Failed plugins are tried again only when the set changes anyway. */
export function planMembers(request: ChangeRequest): Map<string, Member> {
  const careful = plan(request, false);
  return differs(careful, request.current) && [...careful.values()].some((member) => member.failure)
    ? plan(request, true)
    : careful;
}

function differs(next: Members, current: Members): boolean {
  const before = new Set([...current.values()].map((member) => member.instance));
  return (
    [...next.values()].some((member) => member.fresh) ||
    [...before].some((one) => one && ![...next.values()].some((m) => m.instance === one))
  );
}

function plan(request: ChangeRequest, retry: boolean): Map<string, Member> {
  const members = new Map(request.found.map((found) => [found.name, choose(found, request, retry)]));
  settleConflicts(members, request.isCoreService);
  restartDependants(members, request);
  return members;
}

function choose(found: FoundPlugin, request: ChangeRequest, retry: boolean): Member {
  const before = request.current.get(found.name);
  const running = before?.instance;
  const member: Member = {
    found,
    enabled: isEnabled(found.name, onUnlessSaid(found), request.config),
    instance: undefined,
    fresh: false,
    previous: undefined,
    failure: undefined,
    nextConfig: undefined,
  };
  if (!member.enabled) return member;
  if (!found.plugin) return { ...member, instance: living(running) };
  const wanted = wantedOf(found.plugin, request);
  const guilt = request.condemned?.get(found.plugin);
  if (guilt !== undefined) return brokenOff(member, found.plugin, { reason: guilt, running });
  if ('reason' in wanted)
    return { ...member, instance: living(running), failure: { ...wanted, stage: 'configure' } };
  if (isHeld(before, wanted, retry)) return { ...member, instance: running, failure: before?.failure };
  return (
    keep(member, before, wanted) ?? renew(member, { ...wanted, previous: living(running) }, request.make)
  );
}

/** The version that came before it goes on where the one that broke off has not taken its place. */
function brokenOff(
  member: Member,
  plugin: Plugin,
  { reason, running }: { readonly reason: string; readonly running: Instance | undefined },
): Member {
  const instance = running?.plugin === plugin ? undefined : living(running);
  return { ...member, instance, failure: { plugin, config: {}, reason, stage: 'broken off' } };
}

interface Wanted {
  readonly plugin: Plugin;
  readonly config: object;
}

function wantedOf(
  plugin: Plugin,
  { config, unfit }: ChangeRequest,
): Wanted | (Wanted & { readonly reason: string }) {
  const reason = unfit?.get(plugin.name);
  if (reason !== undefined) return { plugin, config: {}, reason };
  try {
    return { plugin, config: ownConfig(plugin, config) };
  } catch (error) {
    return { plugin, config: {}, reason: sentence(error) };
  }
}

function living(instance: Instance | undefined): Instance | undefined {
  return instance?.active ? instance : undefined;
}

/**
 * A failed plugin stays failed until its code or configuration changes; with `retry`, it is tried again
 * unless that would disturb what is running.
 */
function isHeld(before: Member | undefined, wanted: Wanted, retry: boolean): boolean {
  if (!before?.failure || ['configure', 'broken off'].includes(before.failure.stage)) return false;
  if (!isSameTry(before.failure, wanted.plugin, wanted.config)) return false;
  return !retry || (before.failure.stage === 'activate' && before.instance !== undefined);
}

/** An instance that is still activating stays new, with the former one to go back to. */
function keep(member: Member, before: Member | undefined, { plugin, config }: Wanted): Member | undefined {
  const running = before?.instance;
  if (running?.plugin !== plugin) return undefined;
  const step = configStep(plugin, running.config, config);
  const coming = running.active ? {} : { fresh: before?.fresh ?? false, previous: before?.previous };
  return step === 'restart'
    ? undefined
    : { ...member, ...coming, instance: running, nextConfig: step === 'live' ? config : undefined };
}

function isSameTry(failure: Failure, plugin: Plugin, config: object): boolean {
  return failure.plugin === plugin && configStep(plugin, failure.config, config) === 'same';
}

interface Renewal extends Wanted {
  readonly previous: Instance | undefined;
}

function renew(member: Member, { plugin, config, previous }: Renewal, make: MakeInstance): Member {
  try {
    return { ...member, instance: make(plugin, config), fresh: true, previous };
  } catch (error) {
    return {
      ...member,
      instance: previous,
      failure: { stage: 'declare', reason: sentence(error), plugin, config },
    };
  }
}

/** Drops a new instance in favour of the living one, where there is one. */
export function withdraw(member: Member, stage: Failure['stage'], reason: string): void {
  const { instance, previous } = member;
  if (instance) member.failure = { stage, reason, plugin: instance.plugin, config: instance.config };
  member.instance = member.fresh ? previous : undefined;
  member.fresh = false;
  member.previous = undefined;
}

function shareFields({ shareStatus }: Ledger): string[] {
  return shareStatus.flatMap(({ defaults = {} }) => Object.keys(defaults));
}

/** Things that only one plugin may declare, each with the words for it. */
function claims(ledger: Ledger): string[] {
  return [
    ...ledger.services.map((entry) => `provides the service "${entry.name}"`),
    ...ledger.statusFields.map((entry) => `fills the status field "${entry.field}"`),
    ...shareFields(ledger).map((field) => `fills the field "${field}" of each share`),
    ...ledger.handlers.map((entry) => `handles the command "${entry.command}"`),
    ...ledger.cli.map((entry) => `adds the subcommand "${entry.name}"`),
    ...ledger.metrics.map((entry) => `adds the metric "${entry.name}"`),
    ...ledger.metrics.flatMap(({ shownAs }) => shownAs.map((name) => `shows the name "${name}" at /metrics`)),
    ...ledger.tabs.map((entry) => `adds the tab "${entry.id}"`),
    ...ledger.webhookFormats.map((entry) => `gives the webhook format "${ledger.plugin}/${entry.name}"`),
    ...ledger.events.map((entry) => `gives the event "${entry.name}"`),
    ...ledger.jobs.map((entry) => `declares ${ledger.plugin}'s job "${entry.name}"`),
  ];
}

interface Taken {
  readonly owners: ReadonlyMap<string, string>;
  readonly isCoreService: (name: string) => boolean;
}

/** The first of `ledger`'s claims that another plugin has already, as a sentence. */
function findConflict(ledger: Ledger, { owners, isCoreService }: Taken): string | undefined {
  const core = ledger.services.find((entry) => isCoreService(entry.name));
  if (core) return `it provides the service "${core.name}", which is the core's own; choose another name`;
  const field = ledger.statusFields.find((entry) => isCoreField(entry.field));
  if (field)
    return `it fills the status field "${field.field}", which is the core's own; choose another name`;
  const shareField = shareFields(ledger).find(isCoreShareField);
  if (shareField !== undefined)
    return `it fills the field "${shareField}" of each share, which is the core's own; choose another name`;
  const seen = new Set<string>();
  for (const claim of claims(ledger)) {
    const owner = owners.get(claim);
    if (owner !== undefined)
      return `it ${claim}, which the plugin "${owner}" does already; switch one of the two off`;
    if (seen.has(claim)) return `it ${claim} twice`;
    seen.add(claim);
  }
  return undefined;
}

function settleConflicts(members: Members, isCoreService: (name: string) => boolean): void {
  const owners = new Map<string, string>();
  const conflictOf = ({ instance }: Member) =>
    instance && findConflict(instance.ledger, { owners, isCoreService });
  for (const [name, member] of members) {
    const problem = conflictOf(member);
    if (problem !== undefined) withdraw(member, 'declare', problem);
    if (conflictOf(member) !== undefined) member.instance = undefined;
    if (member.instance) for (const claim of claims(member.instance.ledger)) owners.set(claim, name);
  }
}

/** Why the member's instance conflicts with those of the others. */
export function conflictIn(members: Members, member: Member): string | undefined {
  const others = [...members].filter(([, other]) => other !== member && other.instance);
  const owners = new Map(
    others.flatMap(([name, other]) =>
      claims((other.instance as Instance).ledger).map((claim) => [claim, name] as const),
    ),
  );
  return member.instance && findConflict(member.instance.ledger, { owners, isCoreService: () => false });
}

export function providerOf(service: string, members: Members): Member | undefined {
  return [...members.values()].find((member) =>
    member.instance?.ledger.services.some((entry) => entry.name === service),
  );
}

/**
 * Restarts every plugin that uses a service which is removed or replaced, and their dependants in turn.
 * True when there were any.
 */
export function restartDependants(members: Map<string, Member>, request: ChangeRequest): boolean {
  const isStale = (service: string): boolean =>
    !request.isCoreService(service) &&
    providerOf(service, members)?.instance !== providerOf(service, request.current)?.instance;
  const stale = [...members].filter(
    ([, { instance }]) => instance?.active && (instance.plugin.requires ?? []).some(isStale),
  );
  for (const [name, member] of stale) {
    const { plugin, config } = member.instance as Instance;
    members.set(
      name,
      renew(
        { ...member, nextConfig: undefined },
        { plugin, config: member.nextConfig ?? config, previous: undefined },
        request.make,
      ),
    );
  }
  if (stale.length > 0) restartDependants(members, request);
  return stale.length > 0;
}

/**
 * Ledgers to project, with an empty one for every authentication plugin that should be active and is not,
 * so that the server refuses requests.
 */
export function ledgersOf(members: Members): readonly Ledger[] {
  return [...members.values()].flatMap(({ instance, found, enabled }) => {
    if (instance) return [instance.ledger];
    return enabled && found.guard ? [emptyLedger(found.name, true)] : [];
  });
}

/** Gives a living instance the live keys that have changed. */
export function takeConfig(member: Member): void {
  if (member.nextConfig && member.instance) member.instance.changeConfig(member.nextConfig);
  member.nextConfig = undefined;
}
