/**
 * Bringing new instances up, providers before those who depend on them. One that fails is replaced by the instance it
 * came for, where there was one; whoever depends on it waits.
 */
import type { Logger } from '../services.ts';
import type { Instance } from './instance.ts';
import { conflictIn, providerOf, sentence, withdraw } from './members.ts';
import type { Failure, MakeInstance, Member, Members } from './members.ts';
import { sortByServices } from './order.ts';

export interface ActivationEnv {
  readonly make: MakeInstance;
  readonly log: Logger;
  readonly isCoreService: (name: string) => boolean;
  readonly isStopping: () => boolean;
  /** Projects the members again after an instance was replaced. */
  readonly reproject: () => Promise<void>;
  readonly onActive: (instance: Instance) => void;
}

/** Runs until no instance is left that could be activated. Never rejects. */
export async function activateMembers(members: Members, env: ActivationEnv): Promise<void> {
  for (;;) {
    const failed = await activateOnce(members, env);
    if (failed.length === 0) return;
    const former = failed.flatMap(({ member, error }) => putAside(member, error));
    let isProjected = false;
    for (const one of former) if (await bringBack(one, members, env)) isProjected = true;
    if (!isProjected) await takeAway(env);
  }
}

async function takeAway(env: ActivationEnv): Promise<void> {
  try {
    await env.reproject();
  } catch (error) {
    env.log.error({ err: error }, 'routes and hooks of failed plugins could not be taken away');
  }
}

interface FailedMember { readonly member: Member; readonly error: unknown }

/** Members that have an instance, providers first. */
function inOrder(members: Members) {
  return sortByServices([...members.values()].flatMap((member) => (member.instance ? [{
    member, instance: member.instance, name: member.found.name,
    requires: member.instance.plugin.requires ?? [], provides: member.instance.ledger.services.map((entry) => entry.name),
  }] : [])));
}

async function activateOnce(members: Members, env: ActivationEnv): Promise<FailedMember[]> {
  const isUp = (service: string): boolean => env.isCoreService(service) || providerOf(service, members)?.instance?.active === true;
  const failed: FailedMember[] = [];
  for (const { member, instance, requires } of inOrder(members)) {
    if (instance.active || env.isStopping() || !requires.every(isUp)) continue;
    try {
      await instance.activate();
      env.onActive(instance);
      member.fresh = false;
      member.previous = undefined;
    } catch (error) {
      failed.push({ member, error });
    }
  }
  return failed;
}

/** As far as it goes without any effect; a service that cannot be made leaves its plugin out. */
export function inspectMembers(members: Members, isCoreService: (name: string) => boolean): void {
  const isUp = (service: string): boolean => isCoreService(service) || providerOf(service, members)?.instance?.active === true;
  for (const { member, instance, requires } of inOrder(members)) {
    if (!requires.every(isUp)) continue;
    try {
      instance.inspect();
    } catch (error) {
      withdraw(member, 'activate', sentence(error));
    }
  }
}

interface Former { readonly member: Member; readonly previous: Instance }

/** Takes out what failed; the instance that it came for, where there is one that has not failed as well. */
function putAside(member: Member, error: unknown): Former[] {
  const { previous, failure } = member;
  withdraw(member, 'activate', sentence(error));
  member.instance = undefined;
  if (failure) giveUp(member, failure, sentence(error));
  return previous && !failure ? [{ member, previous }] : [];
}

/**
 * The instance before was disposed already, so its plugin is declared anew with the configuration it had. True once it is
 * projected: what it had may belong to another by now, and without its routes and hooks it must not run.
 */
async function bringBack({ member, previous }: Former, members: Members, env: ActivationEnv): Promise<boolean> {
  try {
    member.instance = env.make(previous.plugin, previous.config);
    member.fresh = true;
    const problem = conflictIn(members, member);
    if (problem !== undefined) throw new Error(problem);
    await env.reproject();
    return true;
  } catch (cause) {
    member.instance = undefined;
    member.fresh = false;
    if (member.failure) giveUp(member, member.failure, sentence(cause));
    return false;
  }
}

function giveUp(member: Member, first: Failure, reason: string): void {
  member.failure = { ...first, reason: `${first.reason}; what ran before could not be brought back: ${reason}` };
}
