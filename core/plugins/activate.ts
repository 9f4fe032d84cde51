/**
 * Bringing new instances up, side by side, and providers before those who depend on them. One that fails is
 * replaced by the instance it came for, where there was one; whoever depends on it waits. A stranger's that
 * takes long is not waited for.
 */
import type { Clock, Logger } from '../contract/platform.ts';
import type { Instance } from './instance/instance.ts';
import { conflictIn, providerOf, sentence, withdraw } from './members.ts';
import type { Failure, MakeInstance, Member, Members } from './members.ts';
import { sortByServices } from './order.ts';

/** How long the others' coming up and the next change wait for strangers' effects. */
const STRANGERS_MS = 2_000;

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
   * A stranger's instance that was not waited for has come up or failed. Another activation looks at it
   * again.
   */
  readonly onLate: () => void;
}

/**
 * Runs until no instance is left that could be activated, but for strangers' that take long. Never rejects.
 */
export async function activateMembers(members: Members, env: ActivationEnv): Promise<void> {
  let cancel: (() => void) | undefined;
  const patience = new Promise<undefined>(
    (resolve) => (cancel = env.clock.after(STRANGERS_MS, () => resolve(undefined))),
  );
  for (;;) {
    const failed = await activateOnce(members, env, patience);
    if (failed.length === 0) break;
    const former = failed.flatMap(({ member, error }) => putAside(member, error));
    let isProjected = false;
    for (const one of former) if (await bringBack(one, members, env)) isProjected = true;
    if (!isProjected) await takeAway(env);
  }
  cancel?.();
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

/** A plugin waits for those whose services it requires, and for nobody else. */
async function activateOnce(
  members: Members,
  env: ActivationEnv,
  patience: Promise<undefined>,
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
    tries.set(
      member,
      member.found.thirdParty ? Promise.race([attempt, lateOne(attempt, patience, env)]) : attempt,
    );
  }
  return (await Promise.all(tries.values())).filter((failed) => failed !== undefined);
}

/** Resolves when it is not waited for any more; whoever waits hears of its end by another activation. */
async function lateOne(
  attempt: Promise<unknown>,
  patience: Promise<undefined>,
  env: ActivationEnv,
): Promise<undefined> {
  let isDone = false;
  const end = attempt.then(() => (isDone = true));
  await patience;
  if (!isDone) void end.then(env.onLate);
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

/** As far as it goes without any effect; a service that cannot be made leaves its plugin out. */
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

interface Former {
  readonly member: Member;
  readonly previous: Instance;
}

/** Takes out what failed; the instance that it came for, where there is one that has not failed as well. */
function putAside(member: Member, error: unknown): Former[] {
  const { previous, failure } = member;
  withdraw(member, 'activate', sentence(error));
  member.instance = undefined;
  if (failure) giveUp(member, failure, sentence(error));
  return previous && !failure ? [{ member, previous }] : [];
}

/**
 * The instance before was disposed already, so its plugin is declared anew with the configuration it had.
 * True once it is projected: what it had may belong to another by now, and without its routes and hooks it
 * must not run.
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
