/**
 * Builds all projections of a plugin set without touching the current ones, and finds the plugin to blame
 * when one is refused.
 */
import type { BuiltProjection, Ledger, Projector } from './instance/ledger.ts';
import { conflictIn, ledgersOf, withdraw } from './plugin-set.ts';
import { sentence } from '../platform/log/thrown.ts';
import type { Member, Members } from './plugin-set.ts';

export interface Build {
  commit(): void;
  discard(): Promise<void>;
}

export interface Builder {
  /** Rejects when any projector refuses; what the others have built is discarded. */
  build(ledgers: readonly Ledger[]): Promise<Build>;
}

export interface BuilderOptions {
  readonly projectors: readonly Projector[];
  readonly isActive: (plugin: string) => boolean;
}

export function createBuilder({ projectors, isActive }: BuilderOptions): Builder {
  const buildOne = async (projector: Projector, ledgers: readonly Ledger[]): Promise<BuiltProjection> => {
    try {
      return await projector.build(ledgers, isActive);
    } catch (error) {
      throw new Error(`build ${projector.name}`, { cause: error });
    }
  };
  return {
    async build(ledgers) {
      const built: BuiltProjection[] = [];
      const discard = async (): Promise<void> => {
        // Nobody has seen it: what it leaves behind is gone with the process.
        for (const projection of built) await projection.discard().catch(() => undefined);
      };
      try {
        for (const projector of projectors) built.push(await buildOne(projector, ledgers));
      } catch (error) {
        await discard();
        throw error;
      }
      return {
        discard,
        commit: () => {
          for (const projection of built) projection.commit();
        },
      };
    },
  };
}

export interface SetToBuild {
  readonly members: Members;
  readonly builder: Builder;
  /** Takes care of the dependants of what was withdrawn; true when the set must be built again. */
  readonly settle: () => boolean;
  /** Nothing of it has been built by all projectors yet, so what lives may be refused as well. */
  readonly isFirst?: boolean;
}

/**
 * Builds the whole set. When that is refused, starts with the living instances and adds the new ones one at
 * a time; those that a projector refuses are withdrawn. Rejects when even the living instances cannot be built:
 * then nothing has changed.
 */
export async function buildMembers(set: SetToBuild): Promise<Build> {
  const { members, builder, settle, isFirst = false } = set;
  const suspects = [...members.values()].filter((one) => one.fresh || (isFirst && one.instance));
  try {
    return await builder.build(ledgersOf(members));
  } catch (error) {
    if (suspects.length === 0) throw error;
  }
  const build = await buildOneByOne(members, builder, suspects);
  if (!settle()) return build;
  await build.discard();
  return buildMembers(set);
}

async function buildOneByOne(members: Members, builder: Builder, fresh: readonly Member[]): Promise<Build> {
  // Replacements first: others may take over what they no longer declare.
  const suspects = [
    ...fresh.filter((member) => member.previous),
    ...fresh.filter((member) => !member.previous),
  ].map((member) => ({ member, instance: member.instance }));
  for (const { member } of suspects) member.instance = member.previous;
  let built = await builder.build(ledgersOf(members));
  for (const { member, instance } of suspects) {
    member.instance = instance;
    try {
      const conflict = conflictIn(members, member);
      if (conflict !== undefined) throw new Error(conflict);
      const next = await builder.build(ledgersOf(members));
      await built.discard();
      built = next;
    } catch (error) {
      withdraw(member, 'declare', sentence(error));
    }
  }
  return built;
}
