/** The public description of a plugin: its state, the reason, and its active effects. */
import { dirname } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { oneLine } from '../sdk/one-line.ts';
import type { Logger } from '../contract/platform.ts';
import type { PluginInfo, Services } from '../contract/services.ts';
import { isAnybodyAsked } from '../sdk/http/route-access.ts';
import { contributedBy } from './contributed.ts';
import { providerOf } from './plugin-set.ts';
import type { Member, Members } from './plugin-set.ts';
import { installedFolder } from './discovery/installed.ts';
import { findCircle } from './order.ts';
import { everyUser } from './permissions.ts';
import { absenceOf, carriedIn, hasOurUser, lateIn, notKeptFrom } from './runner/runners.ts';

/** Characters of what a plugin says, before the daemon adds to it; one that broke off has the way back at its end. */
const LONGEST_REASON = 600;
/** Of all of it. */
const LONGEST_WHOLE = 1_200;

export function describeMember(member: Member, members: Members, coreServices: object): PluginInfo {
  const info = infoOf(member, members, coreServices);
  return info.thirdParty ? onOneLine(info) : info;
}

/** What a third party says of itself is shown in terminals, pages and the log. */
function onOneLine(info: PluginInfo): PluginInfo {
  const { version, description, effects, reason } = info;
  return {
    ...info,
    version: oneLine(version),
    description: oneLine(description),
    effects: effects.map((label) => oneLine(label)),
    reason: reason === undefined ? undefined : oneLine(reason, LONGEST_WHOLE),
  };
}

/** The daemon's own words come after it, and are not to be cut off. */
function saidBy({ found }: Member, reason = ''): string {
  return found.thirdParty ? oneLine(withoutAnnotation(reason), LONGEST_REASON) : reason;
}

/** The web server shows the whole route before it says in numbered lines what is wrong with it. */
function withoutAnnotation(reason: string): string {
  const [first = '', ...lines] = stripVTControlCharacters(reason).split('\n');
  const found = lines.filter((line) => /^\[\d+\] /.test(line));
  if (found.length === 0) return reason;
  return `${first.replace(/ ?\{$/, '')}: ${found.map((line) => line.replace(/^\[\d+\] /, '')).join('; ')}`;
}

function infoOf(member: Member, members: Members, coreServices: object): PluginInfo {
  const { found, instance } = member;
  const { name, description, thirdParty } = found;
  const version = instance?.plugin.version ?? found.version;
  const contributes = found.plugin ? contributedBy(found.ledger) : [];
  return {
    name,
    version,
    description,
    thirdParty,
    isolation: isolationOf(member),
    ...(found.permissions && { permissions: found.permissions }),
    contributes,
    effects: instance?.effects ?? [],
    ...(member.enabled && { notKept: notKept(member), everyUser: everyUserOf(member, coreServices) }),
    ...(isInstalled(found, coreServices) && { isInstalled: true }),
    isBrokenOff: member.failure?.stage === 'broken off',
    ...stateOf(member, members, coreServices),
  };
}

/** By the folder that it was found in: those of `[plugins] dirs` come first. */
function isInstalled({ folder, thirdParty }: Member['found'], coreServices: object): boolean {
  const { paths } = coreServices as Partial<Services>;
  return thirdParty && paths !== undefined && dirname(folder) === installedFolder(paths.stateDir);
}

/** Of one that is active. */
function worthKnowing(member: Member): string | undefined {
  const { instance } = member;
  const late = instance ? [...instance.late(), ...lateIn(instance.plugin)] : [];
  const said = [notKept(member), ...late].filter((one) => one !== undefined);
  return said.length > 0 ? said.join('; ') : undefined;
}

function notKept({ found, instance }: Member): string | undefined {
  const plugin = instance?.plugin ?? found.plugin;
  return plugin && notKeptFrom(plugin);
}

function everyUserOf({ found, instance }: Member, coreServices: object): PluginInfo['everyUser'] {
  const plugin = instance?.plugin ?? found.plugin;
  const { config } = coreServices as Partial<Services>;
  if (!plugin || !config || !hasOurUser(plugin)) return undefined;
  return everyUser(found.permissions ?? [], isAnybodyAsked(config.current.config.web));
}

/** An instance from before may run on where the new one would not. */
function isolationOf({ found, instance }: Member): PluginInfo['isolation'] {
  if (instance?.active) return carriedIn(instance.plugin) ?? 'none';
  return found.isolation ?? 'none';
}

