/**
 * What is said about a plugin: its state, why, and what it holds.
 */
import type { Logger } from '../contract/platform.ts';
import type { PluginInfo } from '../contract/services.ts';
import { contributedBy } from './contributed.ts';
import { providerOf } from './members.ts';
import type { Member, Members } from './members.ts';
import { findCircle } from './order.ts';

export function describeMember(member: Member, members: Members, coreServices: object): PluginInfo {
  const { found, instance } = member;
  const { name, description, thirdParty } = found;
  const version = instance?.plugin.version ?? found.version;
  const contributes = found.plugin ? contributedBy(found.ledger) : [];
  return {
    name,
    version,
    description,
    thirdParty,
    contributes,
    effects: instance?.effects ?? [],
    ...stateOf(member, members, coreServices),
  };
}

function stateOf(
  member: Member,
  members: Members,
  coreServices: object,
): Pick<PluginInfo, 'state' | 'reason'> {
  const { found, instance, failure } = member;
  const state = stateName(member);
  const runsOn = instance?.active ? `; version ${instance.plugin.version} as it was before runs on` : '';
  switch (state) {
    case 'invalid':
      return { state, reason: `${found.problem ?? ''}${runsOn}` };
    case 'failed':
      return { state, reason: `${failure?.reason ?? ''}${runsOn}` };
    case 'waiting':
      return { state, reason: waitingReason(member, members, coreServices) };
    // What will be in the way of switching it on.
    case 'disabled':
      return { state, reason: found.problem };
    default:
      return { state, reason: undefined };
  }
}

function stateName(member: Member | undefined): PluginInfo['state'] {
  if (!member?.enabled) return 'disabled';
  if (member.found.problem !== undefined) return 'invalid';
  if (member.failure) return 'failed';
  return member.instance?.active ? 'active' : 'waiting';
}

function waitingReason(member: Member, members: Members, coreServices: object): string {
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

/** Tells the log which plugins are in another state than before. */
export function reportStates(list: readonly PluginInfo[], before: readonly PluginInfo[], log: Logger): void {
  const former = new Map(before.map((info) => [info.name, info]));
  for (const { name, version, state, reason } of list) {
    const then = former.get(name);
    if (then?.state === state && then.reason === reason && then.version === version) continue;
    const fields = { plugin: name, version, state, reason };
    if (state === 'failed' || state === 'invalid') log.error(fields, 'plugin is not usable as it is');
    else if (state === 'waiting') log.warn(fields, 'plugin waits for a service');
    else log.info(fields, 'plugin changed its state');
  }
}
