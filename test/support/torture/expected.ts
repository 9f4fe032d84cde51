/**
 * What the NAS must hold: a plain folder that gets each acknowledged change. Of what got no answer, either outcome is
 * right, until a look at the NAS has told which it was.
 */
import { cpSync, existsSync, mkdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { differences, treeOf } from '../write-layer/folder-tree.ts';
import { carryOut } from './deeds.ts';
import type { Action, Way } from './plan.ts';

export type Tree = Readonly<Record<string, string>>;

/** Something that a rename without an answer may not have lost: it is at one of two places. */
interface Claim {
  readonly what: string;
  readonly places: readonly [string, string];
}

interface Touch {
  readonly path: string;
  readonly startedMs: number;
  endedMs: number;
}

export class Expected {
  readonly #root: string;
  readonly #unknown = new Set<string>();
  #claims: Claim[] = [];
  #touches: Touch[] = [];

  /** `root`: a copy of what the share begins with. */
  constructor(root: string) {
    this.#root = root;
  }

  /** True where nothing can be said of what the action would do, since one before it got no answer. */
  isUnknown(way: Way, action: Action): boolean {
    return placesOf(way, action).some((place) => [...this.#unknown].some((one) => isNear(one, place)));
  }

  /** Call it before an action begins; the returned function when it is over. */
  begin(way: Way, action: Action, nowMs: () => number): () => void {
    const startedMs = nowMs();
    const touches = placesOf(way, action).map((path) => ({ path, startedMs, endedMs: Infinity }));
    this.#touches.push(...touches);
    return () => {
      for (const touch of touches) touch.endedMs = nowMs();
    };
  }

  /** The action was acknowledged. Returns what is wrong when it cannot have been done. */
  done(way: Way, action: Action): string | undefined {
    const code = carryOut(join(this.#root, way), way, action);
    return code === undefined
      ? undefined
      : `${describe(way, action)}: acknowledged, though the model says ${code}`;
  }

  /** True where a writer must not be told that what the action begins with is missing. */
  isThere(way: Way, { path }: Action): boolean {
    return existsSync(join(this.#root, way, path));
  }

  /** The action got no answer. */
  unknown(way: Way, action: Action): void {
    const [from, to] = placesOf(way, action);
    for (const place of placesOf(way, action)) this.#unknown.add(place);
    if (action.deed !== 'rename' || from === undefined || to === undefined) return;
    const tree = treeOf(this.#root);
    for (const [path, what] of Object.entries(tree))
      if (what !== 'folder' && isNear(from, path) && path.startsWith(from))
        this.#claims.push({ what, places: [path, `${to}${path.slice(from.length)}`] });
  }

  /** One line for each path that is wrong, by a look at the NAS while nobody writes. */
  wrong(nas: Tree): string[] {
    const isKnown = ([path]: [string, string]): boolean =>
      ![...this.#unknown].some((one) => isNear(one, path) && !one.startsWith(`${path}/`));
    const known = (tree: Tree): Tree => Object.fromEntries(Object.entries(tree).filter(isKnown));
    return differences(known(nas), known(treeOf(this.#root)));
  }

  /** One line for each file that a rename without an answer has lost. */
  lost(nas: Tree): string[] {
    return this.#claims
      .filter(({ what, places }) => !places.some((place) => nas[place] === what))
      .map(({ what, places }) => `${what}: is neither at ${places.join(' nor at ')}`);
  }

  /**
   * The same while people write: what was touched since is left out. `askedMs`: when the daemon asked the shares
   * whether all is on the NAS.
   */
  wrongSince(nas: Tree, askedMs: number): string[] {
    this.#touches = this.#touches.filter(({ endedMs }) => endedMs > askedMs - 60_000);
    const later = this.#touches.filter(({ endedMs }) => endedMs >= askedMs);
    return this.wrong(nas).filter(
      (line) => !later.some(({ path }) => isNear(path, line.slice(0, line.indexOf(': ')))),
    );
  }

  /** Takes over what the NAS has where nobody could say. `contents`: a local folder. */
  settle(contents: string): void {
    for (const path of this.#unknown) {
      if (existsSync(join(this.#root, path))) rmSync(join(this.#root, path), { recursive: true });
      if (!existsSync(join(contents, path))) continue;
      mkdirSync(join(this.#root, path, '..'), { recursive: true });
      cpSync(join(contents, path), join(this.#root, path), { recursive: true });
    }
    this.#unknown.clear();
    this.#claims = [];
  }

  /** How many places nobody can say anything of. */
  get unknowns(): number {
    return this.#unknown.size;
  }
}

/** For people. */
export function describe(way: Way, { deed, path, to, bytes }: Action): string {
  return `${way}: ${deed} ${path}${deed === 'rename' ? ` to ${to}` : ''}${deed === 'write' ? ` (${bytes} bytes)` : ''}`;
}

/** Relative to the share. */
function placesOf(way: Way, { deed, path, to }: Action): string[] {
  return deed === 'rename' && to !== undefined ? [`${way}/${path}`, `${way}/${to}`] : [`${way}/${path}`];
}

/** The same path, or one above the other. */
function isNear(one: string, other: string): boolean {
  return one === other || one.startsWith(`${other}/`) || other.startsWith(`${one}/`);
}