function stateOf(
  member: Member,
  members: Members,
  coreServices: object,
): Pick<PluginInfo, 'state' | 'reason'> {
  const { found, instance, failure } = member;
  const state = stateName(member);
  const runsOn = instance?.active
    ? `; version ${oneLine(instance.plugin.version)} as it was before runs on`
    : '';
  switch (state) {
    case 'invalid':
      return { state, reason: `${saidBy(member, found.problem)}${runsOn}${shuts(member)}` };
    case 'failed':
      return { state, reason: `${saidBy(member, failure?.reason)}${runsOn}${shuts(member)}` };
    case 'waiting':
      return { state, reason: waitingReason(member, members, coreServices) };
    // Also shows what would prevent switching it on.
    case 'disabled':
      return { state, reason: found.problem };
    default:
      return { state, reason: worthKnowing(member) };
  }
}

/** As `ledgersOf` sees to. */
function shuts({ found, instance }: Member): string {
  return found.guard && !instance
    ? '; it may be what lets people in, so nobody is let in but by the command socket'
    : '';
}

function stateName(member: Member | undefined): PluginInfo['state'] {
  if (!member?.enabled) return 'disabled';
  if (member.found.problem !== undefined) return 'invalid';
  if (member.failure) return 'failed';
  return member.instance?.active && absentReason(member) === undefined ? 'active' : 'waiting';
}

/** Of a plugin that is up, but whose process has ended by itself and is not there yet again. */
function absentReason({ instance }: Member): string | undefined {
  return instance?.active ? absenceOf(instance.plugin) : undefined;
}

function waitingReason(member: Member, members: Members, coreServices: object): string {
  const absent = absentReason(member);
  if (absent !== undefined) return absent;
  const missing = (member.instance?.plugin.requires ?? []).find(
    (name) => !(name in coreServices) && !providerOf(name, members)?.instance?.active,
  );
  if (missing === undefined) return 'it is coming up';
  const waits = `it waits for the service "${missing}"`;
  const nodes = [...members.values()].flatMap(({ found }) =>
    found.plugin ? [nodeOf(found.plugin, found.ledger.services)] : [],
  );
  const self = nodes.find((node) => node.name === member.found.name);
  const circle = self ? findCircle(self, nodes) : [];
  if (circle.length > 0) return `${waits}; ${circle.join(', ')} wait for each other in a circle`;
  const provider = nodes.find((node) => node.provides.includes(missing));
  if (!provider) return `${waits}, which no plugin provides`;
  return `${waits} of the plugin "${provider.name}", which is ${stateName(members.get(provider.name))}`;
}

function nodeOf(
  plugin: { readonly name: string; readonly requires?: readonly string[] },
  services: readonly { readonly name: string }[],
) {
  return {
    name: plugin.name,
    requires: plugin.requires ?? [],
    provides: services.map((entry) => entry.name),
  };
}

/** Logs the plugins whose state has changed. */
export function reportStates(list: readonly PluginInfo[], before: readonly PluginInfo[], log: Logger): void {
  const former = new Map(before.map((info) => [info.name, info]));
  for (const info of list) {
    const { name, version, state, reason } = info;
    const then = former.get(name);
    if (then?.state === state && then.version === version && causeOf(then) === causeOf(info)) continue;
    const fields = { plugin: name, version, state, reason };
    if (state === 'failed' || state === 'invalid') log.error(fields, 'plugin is not usable as it is');
    else if (state === 'waiting') log.warn(fields, 'plugin waits');
    else log.info(fields, 'plugin changed its state');
  }
}

/** Of one that is up, a run that takes long is no other state: that has a line of its own. */
function causeOf({ state, reason, notKept: unkept }: PluginInfo): string | undefined {
  return state === 'active' ? unkept : reason;
}

/** Tells of plugins whose permissions this machine does not hold them to, where that has changed. */
export function tellNotKept(
  list: readonly PluginInfo[],
  before: readonly PluginInfo[],
  tell: (plugin: string, reason: string | undefined) => void = () => undefined,
): void {
  const reasons = (infos: readonly PluginInfo[]): ReadonlyMap<string, string> =>
    new Map(
      infos.flatMap(({ name, state, notKept: reason }) =>
        state === 'active' && reason !== undefined ? [[name, reason]] : [],
      ),
    );
  const [former, now] = [reasons(before), reasons(list)];
  for (const name of new Set([...former.keys(), ...now.keys()]))
    if (former.get(name) !== now.get(name)) tell(name, now.get(name));
}
