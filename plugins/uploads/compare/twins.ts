/**
 * Places whose name was written in more than one way (case, or the Unicode form): a remote that takes those for
 * one may have the file by any of them, and may give a new one a former spelling. smbd does so before Samba 4.18.7
 * and 4.19.2 (bug 15481): each connection has a process of its own that remembers how it found a name.
 */
import { ancestors, folded } from './paths.ts';

/** The oldest are forgotten: smbd, too, remembers only so many. */
const MOST = 10_000;

export class Twins {
  readonly #names = new Set<string>();

  /** Folded paths, the oldest first. */
  get names(): Iterable<string> {
    return this.#names;
  }

  add(name: string): void {
    this.#names.add(name);
    for (const oldest of this.#names) {
      if (this.#names.size <= MOST) return;
      this.#names.delete(oldest);
    }
  }

  has(place: string): boolean {
    return this.#names.size > 0 && this.#names.has(folded(place));
  }

  /** Also true for what is in a folder with such a name. */
  hasAround(place: string): boolean {
    return this.#names.size > 0 && [place, ...ancestors(place)].some((one) => this.has(one));
  }

  clear(): void {
    this.#names.clear();
  }
}
