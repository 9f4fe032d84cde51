/**
 * Activates new instances concurrently, but providers of services before their dependants. A failed
 * instance is replaced by the former one, where there was one; its dependants wait. Slow third-party
 * plugins are not waited for.
 */
import type { Clock, Logger } from '../contract/platform.ts';
import { timeBoxOr } from '../platform/deadline.ts';
import { ownPlaceOf } from './blame.ts';
import type { Instance } from './instance/instance.ts';
import { conflictIn, providerOf, withdraw } from './plugin-set.ts';
import { sentence } from '../platform/log/thrown.ts';
import type { Failure, MakeInstance, Member, Members } from './plugin-set.ts';
import { sortByServices } from './order.ts';

/**
 * How long other plugins and the next change wait for the effects of third-party plugins, in milliseconds.
 */
const THIRD_PARTY_MS = 2_000;

export interface ActivationEnv {
  readonly clock: Clock;
  readonly make: MakeInstance;
  readonly log: Logger;
  readonly isCoreService: (name: string) => boolean;
  readonly isStopping: () => boolean;
  /** Projects the members again after an instance was replaced. */
  readonly reproject: () => Promise<void>;
  readonly onBegin: (instance: Instance) => void;
  /**
   * Called when a third-party instance that was not waited for has become active or failed, so that another
   * activation runs.
   */
  readonly onLate: () => void;
}

/** Runs until no instance is left to activate, except slow third-party ones. Never rejects. */
export async function activateMembers(members: Members, env: ActivationEnv): Promise<void> {
  const strangersUntilMs = env.clock.monotonic() + THIRD_PARTY_MS;
  for (;;) {
    const failed = await activateOnce(members, env, strangersUntilMs);
    if (failed.length === 0) break;
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

interface FailedMember {
  readonly member: Member;
  readonly error: unknown;
}

/** Members that have an instance, providers first. */
function inOrder(members: Members) {
  return sortByServices(
    [...members.values()].flatMap((member) =>
      member.instance
        ? [
            {
              member,
              instance: member.instance,
              name: member.found.name,
              requires: member.instance.plugin.requires ?? [],
              provides: member.instance.ledger.services.map((entry) => entry.name),
            },
          ]
        : [],
    ),
  );
}

/** A plugin waits for the providers of the services that it requires, and for nothing else. */
async function activateOnce(
  members: Members,
  env: ActivationEnv,
  strangersUntilMs: number,
): Promise<FailedMember[]> {
  const isUp = (service: string): boolean =>
    env.isCoreService(service) || providerOf(service, members)?.instance?.active === true;
  const tries = new Map<Member, Promise<FailedMember | undefined>>();
  for (const { member, instance, requires } of inOrder(members)) {
    const providers = requires.flatMap((service) => tries.get(providerOf(service, members) ?? member) ?? []);
    const isWanted = (): boolean => !instance.active && !env.isStopping() && requires.every(isUp);
    const attempt = Promise.all(providers).then(() =>
      isWanted() ? bringUp(member, instance, env) : undefined,
    );
    tries.set(member, member.found.thirdParty ? inTime(attempt, strangersUntilMs, env) : attempt);
  }
  return (await Promise.all(tries.values())).filter((failed) => failed !== undefined);
}

/** Undefined when it is not waited for any more; its end is then heard of by another activation. */
function inTime(
  attempt: Promise<FailedMember | undefined>,
  untilMs: number,
  { clock, onLate }: ActivationEnv,
): Promise<FailedMember | undefined> {
  return timeBoxOr(clock, untilMs - clock.monotonic(), attempt, () => void attempt.then(onLate));
}

async function bringUp(
  member: Member,
  instance: Instance,
  env: ActivationEnv,
): Promise<FailedMember | undefined> {
  try {
    env.onBegin(instance);
    await instance.activate();
    member.fresh = false;
    member.previous = undefined;
    return undefined;
  } catch (error) {
    return { member, error };
  }
}

/** Services and declarations only, no effects; a plugin whose service cannot be made is left out. */
export function inspectMembers(members: Members, isCoreService: (name: string) => boolean): void {
  const isUp = (service: string): boolean =>
    isCoreService(service) || providerOf(service, members)?.instance?.active === true;
  for (const { member, instance, requires } of inOrder(members)) {
    if (!requires.every(isUp)) continue;
    try {
      instance.inspect();
    } catch (error) {
      withdraw(member, 'activate', sentence(error));
    }
  }
}

/** In a process of its own, its place is in its words already. */
function placeOf({ found }: Member, error: unknown): string {
  return found.plugin && found.stagedFolder !== undefined ? ownPlaceOf(error, [found.stagedFolder]) : '';
}

interface Former {
  readonly member: Member;
  readonly previous: Instance;
}

/** Removes failed instances; returns the former ones that can be brought back. */
function putAside(member: Member, error: unknown): Former[] {
  const { previous, failure } = member;
  const reason = `${sentence(error)}${placeOf(member, error)}`;
  withdraw(member, 'activate', reason);
  member.instance = undefined;
  if (failure) giveUp(member, failure, reason);
  return previous && !failure ? [{ member, previous }] : [];
}

/**
 * The former instance was already disposed, so its plugin is declared again with its former configuration.
 * True once it is projected: another plugin may own its routes and hooks by now, and without them it must
 * not run.
 */
async function bringBack(
  { member, previous }: Former,
  members: Members,
  env: ActivationEnv,
): Promise<boolean> {
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
  member.failure = {
    ...first,
    reason: `${first.reason}; what ran before could not be brought back: ${reason}`,
  };
}
