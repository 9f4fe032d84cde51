/**
 * What happens in a torture run, by a seed: rounds in which four writers work side by side, most with a fault beside
 * them. A round is the same whichever rounds run before it, so that a run that went wrong can be tried with fewer.
 */
import { seeded } from '../config/random-documents.ts';
import type { Random } from '../config/random-documents.ts';

/** How a writer comes to the share. Each has a folder of its own, named so. */
export const WAYS = ['local', 'smb', 'webdav', 'nfs'] as const;
export type Way = (typeof WAYS)[number];

/** Paths are relative to the writer's folder. */
export interface Action {
  readonly deed: 'write' | 'append' | 'patch' | 'rename' | 'delete' | 'make' | 'remove';
  readonly path: string;
  /** Where to, of a rename. */
  readonly to?: string;
  readonly bytes: number;
  /** Tells what is written from all else that is. */
  readonly seed: number;
}

export interface Round {
  readonly number: number;
  readonly actions: Readonly<Record<Way, readonly Action[]>>;
  /** By its name in `FAULTS`; none in some rounds. */
  readonly fault?: { readonly name: string; readonly afterMs: number; readonly forMs: number };
  readonly pauseMs: number;
  /** Afterwards all stand still until everything is on the NAS, and that is looked at. */
  readonly isChecked: boolean;
}

const FILES = ['a', 'b', 'c 照.txt', 'd/a', 'd/b', 'e/a'];
const FOLDERS = ['d', 'e'];
/** What no client but a local program does. */
const LOCAL_ONLY: readonly Action['deed'][] = ['append', 'patch'];
const DEEDS: readonly Action['deed'][] = [
  ...(['write', 'write', 'write', 'write', 'rename', 'rename', 'rename'] as const),
  ...(['append', 'patch', 'delete', 'delete', 'make', 'make', 'remove'] as const),
];

/** The round of this number. `faults`: the names to choose from. */
export function roundOf(seed: number, number: number, faults: readonly string[]): Round {
  const random = seeded(seed * 10_007 + number);
  // The first numbers of neighbouring seeds are alike.
  for (let skipped = 0; skipped < 5; skipped += 1) random();
  const [local, smb, webdav, nfs] = WAYS.map((way, place) =>
    actionsOf(way, (number * 4 + place) * 100, random),
  );
  const name = random() < 0.75 ? pick(faults, random) : undefined;
  return {
    number,
    actions: { local: local!, smb: smb!, webdav: webdav!, nfs: nfs! },
    ...(name === undefined
      ? {}
      : { fault: { name, afterMs: upTo(1_500, random), forMs: 300 + upTo(5_000, random) } }),
    pauseMs: random() < 0.5 ? 0 : upTo(4_000, random),
    isChecked: number % 4 === 3,
  };
}

function actionsOf(way: Way, seed: number, random: Random): Action[] {
  const deeds = way === 'local' ? DEEDS : DEEDS.filter((deed) => !LOCAL_ONLY.includes(deed));
  return Array.from({ length: 2 + upTo(5, random) }, (_, place) => ({
    deed: pick(deeds, random),
    ...pathsOf(way, random),
    bytes: random() < 0.2 ? 100_000 + upTo(600_000, random) : upTo(5_000, random),
    seed: seed + place,
  })).map((action): Action => {
    if (action.deed === 'make' || action.deed === 'remove') return { ...action, path: pick(FOLDERS, random) };
    return action;
  });
}

function pathsOf(way: Way, random: Random): Pick<Action, 'path' | 'to'> {
  if (random() < 0.2) return random() < 0.5 ? { path: 'd', to: 'e' } : { path: 'e', to: 'd' };
  const path = pick(FILES, random);
  // The NFS client renames within one folder.
  const near = FILES.filter((one) => one !== path && (way !== 'nfs' || folderOf(one) === folderOf(path)));
  return { path, to: near.length === 0 ? `${path}2` : pick(near, random) };
}

/** The folder of a path, empty for the root. */
export function folderOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')));
}

function upTo(limit: number, random: Random): number {
  return Math.floor(random() * limit);
}

function pick<T>(all: readonly T[], random: Random): T {
  return all[Math.floor(random() * all.length)]!;
}
