/**
 * Building all projections of a plugin set beside the ones in force, and finding out who is to blame when one
 * refuses.
 */
import type { Clock } from '../contract/platform.ts';
import type { BuiltProjection, Ledger, Projector } from './instance/ledger.ts';
import { conflictIn, ledgersOf, sentence, withdraw } from './members.ts';
import type { Members } from './members.ts';
import { timeBox } from '../sdk/time-box.ts';

export interface Build {
  commit(): void;
  discard(): Promise<void>;
}

export interface Builder {
  /** Rejects when any projector refuses; what the others had built is thrown away. */
  build(ledgers: readonly Ledger[]): Promise<Build>;
}

export interface BuilderOptions {
  readonly projectors: readonly Projector[];
  readonly clock: Clock;
  readonly isActive: (plugin: string) => boolean;
  /** Longest wait for one projector; default 10 s. */
  readonly buildMs?: number;
}

export function createBuilder({ projectors, clock, isActive, buildMs = 10_000 }: BuilderOptions): Builder {
  const buildOne = async (projector: Projector, ledgers: readonly Ledger[]): Promise<BuiltProjection> => {
    const building = projector.build(ledgers, isActive);
    try {
      return await timeBox(clock, buildMs, building);
    } catch (error) {
      void building.then((late) => late.discard()).catch(() => undefined);
      throw new Error(`build ${projector.name}`, { cause: error });
    }
  };
  return {
    async build(ledgers) {
      const built: BuiltProjection[] = [];
      const discard = async (): Promise<void> => {
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

/**
 * Builds the whole set. When that is refused, starts from what is living and adds the new instances one at a
 * time; those that make a projector refuse are withdrawn, and `settle` looks after whoever depended on them;
 * true from it asks for another build. Rejects when even the living ones cannot be built: nothing has changed
 * then.
 */
export async function buildMembers(
  members: Members,
  builder: Builder,
  settle: () => boolean,
): Promise<Build> {
  try {
    return await builder.build(ledgersOf(members));
  } catch (error) {
    if (![...members.values()].some((member) => member.fresh)) throw error;
  }
  const build = await buildOneByOne(members, builder);
  if (!settle()) return build;
  await build.discard();
  return buildMembers(members, builder, settle);
}

async function buildOneByOne(members: Members, builder: Builder): Promise<Build> {
  const fresh = [...members.values()].filter((member) => member.fresh);
  // Replacements first: what they no longer declare, others may take over.
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
